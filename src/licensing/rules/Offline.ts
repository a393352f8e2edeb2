/**
 * Entitlements for activated devices without a connection (docs/API.md, "Offline envelopes"). The rule builds the
 * payload. The runtime signs it, encrypts it with its signature for the holder of the license key, and signs the
 * envelope.
 */
import { dayMillis, formatTimestamp } from "../../contract/api/Timestamp.ts"
import { slackMillis } from "../../vendor/policies/Policy.ts"
import type { Changes, DeviceRecord, LicenseView } from "../model/LicenseRecords.ts"
import type { OfflineEntitlement } from "../model/Payloads.ts"
import { type ActivateCommand, newActivation, runtimeNeeds } from "./Activation.ts"
import type { LimitCode } from "./ActivationLimits.ts"
import {
  type AdmissionCode,
  activeDeviceOnly,
  admit,
  isActivated,
  isRefused,
  type RuntimeCommand
} from "./Admission.ts"
import { entitlementOf } from "./Entitlement.ts"
import { explain } from "./Explanation.ts"
import { accept, licenseEvent, type Refused, type Rule, reject } from "./LicenseCommand.ts"
import { accessEndsAt } from "./Lifecycle.ts"

export interface OfflineCommand extends RuntimeCommand {
  /** Present if a device that is not active is activated, by the rules of `activate`. */
  readonly activation?: Pick<ActivateCommand, "newDeviceId"> | undefined
}

export const issueOffline: Rule<
  OfflineCommand,
  OfflineEntitlement,
  AdmissionCode | LimitCode | "OFFLINE_NOT_ALLOWED" | "DEVICE_NOT_FOUND" | "DEVICE_NOT_ACTIVE"
> = {
  name: "offline",
  explain,
  needs: (command) => ({ ...runtimeNeeds(command), activeContainers: command.activation !== undefined }),
  decide: (view, command, now) => {
    const admitted = admit(view, command, now, refuseOffline)
    if (isRefused(admitted)) return admitted
    const found = admitted.device
    const activation =
      command.activation !== undefined && (found === undefined || !isActivated(view, found, now))
        ? newActivation(view, { ...command, ...command.activation }, found, now)
        : undefined
    if (activation !== undefined && isRefused(activation)) return activation
    const device = activation?.device ?? activatedDevice(view, found, now)
    if (isRefused(device)) return device
    // The term of a license may begin with the activation.
    const offlineEnd = offlineEndsAt(view, activation?.changes.license, now)
    const kept = keptUntil(device, offlineEnd)
    const offline = { offline_expires_at: formatTimestamp(offlineEnd), binding_kind: device.binding_kind }
    return accept(
      {
        ...activation?.changes,
        // A held slot depends on the end, so it is fenced.
        devices: [kept],
        events: [
          ...(activation?.changes.events ?? []),
          licenseEvent("license.offline_issued", view.license.id, {
            device_id: device.id,
            ...command.binding.redacted(),
            ...offline
          })
        ]
      },
      (after) => ({ ...entitlementOf(after, kept, now, admitted.eligibility), ...offline, kind: "offline" })
    )
  }
}

export const refuseOffline = ({ policy }: LicenseView): Refused<"OFFLINE_NOT_ALLOWED"> | undefined =>
  policy.allow_offline_activation
    ? undefined
    : reject("OFFLINE_NOT_ALLOWED", "The policy does not allow offline use: stay connected and validate instead.")

/** Requires an activation; a floating seat does not suffice. */
export const activatedDevice = (
  view: LicenseView,
  found: DeviceRecord | undefined,
  now: number
): DeviceRecord | Refused<"DEVICE_NOT_FOUND" | "DEVICE_NOT_ACTIVE"> => {
  const device = activeDeviceOnly(view, found, now)
  return isRefused(device) || isActivated(view, device, now) ? device : refuseSeatHolder
}

const refuseSeatHolder = reject(
  "DEVICE_NOT_ACTIVE",
  "A floating seat ends without a heartbeat: activate the device first."
)

/** The end of offline use: after the license's days, but not after the end of access. */
const offlineEndsAt = ({ license, limits, policy }: LicenseView, changes: Changes["license"], now: number): number =>
  Math.min(
    now + limits.offline_grace_days * dayMillis,
    accessEndsAt({ ...license, ...changes }, policy) ?? Number.POSITIVE_INFINITY
  )

/** The device keeps its slot until the envelope expires. */
const keptUntil = (device: DeviceRecord, offlineEnd: number): DeviceRecord => {
  const offline_expires_at = Math.max(offlineEnd, device.offline_expires_at ?? 0)
  return { ...device, offline_expires_at, due_at: Math.max(device.due_at ?? 0, offline_expires_at + slackMillis) }
}
