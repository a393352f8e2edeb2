/** Licenses as a CSV file: the chosen ones, or all that filters choose. */
import { Exit } from "effect"
import { csvLine } from "../../../contract/api/Csv.ts"
import type { License } from "../../../licensing/model/License.ts"
import { run } from "../service/Hooks.ts"
import type { Chosen } from "./Chosen.ts"
import { ExportCsv } from "./ExportCsv.tsx"
import type { ReadPage } from "./ReadAll.ts"

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

const csvOf = (licenses: ReadonlyArray<License>): string =>
  licenses.map((license) => csvLine(columns.map((column) => fieldOf(license, column)))).join("")

const readerOf =
  (chosen: Chosen): ReadPage<License> =>
  (page) =>
    "filters" in chosen
      ? run("listLicenses", { query: { ...chosen.filters, ...page } })
      : Promise.resolve(Exit.succeed({ items: chosen }))

export const ExportLicenses = ({ chosen, label }: { readonly chosen: Chosen; readonly label: string }) => (
  <ExportCsv label={label} file="licenses.csv" header={csvLine(columns)} linesOf={csvOf} read={readerOf(chosen)} />
)
