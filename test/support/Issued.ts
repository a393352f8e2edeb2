/** Licenses that a test issues over HTTP, and requests about them. */
import { Effect } from "effect"
import type { PolicyCreate } from "../../src/catalog/policies/Policy.ts"
import type { LicenseCreate } from "../../src/licenses/model/License.ts"
import { TestServer } from "./TestServer.ts"

let made = 0

/** A license of a product and policy of its own. A subscription that ends in 30 days, unless said otherwise. */
export const issue = Effect.fnUntraced(function* (
  policy: Partial<typeof PolicyCreate.Type> = {},
  given: Omit<Partial<typeof LicenseCreate.Type>, "product_id" | "policy_id"> = {}
) {
  const { client, connect, send } = yield* TestServer
  // Of one length, so that answers about two licenses have the same length, too.
  const code = `issued-${String(++made).padStart(5, "0")}`
  const product = yield* client.products.create({ payload: { name: "P", code } })
  const { id: policy_id } = yield* client.policies.create({
    params: { id: product.id },
    payload: { name: "P", code, license_type: "subscription", ...policy }
  })
  const meta = (yield* send({ path: "/health" })).json as { readonly meta: { readonly timestamp: string } }
  const now = Date.parse(meta.meta.timestamp)
  const { license, license_key } = yield* client.licenses.create({
    payload: { product_id: product.id, policy_id, expires_at: now + 30 * 86_400_000, ...given }
  })
  const path = `/api/v1/licenses/${license.id}`
  return {
    id: license.id,
    product_id: product.id,
    expires_at: license.expires_at ?? 0,
    license_key,
    path,
    /** A management request about it. */
    post: (action: string, body?: unknown, headers: { readonly [name: string]: string } = {}) =>
      send({ method: "POST", path: `${path}/${action}`, headers, ...(body === undefined ? undefined : { body }) }),
    /** A runtime client with its key. */
    runtime: (yield* connect({ licenseKey: license_key })).runtime
  }
})

let keys = 0

/** Another Idempotency-Key each time. */
export const freshKey = () => ({ "idempotency-key": `key-${++keys}` })
