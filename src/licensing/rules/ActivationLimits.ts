/** The limits of activations. An event records their refusals, at most once an hour for each license. */
import type { Binding } from "../model/Binding.ts"
import type { Changes, LicenseView } from "../model/LicenseRecords.ts"
import { licenseEvent, type Refused, reject } from "./LicenseCommand.ts"

export type LimitCode = "ACTIVATION_LIMIT_REACHED" | "CONTAINER_LIMIT_REACHED"

/** Containers have their own limit if there is one; otherwise they count with all devices. */
export const refuseFull = (view: LicenseView, binding: Binding, now: number): Refused<LimitCode> | undefined => {
  const { max_activations, max_container_instances } = view.limits
  if (binding.is_container && max_container_instances !== undefined)
    return refuseLimit(view, "CONTAINER_LIMIT_REACHED", max_container_instances, view.activeContainers, now)
  const inContainers = max_container_instances === undefined ? 0 : view.activeContainers
  const used = view.license.active_device_count - inContainers
  return refuseLimit(view, "ACTIVATION_LIMIT_REACHED", max_activations, used, now)
}

/** 0 = unlimited. */
const refuseLimit = (
  view: LicenseView,
  code: LimitCode,
  limit: number,
  used: number,
  now: number
): Refused<LimitCode> | undefined =>
  limit === 0 || used < limit
    ? undefined
    : reject(code, limitMessages[code](limit), {
        detail: String(limit),
        facts: { max: limit, used },
        ...(wasLimitRecorded(view, now) ? undefined : { recorded: limitRecord(view, code, limit, now) })
      })

const limitMessages: Readonly<Record<LimitCode, (limit: number) => string>> = {
  ACTIVATION_LIMIT_REACHED: (limit) =>
    `All activations of the license are in use (${limit} of ${limit}): deactivate a device first.`,
  CONTAINER_LIMIT_REACHED: (limit) =>
    `All container instances of the license are in use (${limit} of ${limit}): deactivate one first.`
}

/** The minimum interval between these events of a license, because clients may retry without end. */
const limitRecordMillis = 3_600_000

/** A future instant was stored before a clock was set back. */
const wasLimitRecorded = ({ license: { activation_limit_recorded_at: last } }: LicenseView, now: number): boolean =>
  last !== undefined && Math.abs(now - last) < limitRecordMillis

const limitRecord = ({ license }: LicenseView, code: LimitCode, limit: number, now: number): Changes => ({
  license: { activation_limit_recorded_at: now },
  events: [licenseEvent("license.activation_limit_reached", license.id, { code, limit })]
})
