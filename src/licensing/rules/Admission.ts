/**
 * The checks that all runtime operations share, in a fixed order: key, license state, blacklist, virtual machines and
 * containers, operations that the policy disables, application version, and then the operation's own checks. The first
 * failed check determines the refusal.
 */
import type { Code } from "../../contract/api/ErrorCode.ts"
import { formatTimestamp } from "../../contract/api/Timestamp.ts"
import type { LicenseType } from "../../vendor/policies/Policy.ts"
import type { Binding } from "../model/Binding.ts"
import type { DeviceRecord, LicenseView } from "../model/LicenseRecords.ts"
import type { Eligibility } from "../model/Payloads.ts"
import { type Refused, reject } from "./LicenseCommand.ts"
import { isOverdue, statusAt } from "./Lifecycle.ts"
import { renewable } from "./Terms.ts"
import { gateVersion } from "./VersionGate.ts"

/** A command that is authenticated by a license key. */
export interface KeyedCommand {
  /** SHA-256 of the request's key. Rules compare it, so that a rotated key is refused immediately. */
  readonly keyHash: string
  /** The application's product, if the request names it. */
  readonly productCode?: string | undefined
  /** Whether another node may have executed this command with an unknown outcome. */
  readonly isRepeated?: boolean
}

/** Longer than the transport of a command, and than the difference between the clocks of nodes. */
const repeatedMillisMax = 60_000

/** Whether the first execution of a repeated command has already done the requested change. */
export const isDoneAlready = ({ isRepeated }: KeyedCommand, doneAt: number | undefined, now: number): boolean =>
  isRepeated === true && doneAt !== undefined && Math.abs(now - doneAt) < repeatedMillisMax

/** A runtime command of a machine or container instance. */
export interface RuntimeCommand extends KeyedCommand {
  readonly binding: Binding
}

type IdentityCode = "LICENSE_KEY_INVALID" | "PRODUCT_MISMATCH"

export type LicenseCode =
  | IdentityCode
  | "LICENSE_SUSPENDED"
  | "LICENSE_REVOKED"
  | "LICENSE_EXPIRED"
  | "LICENSE_NOT_STARTED"

export type DeviceAccessCode = LicenseCode | "DEVICE_BLACKLISTED"

export type AdmissionCode =
  | DeviceAccessCode
  | "VM_NOT_ALLOWED"
  | "CONTAINER_NOT_ALLOWED"
  | "VERSION_UNKNOWN"
  | "VERSION_NOT_ENTITLED"

export const refuseKey = (
  { license }: LicenseView,
  command: KeyedCommand
): Refused<"LICENSE_KEY_INVALID"> | undefined =>
  license.key_hash === command.keyHash
    ? undefined
    : reject("LICENSE_KEY_INVALID", "The license key is not valid: check it for typing errors.")

/** Checks the key and the product. */
export const refuseIdentity = (view: LicenseView, command: KeyedCommand): Refused<IdentityCode> | undefined => {
  const refused = refuseKey(view, command)
  if (refused !== undefined) return refused
  return command.productCode === undefined || command.productCode === view.productCode
    ? undefined
    : reject("PRODUCT_MISMATCH", "The license is for another product: use a license key of this product.", {
        detail: "product_code"
      })
}

/** Checks the key, the product, and that the license is not revoked. `deactivate` has no further check of the license. */
export const refuseRevokedLicense = (
  view: LicenseView,
  command: KeyedCommand
): Refused<IdentityCode | "LICENSE_REVOKED"> | undefined => {
  const refused = refuseIdentity(view, command)
  if (refused !== undefined) return refused
  return view.license.status === "revoked"
    ? reject("LICENSE_REVOKED", "The license is revoked and cannot be used again: ask the vendor for a new one.")
    : undefined
}

/** Checks the key, the product and the license's state. */
export const refuseLicense = (
  view: LicenseView,
  command: KeyedCommand,
  now: number
): Refused<LicenseCode> | undefined => {
  const refused = refuseRevokedLicense(view, command)
  if (refused !== undefined) return refused
  const { license, policy } = view
  switch (statusAt(license, policy, now)) {
    case "suspended":
      return reject("LICENSE_SUSPENDED", "The license is suspended: ask the vendor to reinstate it.")
    case "expired":
      return reject("LICENSE_EXPIRED", expiredMessage(policy.license_type))
  }
  return refuseStart(view, now)
}

export const refuseStart = ({ license }: LicenseView, now: number): Refused<"LICENSE_NOT_STARTED"> | undefined =>
  license.starts_at !== undefined && now < license.starts_at
    ? reject(
        "LICENSE_NOT_STARTED",
        `The license starts at ${formatTimestamp(license.starts_at)}: try again from then on.`,
        { facts: { retry_after_seconds: Math.ceil((license.starts_at - now) / 1000) } }
      )
    : undefined

/** Licenses of the types consumption and perpetual cannot be renewed. */
const expiredMessage = (type: LicenseType): string => {
  if (type === "trial") return "The trial has expired: ask the vendor for a license."
  return renewable.has(type)
    ? "The license has expired: renew it to go on."
    : "The license has expired: ask the vendor to extend it."
}

