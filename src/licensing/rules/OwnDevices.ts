/** What the holder of a license key may see and do with all devices of the license (docs/API.md, "Own devices"). */
import { dayMillis } from "../../contract/api/Timestamp.ts"
import { digestsOf } from "../model/BindingDigests.ts"
import type { LicenseView } from "../model/LicenseRecords.ts"
import type { Deactivation, OwnDevicesFacts } from "../model/Payloads.ts"
import { deactivation, hasSlot, notActivated } from "./Activation.ts"
import { blacklisted, type KeyedCommand, refuseRevokedLicense } from "./Admission.ts"
import { deactivationOf, ownDevicesOf } from "./Entitlement.ts"
import { explain } from "./Explanation.ts"
import { accept, type Refused, type Rule, reject } from "./LicenseCommand.ts"

type OwnerCode = "LICENSE_KEY_INVALID" | "PRODUCT_MISMATCH" | "LICENSE_REVOKED"

/** The facts about the license that a list of its devices begins with. */
export const listOwnDevices: Rule<KeyedCommand, OwnDevicesFacts, OwnerCode> = {
  name: "list own devices",
  explain,
  decide: (view, command, now) =>
    refuseRevokedLicense(view, command) ??
    accept({}, (after) => ownDevicesOf(after, Math.max(0, monthlyMax(after) - recentOf(after, now).length), now))
}

export interface OwnDeviceCommand extends KeyedCommand {
  readonly deviceId: string
}

/**
 * Frees the slot of a device, in every state of the license but revoked. The slot of a device with a valid offline
 * envelope stays taken until the envelope expires, because the device may work until then.
 */
export const deactivateOwn: Rule<
  OwnDeviceCommand,
  Deactivation,
  OwnerCode | "DEVICE_NOT_FOUND" | "DEVICE_BLACKLISTED" | "DEVICE_STATE_CONFLICT" | "SELF_DEACTIVATION_LIMIT_REACHED"
> = {
  name: "deactivate own device",
  explain,
  needs: ({ deviceId }) => ({ deviceId }),
  decide: (view, command, now) => {
    const refused = refuseRevokedLicense(view, command)
    if (refused !== undefined) return refused
    const device = view.deviceById(command.deviceId)
    if (device === undefined)
      return reject("DEVICE_NOT_FOUND", "The license has no device with this id: list its devices.")
    if (device.status === "blacklisted") return blacklisted
    if (!hasSlot(device)) return reject("DEVICE_STATE_CONFLICT", notActivated(device), { detail: device.status })
    const recent = recentOf(view, now)
    const limited = refuseOften(view, recent, now)
    if (limited !== undefined) return limited
    const { changes, device: deactivated } = deactivation(
      view,
      device,
      { holds: true, digests: digestsOf(device) },
      now
    )
    return accept({ ...changes, license: { ...changes.license, self_deactivated_at: [...recent, now] } }, (after) =>
      deactivationOf(after, deactivated, now)
    )
  }
}

const monthMillis = 30 * dayMillis

const monthlyMax = ({ limits }: LicenseView): number => limits.self_deactivations_per_month

/** The deactivations that count now, the earliest first. */
const recentOf = ({ license }: LicenseView, now: number): ReadonlyArray<number> =>
  (license.self_deactivated_at ?? []).filter((at) => at > now - monthMillis)

const refuseOften = (
  view: LicenseView,
  recent: ReadonlyArray<number>,
  now: number
): Refused<"SELF_DEACTIVATION_LIMIT_REACHED"> | undefined => {
  const max = monthlyMax(view)
  const used = recent.length
  if (used < max) return undefined
  if (max === 0)
    return reject(
      "SELF_DEACTIVATION_LIMIT_REACHED",
      "Devices of the license can be deactivated only on the device itself, or by the vendor: ask the vendor.",
      { detail: "0", facts: { max, used } }
    )
  // The earlier ones must leave the 30 days first.
  const next = recent[used - max]! + monthMillis
  return reject(
    "SELF_DEACTIVATION_LIMIT_REACHED",
    `The license's devices were deactivated ${used} times in 30 days, and ${max} are allowed: try again later, or ask the vendor.`,
    { detail: String(max), facts: { max, used, retry_after_seconds: Math.ceil((next - now) / 1000) } }
  )
}
