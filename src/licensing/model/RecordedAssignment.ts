/** Assignments in events. */
import type { Schema } from "effect"
import { changesOf, recordedValue } from "../../ledger/events/Changes.ts"
import { allowanceNames } from "../../vendor/policies/ResetPeriod.ts"
import type { Assignment } from "./LicenseRecords.ts"

/** Without metadata, because an event may contain 200 assignments. */
export const recordedAssignment = (assignment: Assignment): { readonly [field: string]: Schema.Json } =>
  Object.fromEntries(
    (["enabled", "max_consumptions", "expires_at", "expires_with_license", ...allowanceNames] as const).flatMap(
      (field) => (assignment[field] === undefined ? [] : [[field, recordedValue(field, assignment[field])]])
    )
  )

/** `features.<code>` with the old and the new assignment. */
export const changeOfFeature = (code: string, before: Assignment | undefined, after: Assignment | undefined) => {
  const field = `features.${code}`
  const shown = (assignment: Assignment | undefined) => ({ [field]: assignment && recordedAssignment(assignment) })
  return changesOf<ReturnType<typeof shown>>(shown(before), shown(after), [field])
}