/** Checks the key, the license's state and the blacklist. */
const refuseAccess = (view: LicenseView, command: RuntimeCommand, now: number): Refused<DeviceAccessCode> | undefined =>
  refuseLicense(view, command, now) ?? refuseBlacklisted(view, command)

export const refuseBlacklisted = (
  view: LicenseView,
  { binding }: RuntimeCommand
): Refused<"DEVICE_BLACKLISTED"> | undefined =>
  view.device(binding)?.status === "blacklisted" ? blacklisted : undefined

export const blacklisted = reject(
  "DEVICE_BLACKLISTED",
  "This device is blacklisted: ask the vendor to remove it from the blacklist."
)

export interface Admitted {
  readonly accepted?: undefined
  readonly device: DeviceRecord | undefined
  readonly eligibility: Eligibility | undefined
}

/** Runs all shared checks. `switchedOff` checks an operation that policies can disable. */
export const admit = <C extends Code = never>(
  view: LicenseView,
  command: RuntimeCommand,
  now: number,
  switchedOff?: (view: LicenseView) => Refused<C> | undefined
): Admitted | Refused<AdmissionCode | C> => {
  const refused = refuseAccess(view, command, now)
  if (refused !== undefined) return refused
  const { binding } = command
  const unsuitable = refuseVirtualMachine(view, binding) ?? refuseContainer(view, binding)
  if (unsuitable !== undefined) return unsuitable
  const disabled = switchedOff?.(view)
  if (disabled !== undefined) return disabled
  const eligibility = gateVersion(view, binding.app_version, now)
  if (eligibility !== undefined && "accepted" in eligibility) return eligibility
  return { device: view.device(binding), eligibility }
}

export const refuseVirtualMachine = (
  { policy }: LicenseView,
  { is_vm }: Binding
): Refused<"VM_NOT_ALLOWED"> | undefined =>
  is_vm && !policy.allow_vm
    ? reject(
        "VM_NOT_ALLOWED",
        "The license cannot be used in a virtual machine: use another machine, or ask the vendor to allow it.",
        { detail: "is_vm" }
      )
    : undefined

export const refuseContainer = (
  { policy }: LicenseView,
  { is_container }: Binding
): Refused<"CONTAINER_NOT_ALLOWED"> | undefined =>
  is_container && !policy.allow_container
    ? reject(
        "CONTAINER_NOT_ALLOWED",
        "The license cannot be used in a container: use it outside of one, or ask the vendor to allow it.",
        { detail: "is_container" }
      )
    : undefined

export type ActiveDeviceCode = "DEVICE_NOT_FOUND" | "DEVICE_NOT_ACTIVE" | "HEARTBEAT_OVERDUE"

/** Requires a device that is activated or has a floating seat. Only validate distinguishes an overdue heartbeat. */
export const activeDevice = (
  view: LicenseView,
  device: DeviceRecord | undefined,
  now: number
): DeviceRecord | Refused<ActiveDeviceCode> => {
  if (device === undefined)
    return reject("DEVICE_NOT_FOUND", "This device is not known to the license: activate it first.")
  if (isActivated(view, device, now) || holdsSeat(view, device, now)) return device
  if (hasMissedHeartbeat(view, device)) {
    return reject(
      "HEARTBEAT_OVERDUE",
      "The device did not validate in time and its activation lapsed: activate it again."
    )
  }
  return device.status === "active"
    ? reject("DEVICE_NOT_ACTIVE", "The device's floating lease has lapsed: check out again.")
    : reject("DEVICE_NOT_ACTIVE", `The device is ${device.status}: activate it again.`)
}

export const isActivated = ({ license, policy }: LicenseView, device: DeviceRecord, now: number): boolean =>
  device.status === "active" && device.holds_slot && !isOverdue(device, license, policy, now)

const holdsSeat = (view: LicenseView, device: DeviceRecord, now: number): boolean => {
  const lease = view.liveLeaseOf(device.id)
  return device.status === "active" && lease !== undefined && now < lease.expires_at
}

/** Whether an inactive device lost an activation, and not a floating lease. */
const hasMissedHeartbeat = ({ policy }: LicenseView, { status, activated_at }: DeviceRecord): boolean =>
  policy.require_heartbeat && activated_at !== undefined && (status === "active" || status === "expired")

/** Like `activeDevice`, for operations that are no heartbeats: a lapsed activation is not active. */
export const activeDeviceOnly = (
  view: LicenseView,
  device: DeviceRecord | undefined,
  now: number
): DeviceRecord | Refused<"DEVICE_NOT_FOUND" | "DEVICE_NOT_ACTIVE"> => {
  const active = activeDevice(view, device, now)
  return isRefused(active) && active.code === "HEARTBEAT_OVERDUE"
    ? reject("DEVICE_NOT_ACTIVE", "The device's activation lapsed: activate it again.")
    : (active as DeviceRecord | Refused<"DEVICE_NOT_FOUND" | "DEVICE_NOT_ACTIVE">)
}

export const isRefused = <A extends object>(value: A): value is Extract<A, Refused<Code>> =>
  "accepted" in value && value.accepted === false
