/** The lines of a CSV file of licenses. */
import { csvLine } from "../../../contract/api/Csv.ts"
import type { License } from "../../../licensing/model/License.ts"

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
export const licenseHeader = csvLine(columns)

export const csvOf = (licenses: ReadonlyArray<License>): string =>
  licenses.map((license) => csvLine(columns.map((column) => fieldOf(license, column)))).join("")
