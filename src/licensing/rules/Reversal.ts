/**
 * Takes a whole consumption back, once, and only while it is part of the count: in the period in which it was consumed, and
 * before a reset by hand. Its event id stays used. The license's lifetime consumption does not change.
 */
import type { Assignment, DeviceRecord, LicenseView } from "../model/LicenseRecords.ts"
import type { Entitlement } from "../model/Payloads.ts"
import type { ReversalMark } from "../model/Usage.ts"
import { accept, licenseEvent, type Outcome, type Refused, reject } from "./LicenseCommand.ts"
import { quotaOf, takeBack } from "./Quota.ts"

type ReversalCode = "REVERSAL_NOT_POSSIBLE" | "EVENT_ID_CONFLICT" | "FEATURE_NOT_ENTITLED"

interface ReverseCommand {
  readonly feature_code: string
  readonly event_id: string
}

export const reverse = (
  view: LicenseView,
  command: ReverseCommand,
  reverses: string,
  device: DeviceRecord,
  now: number,
  reply: (after: LicenseView) => Entitlement
): Outcome<Entitlement, ReversalCode> => {
  const { event_id, feature_code } = command
  const assignment = view.assignmentByCode(feature_code)
  if (assignment === undefined)
    return isEarlierReversal(view, command, reverses, undefined) ? accept({}, reply) : notEntitled
  const mark = view.reversalMark(assignment.feature_id, reverses)
  if (mark?.action === "reverse" && mark.event_id === event_id) return accept({}, reply)
  if (view.counted(event_id) !== undefined)
    return isEarlierReversal(view, command, reverses, mark) ? accept({}, reply) : conflict
  if (mark?.action === "reverse") return impossible("The consumption was taken back before: nothing is left of it.")
  if (mark?.action !== "consume" || mark.amount > assignment.total_consumptions)
    return impossible(
      "The current period has no consumption of this feature with this event_id: only what is counted can be taken back."
    )
  return accept(reversal(view, assignment, { event_id, reverses, amount: mark.amount }, device, now), reply)
}

/** Whether a used event id is that of the same reversal before the count or the feature ended. Then only amounts can be compared. */
const isEarlierReversal = (
  view: LicenseView,
  { event_id, feature_code }: ReverseCommand,
  reverses: string,
  mark: ReversalMark | undefined
): boolean => {
  const [used, original] = [view.counted(event_id), view.counted(reverses)]
  if (used === undefined || original === undefined || used.amount > 0) return false
  const isOver = mark?.action !== "consume" && mark?.action !== "reverse"
  return isOver && used.feature_code === feature_code && used.amount === -original.amount
}

const reversal = (
  view: LicenseView,
  assignment: Assignment,
  { amount, event_id, reverses }: { readonly amount: number; readonly event_id: string; readonly reverses: string },
  device: DeviceRecord,
  now: number
) => {
  const { feature_code, feature_id } = assignment
  const { usage, ...beside } = takeBack(assignment, amount)
  const after: Assignment = { ...assignment, ...usage, updated_at: now }
  const balance = { balance_after: after.total_consumptions, max_after: quotaOf(after), ...beside }
  return {
    license: { updated_at: now },
    assignments: [after],
    ledger: [
      {
        feature_id,
        feature_code,
        action: "reverse" as const,
        event_id,
        reverses,
        amount: -amount,
        ...balance,
        device_id: device.id
      }
    ],
    events: [
      licenseEvent("usage.reversed", view.license.id, {
        feature_id,
        feature_code,
        amount,
        event_id,
        reverses,
        balance_after: balance.balance_after,
        ...(balance.max_after === undefined ? undefined : { max_after: balance.max_after }),
        ...beside,
        device_id: device.id
      })
    ]
  }
}

const impossible = (message: string): Refused<"REVERSAL_NOT_POSSIBLE"> =>
  reject("REVERSAL_NOT_POSSIBLE", message, { detail: "reverses" })

const conflict = reject(
  "EVENT_ID_CONFLICT",
  "This event_id was used before for something else: use a new one for the reversal.",
  { detail: "event_id" }
)

export const notEntitled = reject(
  "FEATURE_NOT_ENTITLED",
  "The license does not include this feature: ask the vendor to add it.",
  { detail: "feature_code" }
)
