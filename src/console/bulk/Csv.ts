/** Records as CSV (RFC 4180). */
import type { License } from "../../licenses/model/License.ts"

/** A spreadsheet runs a cell that begins like a formula. */
const isFormula = /^[=+\-@\t\r]/

const cellOf = (value: unknown): string => {
  if (value === undefined) return ""
  const text = String(value)
  return `"${(isFormula.test(text) ? `'${text}` : text).replaceAll('"', '""')}"`
}

/** A line of a file. */
export const csvLine = (values: ReadonlyArray<unknown>): string => `${values.map(cellOf).join(",")}\r\n`

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

const fieldOf = (license: License, column: (typeof columns)[number]) => {
  const value = license[column]
  return value !== undefined && instants.has(column) ? new Date(Number(value)).toISOString() : value
}

/** The first line of a file of licenses. */
export const licenseHeader = `${columns.join(",")}\r\n`

export const csvOf = (licenses: ReadonlyArray<License>): string =>
  licenses.map((license) => csvLine(columns.map((column) => fieldOf(license, column)))).join("")
