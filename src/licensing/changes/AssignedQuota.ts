/** The quota of a feature that is assigned by hand, and the periods of the license's quotas. */
import { type Allowance, allowanceFault } from "../../vendor/policies/ResetPeriod.ts"
import type { Assignment, LicenseRecord, LicenseView } from "../model/LicenseRecords.ts"
import type { Quota } from "../model/Usage.ts"
import { type Refused, reject } from "../rules/LicenseCommand.ts"
import type { PeriodSource } from "../rules/UsagePeriods.ts"

/** Absent fields keep their value. Without reset_period the other fields of periods are not kept. */
export const quotaAfter = (before: Assignment | undefined, command: Allowance): Quota => {
  const reset_period = updatedValue(command.reset_period, before?.reset_period)
  const periods = reset_period === undefined ? undefined : before
  return {
    max_consumptions: updatedValue(command.max_consumptions, before?.max_consumptions),
    reset_period,
    reset_anchor: updatedValue(command.reset_anchor, periods?.reset_anchor),
    rollover_max: updatedValue(command.rollover_max, periods?.rollover_max),
    overage_max: updatedValue(command.overage_max, before?.overage_max)
  }
}

/** Refuses contradictions, naming a field of the request. */
export const refuseQuota = (
  { license }: { readonly license: Pick<LicenseRecord, "subscription_id"> },
  quota: Quota,
  given: Allowance
): Refused<"VALIDATION_ERROR"> | undefined => {
  const fault = allowanceFault(quota)
  if (fault !== undefined) {
    const isGiven = given[fault.field] !== undefined || given.max_consumptions === undefined
    return reject("VALIDATION_ERROR", fault.message, { detail: isGiven ? fault.field : "max_consumptions" })
  }
  const namesSubscription = given.reset_period === "subscription" || given.reset_anchor === "subscription"
  return namesSubscription && license.subscription_id === undefined
    ? reject("VALIDATION_ERROR", "The license is not linked to a subscription: link one first.", {
        detail: given.reset_anchor === "subscription" ? "reset_anchor" : "reset_period"
      })
    : undefined
}

/** The license with the subscription that it is linked to, if the command has looked it up. */
export const periodSource = (
  view: Pick<LicenseView, "license" | "link">,
  license: LicenseRecord = view.license
): PeriodSource => {
  const { order_id, subscription_id } = license
  if (subscription_id === undefined) return { license, subscription: undefined }
  const order = order_id === undefined ? undefined : view.link("order", order_id)
  const ofOrder = order?.subscription_id === subscription_id ? order : undefined
  return { license, subscription: view.link("subscription", subscription_id) ?? ofOrder }
}

const updatedValue = <A>(value: A | null | undefined, before: A | undefined): A | undefined =>
  value === undefined ? before : (value ?? undefined)
