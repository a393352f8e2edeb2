/** Binding devices to a license: activate, validate, check, deactivate (docs/API.md, "Devices"). */
import { noMetadata } from "../../contract/api/Metadata.ts"
import { formatTimestamp } from "../../contract/api/Timestamp.ts"
import type { NewEvent } from "../../ledger/events/Entry.ts"
import { isRenamed, namesOf } from "../model/DeviceNames.ts"
import { boundLoweredTo, dueAfterContact } from "../model/Heartbeat.ts"
import type { Changes, DeviceRecord, LicenseView } from "../model/LicenseRecords.ts"
import type { Deactivation, Entitlement } from "../model/Payloads.ts"
import { heldUntil, type LimitCode, refuseFull } from "./ActivationLimits.ts"
import {
  type ActiveDeviceCode,
  type AdmissionCode,
  activeDevice,
  activeDeviceOnly,
  admit,
  isDoneAlready,
  isRefused,
  type RuntimeCommand,
  refuseBlacklisted,
  refuseRevokedLicense
} from "./Admission.ts"
import { deactivationOf, entitlementOf } from "./Entitlement.ts"
import { explain } from "./Explanation.ts"
import { accept, licenseEvent, type Needs, type Refused, type Rule, reject } from "./LicenseCommand.ts"
import { beginTerm } from "./Terms.ts"

/** The minimum interval between writes of a device's `last_seen_at`, so that not every call causes a write. */
const seenEveryMillis = 1000

export const runtimeNeeds = ({ binding }: RuntimeCommand): Needs => ({
  binding: { kind: binding.kind, key: binding.key },
  appVersion: binding.app_version
})

/** Contains the id for a new device, because rules generate no ids. */
export interface ActivateCommand extends RuntimeCommand {
  readonly newDeviceId: string
}

export const activate: Rule<ActivateCommand, Entitlement, AdmissionCode | LimitCode> = {
  name: "activate",
  explain,
  needs: (command) => ({ ...runtimeNeeds(command), activeContainers: true }),
  decide: (view, command, now) => {
    const admitted = admit(view, command, now)
    if (isRefused(admitted)) return admitted
    const { device, eligibility } = admitted
    if (device !== undefined && hasSlot(device)) {
      const seen = seenDevice(view, device, command, now, false)
      return accept(seenChanges(view, device, seen), (after) => entitlementOf(after, seen, now, eligibility))
    }
    const activation = newActivation(view, command, device, now)
    if (isRefused(activation)) return activation
    return accept(activation.changes, (after) => entitlementOf(after, activation.device, now, eligibility))
  }
}

interface DeviceChange {
  readonly device: DeviceRecord
  readonly changes: Changes
}

/** The activation of an admitted device without a slot. A slot that is held for the device is its own. */
export const newActivation = (
  view: LicenseView,
  command: ActivateCommand,
  before: DeviceRecord | undefined,
  now: number
): DeviceChange | Refused<LimitCode> => {
  const refused = heldUntil(before, now) === undefined ? refuseFull(view, command.binding, now) : undefined
  if (refused !== undefined) return refused
  const due_at = dueAfterContact(view.policy, before ?? {}, now)
  const device = boundDevice(before, command, { holds_slot: true, activated_at: now, due_at }, now)
  const begun = beginTerm(view, now)
  const event = deviceEvent(view, "license.activated", device, {
    ...command.binding.redacted(),
    binding_kind: device.binding_kind,
    status: { old: before?.status ?? null, new: "active" }
  })
  return {
    device,
    changes: {
      license: {
        active_device_count: view.license.active_device_count + 1,
        times_activated: view.license.times_activated + 1,
        ...boundLoweredTo(view.license, due_at),
        ...begun?.license,
        updated_at: now
      },
      entitlement: begun !== undefined,
      assignments: begun?.assignments ?? [],
      devices: [device],
      events: begun === undefined ? [event] : [event, begun.event]
    }
  }
}

/** Whether activating the device again takes no further slot. */
export const hasSlot = ({ holds_slot, status }: DeviceRecord): boolean => status === "active" && holds_slot

/** The device of a command, new or known, with its activation or seat. */
export const boundDevice = (
  existing: DeviceRecord | undefined,
  { binding, newDeviceId }: ActivateCommand,
  taken: Pick<DeviceRecord, "holds_slot" | "activated_at" | "due_at" | "slot_held_until">,
  now: number
): DeviceRecord => {
  const { kind, key, hash, redacted: _, app_version: __, ...described } = binding
  return {
    id: existing?.id ?? newDeviceId,
    binding_kind: kind,
    binding_key: key,
    binding_hash: existing?.binding_hash ?? hash(),
    ...described,
    ...namesOf(existing, binding),
    status: "active",
    first_seen_at: existing?.first_seen_at ?? now,
    last_seen_at: now,
    last_validated_at: existing?.last_validated_at,
    ...taken,
    offline_expires_at: existing?.offline_expires_at,
    metadata: existing?.metadata ?? noMetadata,
    created_at: existing?.created_at ?? now,
    updated_at: now
  }
}

/** The device after a response, which promises it a whole interval; the same record if nothing has to be written. */
const seenDevice = (
  { policy }: LicenseView,
  device: DeviceRecord,
  { binding }: RuntimeCommand,
  now: number,
  validated: boolean
): DeviceRecord => {
  const renamed = isRenamed(device, binding)
  const due_at = dueAfterContact(policy, device, now)
  const last = validated ? (device.last_validated_at ?? 0) : device.last_seen_at
  const isRecent = now - last < seenEveryMillis && Math.abs(due_at - (device.due_at ?? 0)) < seenEveryMillis
  if (isRecent && !renamed) return device
  return {
    ...device,
    ...(renamed ? { ...namesOf(device, binding), updated_at: now } : undefined),
    due_at,
    last_seen_at: now,
    ...(validated ? { last_validated_at: now } : undefined)
  }
}

