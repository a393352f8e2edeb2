/** Lines of an export, and the units that an import makes of them. */
import { createHash } from "node:crypto"
import { tableOf } from "../../../src/tools/transfer/Columns.ts"
import type { Entry, Unit } from "../../../src/tools/transfer/Units.ts"

export type Line = { readonly type: string; readonly [column: string]: unknown }

export const at = "2026-01-02T03:04:05.000Z"
const times = { created_at: at, updated_at: at }
export const product = (id: string): Line => ({
  type: "product",
  id,
  name: "P",
  code: id.toLowerCase(),
  metadata: {},
  ...times
})
export const version = (product_id: string, index: number): Line => ({
  ...{ type: "product_version", id: `ver_${product_id}_${index}`, product_id, version: `1.${index}`, released_at: at },
  ...{ metadata: {}, ...times }
})
export const policy = (id: string, product_id: string): Line => ({
  ...{
    type: "policy",
    id,
    product_id,
    name: "P",
    code: id.toLowerCase(),
    license_type: "perpetual",
    max_activations: 0
  },
  ...{ floating_timeout_minutes: 30, grace_period_days: 0, validation_interval_minutes: 60, require_heartbeat: false },
  ...{ allow_offline_activation: true, offline_grace_days: 7, allow_vm: true, allow_container: true, max_transfers: 0 },
  ...{ metadata: {}, ...times }
})
export const customer = (id: string): Line => ({
  type: "customer",
  id,
  name: "C",
  code: id.toLowerCase(),
  metadata: {},
  ...times
})
export const license = (id: string, links: object): Line => ({
  ...{
    type: "license",
    id,
    ...links,
    key_hash: createHash("sha256").update(id).digest("hex"),
    license_key_prefix: "LK-AA"
  },
  ...{ license_key_last4: "ABCD", status: "active", metadata: {}, ...times }
})
export const device = (license_id: string, index: number): Line => ({
  ...{
    type: "device",
    id: `dev_${license_id}_${index}`,
    license_id,
    binding_kind: "hardware",
    binding_key: `fp-${index}`
  },
  ...{ fingerprint: `fp-${index}`, is_vm: false, is_container: false, status: "deactivated", holds_slot: false },
  ...{ first_seen_at: at, last_seen_at: at, metadata: {}, ...times }
})

export const entryOf = ({ type, ...row }: Line, line = 1): Entry => ({ line, table: tableOf(type), row })

/** A record without parts. */
export const unitOf = (line: Line): Unit => ({ root: entryOf(line), parts: [] })

/** The text of an export with these lines. */
export const exportOf = (lines: ReadonlyArray<Line>): string => {
  const header = { type: "export", format: 1, schema: 1, created_at: at, vendor_keys: false }
  const text = [header, ...lines].map((line) => `${JSON.stringify(line)}\n`).join("")
  const sha256 = createHash("sha256").update(text).digest("hex")
  return `${text}${JSON.stringify({ type: "end", lines: lines.length + 1, sha256 })}\n`
}
