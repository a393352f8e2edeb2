/** What tests of the console need where something happens meanwhile. */
import { Effect } from "effect"
import type { Route } from "playwright-core"
import { TestServer } from "../../../support/http/TestServer.ts"
import type { Person } from "./Browser.ts"

let products = 0

/** A product with so many licenses. */
export const prepare = Effect.fnUntraced(function* (count: number) {
  const { client } = yield* TestServer
  const name = `Meanwhile ${++products}`
  const product = yield* client.products.create({ payload: { name, code: `meanwhile-${products}` } })
  const policy = yield* client.policies.create({
    params: { id: product.id },
    payload: { name: `Team ${products}`, code: "team", license_type: "subscription", duration_days: 30 }
  })
  const batch = Array.from({ length: count }, (_, index) => ({
    product_id: product.id,
    policy_id: policy.id,
    customer_name: `${name} customer ${index + 1}`
  }))
  const issued = count === 0 ? { licenses: [] } : yield* client.licenses.createBatch({ payload: { licenses: batch } })
  const all = client.licenses.list({ query: { product_id: product.id, limit: 200 } })
  return { client, name, policy, product, licenses: issued.licenses.map(({ license }) => license), all }
})

export const refusal = (status: number, code: string) => ({
  status,
  json: {
    error: { code, message: "It is still running." },
    meta: { request_id: "req_meanwhile", timestamp: "2026-01-01T00:00:00.000Z" }
  }
})

/** Requests that wait until they are let through. */
export const held = () => {
  const { promise: open, resolve: release } = Promise.withResolvers<void>()
  const { promise: reached, resolve: reach } = Promise.withResolvers<void>()
  const hold = async (route: Route) => {
    reach()
    await open
    await route.continue()
  }
  return { hold, open, reach, reached, release }
}

/** Lets a person's requests through until `close`, which waits for their answers; later ones wait for `open`. */
export const gate = async (person: Person) => {
  const answers: Array<Promise<unknown>> = []
  const { hold, release: open } = held()
  let isClosed = false
  await person.page.context().route("**/api/v1/**", (route) => {
    if (isClosed) return hold(route)
    answers.push(route.request().response())
    return route.continue()
  })
  const close = () => {
    isClosed = true
    return Promise.all(answers)
  }
  return { close, open }
}

/** The browser reports refused requests itself. */
export const forgive = (person: Person) => person.problems.splice(0)