/** Changes of names raise the revision; so does the due instant if the policy requires heartbeats. */
const seenChanges = ({ license, policy }: LicenseView, device: DeviceRecord, seen: DeviceRecord): Changes => {
  if (seen === device) return {}
  const lowered = seen.due_at === undefined ? undefined : boundLoweredTo(license, seen.due_at)
  if (lowered !== undefined) return { devices: [seen], license: lowered }
  return policy.require_heartbeat || isRenamed(device, seen) ? { devices: [seen] } : { seen }
}

export const validate: Rule<RuntimeCommand, Entitlement, AdmissionCode | ActiveDeviceCode> = {
  name: "validate",
  explain,
  needs: runtimeNeeds,
  decide: (view, command, now) => {
    const admitted = admit(view, command, now)
    if (isRefused(admitted)) return admitted
    const device = activeDevice(view, admitted.device, now)
    if (isRefused(device)) return device
    const seen = seenDevice(view, device, command, now, true)
    return accept(seenChanges(view, device, seen), (after) => entitlementOf(after, seen, now, admitted.eligibility))
  }
}

/** Like `validate`, without writing anything. */
export const check: Rule<RuntimeCommand, Entitlement, AdmissionCode | "DEVICE_NOT_FOUND" | "DEVICE_NOT_ACTIVE"> = {
  name: "check",
  explain,
  needs: runtimeNeeds,
  decide: (view, command, now) => {
    const admitted = admit(view, command, now)
    if (isRefused(admitted)) return admitted
    const device = activeDeviceOnly(view, admitted.device, now)
    if (isRefused(device)) return device
    return accept({}, (after) => entitlementOf(after, device, now, admitted.eligibility))
  }
}

/**
 * Frees a slot. This is always possible: the version and the kind of machine are not checked, and the license may be
 * suspended, expired or not started.
 */
export const deactivate: Rule<
  RuntimeCommand,
  Deactivation,
  | "LICENSE_KEY_INVALID"
  | "PRODUCT_MISMATCH"
  | "LICENSE_REVOKED"
  | "DEVICE_BLACKLISTED"
  | "DEVICE_NOT_FOUND"
  | "DEVICE_STATE_CONFLICT"
> = {
  name: "deactivate",
  explain,
  needs: ({ binding }) => ({ binding: { kind: binding.kind, key: binding.key } }),
  decide: (view, command, now) => {
    const refused = refuseRevokedLicense(view, command) ?? refuseBlacklisted(view, command)
    if (refused !== undefined) return refused
    const device = view.device(command.binding)
    if (device === undefined)
      return reject(
        "DEVICE_NOT_FOUND",
        "This device is not known to the license: send the binding that it was activated with."
      )
    if (!device.holds_slot && isDoneAlready(command, device.updated_at, now))
      return accept({}, (after) => deactivationOf(after, device, now))
    if (device.status !== "active" || !device.holds_slot) {
      return reject("DEVICE_STATE_CONFLICT", notActivated(device), { detail: device.status })
    }
    const seen = { ...device, last_seen_at: now }
    const { changes, device: deactivated } = deactivation(
      view,
      seen,
      { holds: view.policy.hold_offline_slots, digests: command.binding.redacted() },
      now
    )
    return accept(changes, (after) => deactivationOf(after, deactivated, now))
  }
}

/** The deactivation of a device with a slot. If `holds` is true, its slot stays taken until its offline envelope expires. */
export const deactivation = (
  view: LicenseView,
  device: DeviceRecord,
  { digests, holds }: { readonly holds: boolean; readonly digests: NewEvent["metadata"] },
  now: number
): DeviceChange => {
  const { active_device_count, slots_held_until = 0 } = view.license
  const { offline_expires_at = 0 } = device
  const held = holds && offline_expires_at > now ? offline_expires_at : undefined
  // With a floating seat the device stays active, and has no activation that could lapse.
  const holdsSeat = view.liveLeaseOf(device.id) !== undefined
  const deactivated: DeviceRecord = {
    ...device,
    status: holdsSeat ? "active" : "deactivated",
    holds_slot: false,
    activated_at: holdsSeat ? undefined : device.activated_at,
    ...(held === undefined ? undefined : { slot_held_until: held }),
    updated_at: now
  }
  return {
    device: deactivated,
    changes: {
      license: {
        active_device_count: active_device_count - 1,
        ...(held !== undefined && held > slots_held_until ? { slots_held_until: held } : undefined),
        updated_at: now
      },
      devices: [deactivated],
      events: [
        deviceEvent(view, "license.deactivated", deactivated, {
          ...digests,
          binding_kind: device.binding_kind,
          status: { old: "active", new: deactivated.status },
          ...(held === undefined ? undefined : { slot_held_until: formatTimestamp(held) })
        })
      ]
    }
  }
}

const deviceEvent = (
  view: LicenseView,
  event_type: "license.activated" | "license.deactivated",
  device: DeviceRecord,
  metadata: NewEvent["metadata"]
) => licenseEvent(event_type, view.license.id, { device_id: device.id, ...metadata })

/** An active device without an activation has a floating seat. */
export const notActivated = ({ status }: DeviceRecord): string =>
  status === "active"
    ? "The device has a floating seat and no activation: check the seat in instead."
    : `The device is ${status} and has no activation: it need not be deactivated.`
