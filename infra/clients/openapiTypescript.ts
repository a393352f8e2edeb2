// A product, a policy and a license by a client of openapi-typescript and openapi-fetch. infra/scripts/clients.ts runs it.
import createClient from "openapi-fetch"
import type { paths } from "./openapi.d.ts"

const baseUrl = process.env["SERVICE_URL"]!
const suffix = process.env["SERVICE_SUFFIX"]!
const vendor = createClient<paths>({ baseUrl, headers: { Authorization: `Bearer ${process.env["SERVICE_TOKEN"]}` } })

const dataOf = <T extends { data?: { data: unknown }; error?: { error: { message: string } } }>({ data, error }: T) => {
  if (data === undefined) throw new Error(error?.error.message)
  return data.data as NonNullable<T["data"]>["data"]
}

const product = dataOf(await vendor.POST("/api/v1/products", { body: { name: "Editor", code: `editor-${suffix}` } }))
const policy = dataOf(
  await vendor.POST("/api/v1/products/{id}/policies", {
    params: { path: { id: product.id } },
    body: { name: "Forever", code: "forever", license_type: "perpetual", max_activations: 1 }
  })
)
const { license, license_key } = dataOf(
  await vendor.POST("/api/v1/licenses", { body: { product_id: product.id, policy_id: policy.id } })
)

const application = createClient<paths>({ baseUrl, headers: { Authorization: `License ${license_key}` } })
const activated = dataOf(await application.POST("/api/v1/license/activate", { body: { fingerprint: "laptop" } }))
const validated = dataOf(await application.POST("/api/v1/license/validate", { body: { fingerprint: "laptop" } }))
if (validated.device_id !== activated.device_id || validated.license_id !== license.id) throw new Error("another device")

const refused = await application.POST("/api/v1/license/activate", { body: { fingerprint: "desktop" } })
if (refused.response.status !== 403 || refused.error?.error.code !== "ACTIVATION_LIMIT_REACHED")
  throw new Error(`not refused: ${JSON.stringify(refused.error)}`)
if (refused.error.error.message === "") throw new Error("no message")
console.log("ok")
