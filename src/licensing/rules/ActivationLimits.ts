/** The limits of activations. An event records their refusals, at most once an hour for each license. */
import type { Binding } from "../model/Binding.ts"
import type { Changes, LicenseView } from "../model/LicenseRecords.ts"
import { type Refused, reject } from "./LicenseCommand.ts"

export type LimitCode = "ACTIVATION_LIMIT_REACHED" | "CONTAINER_LIMIT_REACHED"

/** Containers have their own limit if there is one; otherwise they count with all devices. 0 = unlimited. */
export const refuseFull = (view: LicenseView, binding: Binding, now: number): Refused<LimitCode> | undefined => {
  const { max_activations, max_container_instances } = view.limits
  if (binding.is_container && max_container_instances !== undefined) {
    if (max_container_instances === 0) return undefined
    return view.activeContainers < max_container_instances
      ? undefined
      : refuseLimit(
          view,
          "CONTAINER_LIMIT_REACHED",
          `All container instances of the license are in use (${max_container_instances} of ${max_container_instances}): deactivate one first.`,
          max_container_instances,
          view.activeContainers,
          now
        )
  }
  if (max_activations === 0) return undefined
  const inContainers = max_container_instances === undefined ? 0 : view.activeContainers
  const used = view.license.active_device_count - inContainers
  return used < max_activations
    ? undefined
    : refuseLimit(
        view,
        "ACTIVATION_LIMIT_REACHED",
        `All activations of the license are in use (${max_activations} of ${max_activations}): deactivate a device first.`,
        max_activations,
        used,
        now
      )
}

const refuseLimit = (
  view: LicenseView,
  code: LimitCode,
  message: string,
  limit: number,
  used: number,
  now: number
): Refused<LimitCode> =>
  reject(code, message, {
    detail: String(limit),
    facts: { max: limit, used },
    ...(wasLimitRecorded(view, now) ? undefined : { recorded: limitRecord(view, code, limit, now) })
  })

/** The minimum interval between these events of a license, because clients may retry without end. */
const limitRecordMillis = 3_600_000

/** A future instant was stored before a clock was set back. */
const wasLimitRecorded = ({ license: { activation_limit_recorded_at: last } }: LicenseView, now: number): boolean =>
  last !== undefined && Math.abs(now - last) < limitRecordMillis

const limitRecord = ({ license }: LicenseView, code: LimitCode, limit: number, now: number): Changes => ({
  license: { activation_limit_recorded_at: now },
  events: [
    {
      event_type: "license.activation_limit_reached",
      resource_type: "license",
      resource_id: license.id,
      metadata: { code, limit }
    }
  ]
})
