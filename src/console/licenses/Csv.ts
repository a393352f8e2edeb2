/** Licenses as CSV (RFC 4180). */
import type { License } from "../../licenses/model/License.ts"

const columns = [
  "id",
  "status",
  "product_id",
  "policy_id",
  "customer_name",
  "customer_email",
  "license_key_last4",
  "created_at",
  "expires_at",
  "active_device_count",
  "total_consumptions"
] as const satisfies ReadonlyArray<keyof License>

const instants: ReadonlySet<string> = new Set(["created_at", "expires_at"])

/** A spreadsheet runs a cell that begins like a formula. */
const isFormula = /^[=+\-@\t\r]/

const cellOf = (license: License, column: (typeof columns)[number]): string => {
  const value = license[column]
  if (value === undefined) return ""
  if (instants.has(column)) return new Date(Number(value)).toISOString()
  const text = String(value)
  return `"${(isFormula.test(text) ? `'${text}` : text).replaceAll('"', '""')}"`
}

export const csvOf = (licenses: ReadonlyArray<License>): string =>
  [columns.join(","), ...licenses.map((license) => columns.map((column) => cellOf(license, column)).join(","))]
    .map((line) => `${line}\r\n`)
    .join("")
