/**
 * Metered usage. An amount is counted as a whole or not at all. An event id counts once per license, without a time
 * limit. A repeated request with the same feature and amount returns the current state.
 */
import { formatTimestamp } from "../../contract/api/Timestamp.ts"
import type { NewEvent } from "../../ledger/events/Entry.ts"
import { featureEndsAt } from "../model/FeatureExpiry.ts"
import type { Assignment, DeviceRecord, LicenseView } from "../model/LicenseRecords.ts"
import type { Entitlement } from "../model/Payloads.ts"
import type { LedgerEntry } from "../model/Usage.ts"
import { runtimeNeeds } from "./Activation.ts"
import { type AdmissionCode, activeDeviceOnly, admit, isRefused, type RuntimeCommand } from "./Admission.ts"
import { entitlementOf } from "./Entitlement.ts"
import { explain } from "./Explanation.ts"
import { accept, licenseEvent, type Refused, type Rule, reject } from "./LicenseCommand.ts"
import { amountMax, consumeAmount, quotaOf, quotaUsed, remainingOf, type UsageStep } from "./Quota.ts"
import { notEntitled, reverse } from "./Reversal.ts"

export interface ConsumeCommand extends RuntimeCommand {
  readonly feature_code: string
  readonly event_id: string
  /** At least 1. */
  readonly amount: number
  /** The event id of a consumption to take back. */
  readonly reverses?: string | undefined
}

type UsageCode =
  | "FEATURE_NOT_ENTITLED"
  | "FEATURE_DISABLED"
  | "FEATURE_EXPIRED"
  | "USAGE_LIMIT_EXCEEDED"
  | "EVENT_ID_CONFLICT"
  | "VALIDATION_ERROR"
  | "REVERSAL_NOT_POSSIBLE"
  | "DEVICE_NOT_FOUND"
  | "DEVICE_NOT_ACTIVE"

/** The share of a quota at which `usage.threshold_reached` is recorded. */
const thresholdShare = 0.8

export const consume: Rule<ConsumeCommand, Entitlement, AdmissionCode | UsageCode> = {
  name: "consume",
  explain,
  needs: (command) => ({
    ...runtimeNeeds(command),
    eventId: command.event_id,
    ...(command.reverses === undefined
      ? undefined
      : { reverses: { eventId: command.reverses, featureCode: command.feature_code } })
  }),
  decide: (view, command, now) => {
    const admitted = admit(view, command, now)
    if (isRefused(admitted)) return admitted
    const device = activeDeviceOnly(view, admitted.device, now)
    if (isRefused(device)) return device
    const reply = (after: LicenseView) => entitlementOf(after, device, now, admitted.eligibility)
    if (command.reverses !== undefined) return reverse(view, command, command.reverses, device, now, reply)
    const counted = view.counted(command.event_id)
    if (counted !== undefined) {
      return counted.feature_code === command.feature_code && counted.amount === command.amount
        ? accept({}, reply)
        : reject("EVENT_ID_CONFLICT", "This event_id was used before with another feature or amount: use a new one.", {
            detail: "event_id"
          })
    }
    const assignment = usableAssignment(view, command, now)
    if (isRefused(assignment)) return assignment
    const step = consumeAmount(assignment, command.amount)
    return accept(
      {
        license: { total_consumptions: view.license.total_consumptions + command.amount, updated_at: now },
        assignments: [{ ...assignment, ...step.usage, updated_at: now }],
        ledger: [ledgerEntry(assignment, step, device, command)],
        events: thresholdEvents(view, assignment, step, device, command)
      },
      reply
    )
  }
}

const usableAssignment = (view: LicenseView, command: ConsumeCommand, now: number): Assignment | Refused<UsageCode> => {
  const assignment = view.assignmentByCode(command.feature_code)
  if (assignment === undefined) return notEntitled
  const refused =
    refuseDisabled(assignment) ?? refuseEnded(assignment, now) ?? refuseExceeding(view, assignment, command.amount)
  return refused ?? assignment
}

