/**
 * Example request bodies for the documents. Most are derived from the schema: the required fields, with values chosen by their
 * names. A test decodes every example with its operation's schema.
 */
import type { JsonSchema } from "effect"

type Json = JsonSchema.JsonSchema

/** Bodies that cannot be derived from the schema: all fields are optional, or some exclude each other. */
const bodies: { readonly [operationId: string]: unknown } = {
  startTrial: {
    product_code: "editor",
    policy_code: "trial",
    binding: { fingerprint: "4c4c4544-0042-3510-8056-b4c04f4d3332" }
  },
  updateProduct: { name: "Editor Pro" },
  updatePolicy: { grace_period_days: 14 },
  setPolicyFeature: { max_consumptions: 1000, expires_after_days: 365 },
  updateFeature: { name: "Export to PDF" },
  updateCustomer: { email: "ada@example.com" },
  updateApiKey: { is_active: false },
  updateLicense: { customer_email: "ada@example.com" },
  renewLicense: { extend_by_days: 30 },
  transferLicense: { customer_email: "grace@example.com", customer_name: "Grace Hopper", reset_devices: true },
  resetLicenseUsage: { feature_code: "export", add_credits: 100 },
  updateOrder: { status: "fulfilled" },
  updateSubscription: { cancel_at_period_end: true },
  updateCustomField: { name: "Cost center" },
  setLicenseCustomFieldValue: { string_value: "CC-1042" },
  setCustomerCustomFieldValue: { string_value: "CC-1042" },
  updateWebhook: { event_types: ["license.*"] }
}

const values: { readonly [field: string]: unknown } = {
  name: "Editor",
  code: "editor",
  email: "ada@example.com",
  fingerprint: "4c4c4544-0042-3510-8056-b4c04f4d3332",
  event_id: "render-2030-01-31-0001",
  feature_code: "export",
  version: "2.4.0",
  external_system: "stripe",
  external_id: "ext_1042",
  url: "https://hooks.example.com/licensing",
  current_period_end: "2030-02-28T12:00:00Z"
}

const instant = "2030-01-31T12:00:00Z"

/** An example body for an operation. `resolve` follows a reference. */
export const exampleBody = (operationId: string, schema: Json, resolve: (schema: Json) => Json): unknown => {
  if (operationId in bodies) return bodies[operationId]
  const body = exampleOf(schema, "", resolve)
  const isBinding = "fingerprint" in ((resolve(schema)["properties"] as object | undefined) ?? {})
  return isBinding ? { fingerprint: values["fingerprint"], ...(body as object) } : body
}

const exampleOf = (reference: Json, field: string, resolve: (schema: Json) => Json): unknown => {
  const schema = resolve(reference)
  const [alternative] = (schema["anyOf"] ?? schema["oneOf"] ?? []) as ReadonlyArray<Json>
  if (alternative !== undefined) return exampleOf(alternative, field, resolve)
  const [literal] = (schema["enum"] ?? []) as ReadonlyArray<unknown>
  if (literal !== undefined) return literal
  switch (schema["type"]) {
    case "object":
      return exampleObject(schema, resolve)
    case "array":
      return [exampleOf((schema["items"] ?? {}) as Json, field, resolve)]
    case "integer":
    case "number":
      return Math.max(1, Number(schema["minimum"] ?? 1))
    case "boolean":
      return true
    default:
      return exampleText(schema, field)
  }
}

const exampleObject = (schema: Json, resolve: (schema: Json) => Json): unknown => {
  const properties = (schema["properties"] ?? {}) as { readonly [name: string]: Json }
  const required = (schema["required"] ?? []) as ReadonlyArray<string>
  return Object.fromEntries(required.map((name) => [name, exampleOf(properties[name] ?? {}, name, resolve)]))
}

const idPrefixes: { readonly [field: string]: string } = {
  product_id: "prod",
  policy_id: "pol",
  feature_id: "feat",
  customer_id: "cust",
  order_id: "ord",
  subscription_id: "sub"
}

const exampleText = (schema: Json, field: string): unknown => {
  if (schema["format"] === "date-time") return values[field] ?? instant
  const prefix = idPrefixes[field]
  return prefix === undefined ? (values[field] ?? "text") : `${prefix}_01JZ8Q6Y3V5W7X9A1B3C5D7E9F`
}
