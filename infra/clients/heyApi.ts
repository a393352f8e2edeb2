// A product, a policy and a license by a client of @hey-api/openapi-ts. infra/scripts/clients.ts runs it.
import { createClient } from "./generated/client/index.ts"
import { activateLicense, createLicense, createPolicy, createProduct, validateLicense } from "./generated/sdk.gen.ts"

const baseUrl = process.env["SERVICE_URL"]!
const suffix = process.env["SERVICE_SUFFIX"]!
const client = createClient({ baseUrl, auth: process.env["SERVICE_TOKEN"]! })

const { data: product } = await createProduct({
  client,
  throwOnError: true,
  body: { name: "Editor", code: `editor-${suffix}` }
})
const { data: policy } = await createPolicy({
  client,
  throwOnError: true,
  path: { id: product.data.id },
  body: { name: "Forever", code: "forever", license_type: "perpetual", max_activations: 1 }
})
const { data: created } = await createLicense({
  client,
  throwOnError: true,
  body: { product_id: product.data.id, policy_id: policy.data.id }
})

const application = createClient({ baseUrl, auth: `License ${created.data.license_key}` })
const body = { fingerprint: "laptop" }
const { data: activated } = await activateLicense({ client: application, throwOnError: true, body })
const { data: validated } = await validateLicense({ client: application, throwOnError: true, body })
if (validated.data.device_id !== activated.data.device_id) throw new Error("another device")

const { error, response } = await activateLicense({ client: application, body: { fingerprint: "desktop" } })
if (response?.status !== 403 || error?.error.code !== "ACTIVATION_LIMIT_REACHED" || error.error.message === "")
  throw new Error(`not refused: ${JSON.stringify(error)}`)
console.log("ok")
