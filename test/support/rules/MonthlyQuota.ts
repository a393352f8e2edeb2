/** A license with a monthly quota, for tests of rules. */

import { parseTimestamp } from "../../../src/contract/api/Timestamp.ts"
import type { Assignment } from "../../../src/licensing/model/LicenseRecords.ts"
import { withPeriods } from "../../../src/licensing/rules/UsagePeriods.ts"
import {
  assignmentOf,
  deviceOf,
  featureOf,
  hardware,
  present,
  type Rows,
  type RowsInput,
  requestOf,
  rowsOf
} from "./Licenses.ts"

export const at = (text: string) => parseTimestamp(text)!

export const machine = hardware("A")

/** A license that was created on January 31 at noon, with a monthly quota of 100. */
export const created = at("2030-01-31T12:00:00Z")
export const monthly = (given: Partial<Assignment> = {}, license: RowsInput["license"] = {}): Rows => {
  const rows = rowsOf({
    license: { created_at: created, expires_at: undefined, starts_at: undefined, ...license },
    policy: { license_type: "consumption" },
    features: [featureOf("api")],
    devices: [deviceOf(machine)]
  })
  const assignment = assignmentOf("api", {
    max_consumptions: 100,
    total_consumptions: 0,
    reset_period: "month",
    ...given
  })
  return {
    ...rows,
    assignments: [withPeriods(assignment, { license: rows.license, subscription: undefined }, created)]
  }
}

export const used = (amount: number, event_id: string) => ({
  ...requestOf(machine),
  feature_code: "api",
  event_id,
  amount
})

export const featureIn = ({ assignments }: Rows) => present(assignments[0]!)

export const eventTypesOf = ({ events }: Rows) => events.map(({ event_type }) => event_type)
