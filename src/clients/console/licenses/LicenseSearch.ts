/** What the address of the license list names. */
import { Schema } from "effect"
import { LicenseStatus } from "../../../licensing/model/License.ts"
import { batchKey } from "../batch/BatchLines.ts"
import { maintenanceIn, Period, periodOf } from "./Periods.ts"

const text = Schema.optionalKey(Schema.String)

export const LicenseSearch = Schema.Struct({
  q: text,
  product_id: text,
  policy_id: text,
  customer_id: text,
  batch: text,
  order_id: text,
  subscription_id: text,
  feature_id: text,
  status: Schema.optionalKey(LicenseStatus),
  expires: Schema.optionalKey(Period),
  maintenance: Schema.optionalKey(Period),
  sort: Schema.optionalKey(
    Schema.Literals([
      "created_at",
      "-created_at",
      "expires_at",
      "-expires_at",
      "maintenance_expires_at",
      "-maintenance_expires_at"
    ])
  ),
  cursor: text
})
export type LicenseSearch = typeof LicenseSearch.Type

/** The filters and the sort as the API takes them. */
export const filtersOf = ({ batch, cursor: _, expires, maintenance, ...filters }: LicenseSearch) => ({
  ...filters,
  ...(batch === undefined ? {} : { [`metadata[${batchKey}]` as const]: batch }),
  ...(expires === undefined ? {} : periodOf(expires)),
  ...(maintenance === undefined ? {} : maintenanceIn(maintenance))
})