const disabled = reject("FEATURE_DISABLED", "The feature is disabled on this license: ask the vendor to enable it.", {
  detail: "feature_code"
})

export const refuseDisabled = ({ enabled }: Assignment): Refused<"FEATURE_DISABLED"> | undefined =>
  enabled ? undefined : disabled

export const refuseEnded = (assignment: Assignment, now: number): Refused<"FEATURE_EXPIRED"> | undefined =>
  featureEndsAt(assignment) <= now
    ? reject("FEATURE_EXPIRED", "The license's use of this feature has expired: ask the vendor to extend it.", {
        detail: "feature_code"
      })
    : undefined

/** Whether the amount exceeds what is left, or the largest count. */
export const refuseExceeding = (
  { license }: LicenseView,
  assignment: Assignment,
  amount: number
): Refused<"USAGE_LIMIT_EXCEEDED" | "VALIDATION_ERROR"> | undefined => {
  const { extra_credits, overage, resets_at, total_consumptions: consumed } = assignment
  const left = amountMax(assignment)
  if (amount <= left) {
    return Math.max(consumed, license.total_consumptions) + amount <= Number.MAX_SAFE_INTEGER
      ? undefined
      : reject(
          "VALIDATION_ERROR",
          `The consumption would exceed ${Number.MAX_SAFE_INTEGER}, the largest count: use a smaller amount.`,
          { detail: "amount" }
        )
  }
  const quota = quotaOf(assignment) ?? 0
  return reject(
    "USAGE_LIMIT_EXCEEDED",
    `The amount does not fit: at most ${left} can be used now. Use less, or ask the vendor to raise the quota.`,
    {
      detail: String(left),
      facts: {
        quota,
        consumed,
        remaining: remainingOf(assignment) ?? 0,
        ...(extra_credits === undefined ? undefined : { extra_credits }),
        ...(overage === undefined ? undefined : { overage }),
        ...(resets_at === undefined ? undefined : { resets_at: formatTimestamp(resets_at) })
      }
    }
  )
}

/** The ledger row is also the event `usage.consumed`. */
const ledgerEntry = (
  assignment: Assignment,
  { credits, overage }: UsageStep,
  device: DeviceRecord,
  command: ConsumeCommand
): LedgerEntry => ({
  feature_id: assignment.feature_id,
  feature_code: assignment.feature_code,
  action: "consume",
  event_id: command.event_id,
  amount: command.amount,
  balance_after: assignment.total_consumptions + command.amount,
  max_after: quotaOf(assignment),
  ...(credits === undefined ? undefined : { credits }),
  ...(overage === undefined ? undefined : { overage }),
  device_id: device.id
})

const thresholdEvents = (
  view: LicenseView,
  assignment: Assignment,
  step: UsageStep,
  device: DeviceRecord,
  command: ConsumeCommand
): ReadonlyArray<NewEvent> => {
  const before = quotaUsed(assignment)
  const after = before + command.amount
  const quota = quotaOf(assignment)
  if (quota === undefined || after < quota * thresholdShare) return noEvents
  const event = (event_type: NewEvent["event_type"]) =>
    licenseEvent(event_type, view.license.id, {
      feature_id: assignment.feature_id,
      feature_code: assignment.feature_code,
      amount: command.amount,
      event_id: command.event_id,
      balance_after: assignment.total_consumptions + command.amount,
      max_after: quota,
      device_id: device.id
    })
  const crosses = (threshold: number) => before < threshold && after >= threshold
  return [
    ...(crosses(quota * thresholdShare) ? [event("usage.threshold_reached")] : []),
    ...(crosses(quota) ? [event("usage.exhausted")] : []),
    ...(step.overage !== undefined && assignment.overage === undefined ? [event("usage.overage_started")] : [])
  ]
}

const noEvents: ReadonlyArray<NewEvent> = []
