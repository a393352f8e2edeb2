/** The service responds late: to a dialog that was closed, a screen that was left, or a filter that was changed. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import type { Route } from "playwright-core"
import { TestServer } from "../../../support/http/TestServer.ts"
import { consoleLayer, type Person, withPerson } from "../browser/Browser.ts"
import { forgive, held, prepare, refusal } from "../browser/Meanwhile.ts"

const minutes = 5 * 60_000

/** Sends what a dialog has, and closes it before the response is let through. */
const closesWhileSending = async (
  person: Person,
  { path, send }: { readonly path: string; readonly send: string },
  respond: (route: Route) => Promise<void> = (route) => route.continue()
) => {
  const { open, reach, reached, release } = held()
  await person.page.route(path, async (route) => {
    if (route.request().method() !== "POST") return await route.fallback()
    reach()
    await open
    await respond(route)
  })
  await person.click(send)
  await reached
  await person.press("Escape")
  await person.isDone()
  return release
}

layer(consoleLayer, { timeout: minutes })("Who leaves while the service still responds", (it) => {
  it.effect(
    "goes on elsewhere undisturbed, and is told that it was done",
    ({ skip }) =>
      Effect.gen(function* () {
        const { client } = yield* TestServer
        yield* withPerson(skip, async (person) => {
          await person.opens("/products", "Products")
          await person.click("New product")
          await person.fill("Name", "Late")
          const release = await closesWhileSending(person, { path: "**/api/v1/products", send: "Create product" })
          await person.click("Customers", "link")
          await person.click("New customer")
          await person.fill("Name", "Grace Hopper")
          release()
          await person.sees("“Create product” is done.")
          await person.click("Create customer")
          await person.seesHeading("Grace Hopper")
        })
        const { items } = yield* client.products.list({ query: {} })
        assert.deepStrictEqual(
          items.map(({ name }) => name),
          ["Late"]
        )
      }),
    minutes
  )

  it.effect(
    "is told that it was refused, or may not be done",
    ({ skip }) =>
      Effect.gen(function* () {
        const { licenses, name } = yield* prepare(1)
        const { id } = licenses[0]!
        yield* withPerson(skip, async (person) => {
          await person.opens(`/licenses/${id}`, `${name} customer 1`)
          const suspends = async (respond: (route: Route) => Promise<void>) => {
            await person.pick("More", "Suspend")
            const release = await closesWhileSending(person, { path: "**/suspend", send: "Suspend" }, respond)
            release()
          }
          await suspends((route) => route.fulfill(refusal(409, "LICENSE_STATE_CONFLICT")))
          await person.sees("“Suspend” is not done. It is still running.")
          await person.page.unrouteAll({ behavior: "wait" })
          await suspends((route) => route.abort())
          await person.sees("“Suspend” may not be done. The service cannot be reached")
          forgive(person)
        })
      }),
    minutes
  )

  it.effect(
    "and sends the same again does it once, and can undo it",
    ({ skip }) =>
      Effect.gen(function* () {
        const { client, licenses, name } = yield* prepare(1)
        const { expires_at = 0, id } = licenses[0]!
        const expiry = Effect.map(client.licenses.get({ params: { id } }), ({ expires_at }) => expires_at)
        yield* withPerson(skip, async (person) => {
          await person.opens(`/licenses/${id}`, `${name} customer 1`)
          const asks = async () => {
            await person.click("Extend")
            await person.fill("Days to add", "10")
          }
          await asks()
          const release = await closesWhileSending(person, { path: "**/renew", send: "Extend" }, async (route) => {
            await route.fetch()
            await route.abort()
          })
          release()
          await person.sees("“Extend” may not be done.")
          await person.page.unrouteAll({ behavior: "wait" })
          await asks()
          await person.click("Extend")
          await person.isDone()
          assert.strictEqual(await Effect.runPromise(expiry), expires_at + 10 * 86_400_000)
          await person.click("Undo")
          await person.sees("Undone.")
          forgive(person)
        })
        assert.strictEqual(yield* expiry, expires_at)
      }),
    minutes
  )
})

layer(consoleLayer, { timeout: minutes })("Who waits for another period", (it) => {
  it.effect(
    "sees no figures of the one before in an audit",
    ({ skip }) =>
      Effect.gen(function* () {
        const { licenses, name } = yield* prepare(1)
        yield* withPerson(skip, async (person) => {
          await person.opens(`/licenses/${licenses[0]!.id}/audit`, `Audit of ${name} customer 1`)
          const figures = person.page.getByText("Validations").first()
          await figures.waitFor()
          const { hold, reached, release } = held()
          await person.page.route("**/license-audit?*", hold)
          await person.choose("Period", "Last 90 days")
          await reached
          await figures.waitFor({ state: "detached" })
          release()
          await figures.waitFor()
        })
      }),
    minutes
  )
})
