/** The limits of activations. An event records their refusals, at most once an hour for each license. */
import type { Binding } from "../model/Binding.ts"
import type { Changes, DeviceRecord, LicenseView } from "../model/LicenseRecords.ts"
import { licenseEvent, type Refused, reject } from "./LicenseCommand.ts"

export type LimitCode = "ACTIVATION_LIMIT_REACHED" | "CONTAINER_LIMIT_REACHED"

/** Containers have their own limit if there is one; otherwise they count with all devices. */
export const refuseFull = (view: LicenseView, binding: Binding, now: number): Refused<LimitCode> | undefined => {
  const { max_activations, max_container_instances } = view.limits
  const held = heldSlots(view, now)
  const isApart = ({ binding_kind }: DeviceRecord) =>
    max_container_instances !== undefined && binding_kind === "container"
  if (binding.is_container && max_container_instances !== undefined)
    return refuseLimit(
      view,
      { code: "CONTAINER_LIMIT_REACHED", limit: max_container_instances, active: view.activeContainers },
      held.filter(isApart),
      now
    )
  const inContainers = max_container_instances === undefined ? 0 : view.activeContainers
  return refuseLimit(
    view,
    {
      code: "ACTIVATION_LIMIT_REACHED",
      limit: max_activations,
      active: view.license.active_device_count - inContainers
    },
    held.filter((device) => !isApart(device)),
    now
  )
}

/** Until when the slot of a device that is not activated stays taken. */
export const heldUntil = (device: DeviceRecord | undefined, now: number): number | undefined => {
  const until = device?.slot_held_until
  return until !== undefined && now < until ? until : undefined
}

/** The devices whose slots are held. For nearly all licenses one comparison shows that there are none. */
const heldSlots = ({ devices, license }: LicenseView, now: number): ReadonlyArray<DeviceRecord> =>
  (license.slots_held_until ?? 0) <= now
    ? []
    : Array.from(devices).filter((device) => heldUntil(device, now) !== undefined)

interface Limit {
  readonly code: LimitCode
  readonly limit: number
  readonly active: number
}

/** 0 = unlimited. */
const refuseLimit = (
  view: LicenseView,
  { active, code, limit }: Limit,
  held: ReadonlyArray<DeviceRecord>,
  now: number
): Refused<LimitCode> | undefined => {
  const used = active + held.length
  if (limit === 0 || used < limit) return undefined
  return reject(code, limitMessages[code](limit), {
    detail: String(limit),
    facts: {
      max: limit,
      used,
      ...(used === limit && held.length > 0 ? { retry_after_seconds: untilFreed(held, now) } : undefined)
    },
    ...(wasLimitRecorded(view, now) ? undefined : { recorded: limitRecord(view, code, limit, now) })
  })
}

const untilFreed = (held: ReadonlyArray<DeviceRecord>, now: number): number =>
  Math.ceil((Math.min(...held.map((device) => heldUntil(device, now) ?? now)) - now) / 1000)

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
