/** Products with what tokens for some of them need, made over the API. */
import { Effect } from "effect"
import { assertAnswered } from "./Http.ts"
import { TestServer } from "./TestServer.ts"

let made = 0

/** A code that no other record has. */
export const code = () => `p${++made}`

export const makeProduct = Effect.gen(function* () {
  const { client } = yield* TestServer
  const product = yield* client.products.create({ payload: { name: "Product", code: code() } })
  const policy = yield* client.policies.create({
    params: { id: product.id },
    payload: { name: "Policy", code: "policy", license_type: "time_limited", max_activations: 0 }
  })
  return { id: product.id, policy: policy.id }
})
type Made = Effect.Success<typeof makeProduct>

interface Key {
  readonly api_key: { readonly id: string; readonly product_ids?: ReadonlyArray<string> }
  readonly token: string
}

export const makeKey = Effect.fnUntraced(function* (product_ids: ReadonlyArray<string>, scopes: ReadonlyArray<string>) {
  const { send } = yield* TestServer
  const answer = yield* send({
    method: "POST",
    path: "/api/v1/api-keys",
    body: { name: "limited", scopes, product_ids }
  })
  return assertAnswered(answer, 201) as Key
})

const scopes = "product:read product:write license:read license:write event:read report:read report:export".split(" ")

/** Sends requests with a token for some products. */
export const tokenFor = Effect.fnUntraced(function* (...products: ReadonlyArray<{ readonly id: string }>) {
  const { send } = yield* TestServer
  const { api_key, token } = yield* makeKey(
    products.map(({ id }) => id),
    scopes
  )
  const headers = { authorization: `Bearer ${token}` }
  return {
    api_key,
    headers,
    ask: (method: string, path: string, body?: object, more: Record<string, string> = {}) =>
      send({ method, path: `/api/v1${path}`, headers: { ...headers, ...more }, ...(body && { body }) })
  }
})

export const makeLicense = Effect.fnUntraced(function* (product: Made, more: object = {}) {
  const { client } = yield* TestServer
  const payload = { product_id: product.id, policy_id: product.policy, expires_at: Date.UTC(2100, 0, 1), ...more }
  const { license, license_key } = yield* client.licenses.create({ payload })
  return { id: license.id, license_key }
})

export const idsIn = (json: unknown) =>
  (json as { readonly data: ReadonlyArray<{ readonly id: string }> }).data.map(({ id }) => id)
