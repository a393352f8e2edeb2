/** The queries of a list: each parameter by itself, with values that many rows match, few or none. */
import { assert } from "@effect/vitest"
import { hotProduct, idOf, timedPolicy } from "../../bench/rows/scaleRows.ts"
import { type Operation, resolved } from "./Surface.ts"

/** Enumerations of up to this many values are tried whole. */
const eachMax = 20

/** Values of other filters: some match many rows, some few, some none. */
const texts: { readonly [name: string]: ReadonlyArray<string> } = {
  bulk_job_id: [idOf("bulk", 1), idOf("bulk", 7), "none"],
  code: ["product-7", "customer-700", "field-70", "policy-2", "feature-2", "none"],
  email: ["maria.berkowman1@example.com", "none"],
  version: ["1.5000", "none"],
  external_system: ["stripe", "paddle", "none"],
  external_id: ["order_700", "sub_700", "none"],
  product_id: [hotProduct, idOf("prod", 200), "none"],
  policy_id: [timedPolicy, idOf("pol", 401), "none"],
  customer_id: [idOf("cust", 700), "none"],
  order_id: [idOf("ord", 700), "none"],
  subscription_id: [idOf("sub", 700), "none"],
  feature_id: [idOf("feat", 1), idOf("feat", 700), "none"],
  maintenance_expires_after: ["1999-01-01T00:00:00Z", "2999-01-01T00:00:00Z"],
  maintenance_expires_before: ["1999-01-01T00:00:00Z", "2999-01-01T00:00:00Z"],
  expires_before: ["1999-01-01T00:00:00Z", "2999-01-01T00:00:00Z"],
  expires_after: ["1999-01-01T00:00:00Z", "2999-01-01T00:00:00Z"],
  created_after: ["1999-01-01T00:00:00Z", "2999-01-01T00:00:00Z"],
  created_before: ["1999-01-01T00:00:00Z", "2999-01-01T00:00:00Z"],
  license_key_last4: ["ABCD", "none"],
  q: ["maria", "berkow", "Maria.Berkowman", "e", "zx", "žo", "none", "nobody at all"],
  hostname: ["host-700", "HOST-7", "none"],
  fingerprint: ["fp-7-0", "none"],
  last_seen_after: ["1999-01-01T00:00:00Z", "2999-01-01T00:00:00Z"],
  last_seen_before: ["1999-01-01T00:00:00Z", "2999-01-01T00:00:00Z"],
  expand: ["customer"],
  license_id: [idOf("lic", 1), idOf("lic", 700), "none"],
  device_id: [idOf("dev", 700), idOf("dev", 9_000_000_700), "none"],
  nonce: ["asked"],
  product_code: ["product-1"],
  feature_code: ["export", "rare", "none"],
  request_id: ["req_refused_700", "req_700", "req_01M7W83YFA95321AHRCWDQYD0W"],
  status_code: ["200", "204", "403", "404", "409"],
  from: ["1999-01-01T00:00:00Z", "2999-01-01T00:00:00Z"],
  to: ["1999-01-01T00:00:00Z", "2999-01-01T00:00:00Z"],
  action: ["usage.consume", "customer.create", "license.validate", "lease.heartbeat", "signing_key.rotate"],
  event_type: ["usage.consumed", "customer.created", "none"],
  resource_type: ["license", "customer", "none"],
  resource_id: [idOf("lic", 700), "none"]
}

/** Metadata that many, few and no records have. */
const metadata = [
  ["plan", "basic"],
  ["plan", "partner"],
  ["seats", "7"],
  ["batch", "none"],
  ["none", "none"]
]

const expanded: Readonly<Record<string, ReadonlyArray<string>>> = {
  listLicenses: ["product", "product,policy,customer"],
  listAllDevices: ["license", "license,customer"]
}

export const queriesOf = ({ id, query }: Operation, valuesMax = Number.POSITIVE_INFINITY): ReadonlyArray<string> => [
  "",
  ...query
    .filter(({ name }) => name !== "limit" && name !== "cursor")
    .flatMap(({ name, schema }) => {
      if (name === "metadata") return metadata.slice(0, valuesMax).map(([key, value]) => `&metadata[${key}]=${value}`)
      const each = resolved(schema)["enum"] as ReadonlyArray<string> | undefined
      const own = (name === "expand" ? expanded[id] : undefined) ?? texts[name]
      const values = each !== undefined && each.length <= eachMax ? each : own
      assert.isDefined(values, `give FilterValues.ts some values of the filter ${name}`)
      return values.slice(0, valuesMax).map((value) => `&${name}=${encodeURIComponent(value)}`)
    })
]
