/** What was consumed of features that a policy took away. It counts again when a feature returns, in whatever way. */
import type { Assignment, LicenseRecord, LicenseView } from "../model/LicenseRecords.ts"

export type KeptCounts = LicenseRecord["kept_counts"]

export const keptCount = ({ license }: LicenseView, featureId: string): number => license.kept_counts?.[featureId] ?? 0

/** The kept counts after a policy took features away and others were assigned. */
export const keptCounts = (
  { license }: LicenseView,
  assigned: ReadonlyArray<Assignment>,
  lost: ReadonlyArray<Assignment>
): KeptCounts => {
  const counts = new Map(Object.entries(license.kept_counts ?? {}))
  for (const { feature_id } of assigned) counts.delete(feature_id)
  for (const { feature_id, total_consumptions } of lost)
    if (total_consumptions > 0) counts.set(feature_id, total_consumptions)
  return counts.size === 0 ? undefined : Object.fromEntries(counts)
}
