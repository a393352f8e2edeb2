/**
 * Diagnoses what an operation would decide, with the result of each check and without changes. The checks and their
 * order are those of the operation. A check without a value in the request is omitted.
 */
import type { Code } from "../../contract/api/ErrorCode.ts"
import type { Binding } from "../model/Binding.ts"
import type { LicenseStatus } from "../model/License.ts"
import type { DeviceRecord, LicenseView } from "../model/LicenseRecords.ts"
import { hasSlot } from "./Activation.ts"
import { heldUntil, refuseFull } from "./ActivationLimits.ts"
import {
  activeDevice,
  activeDeviceOnly,
  isRefused,
  refuseBlacklisted,
  refuseContainer,
  refuseIdentity,
  refuseLicense,
  refuseStart,
  refuseVirtualMachine
} from "./Admission.ts"
import { refuseDisabled, refuseEnded, refuseExceeding } from "./Consumption.ts"
import { accept, type Refused, type Rule } from "./LicenseCommand.ts"
import { accessEndsAt, statusAt } from "./Lifecycle.ts"
import { activatedDevice, refuseOffline } from "./Offline.ts"
import { notEntitled } from "./Reversal.ts"
import { refuseBorrowing, refuseTaken, refuseUntil, refuseWithoutSeats } from "./Seats.ts"
import { beginTerm, withTerm } from "./Terms.ts"
import { gateVersion } from "./VersionGate.ts"

/** The operations that a diagnosis can ask about, the default first. */
export const diagnosed = ["validate", "activate", "check", "consume", "checkout", "offline"] as const

export interface DiagnoseCommand {
  readonly operation: (typeof diagnosed)[number]
  readonly product_code?: string | undefined
  /** Absent if the request names no machine or container. */
  readonly binding?: Binding | undefined
  readonly app_version?: string | undefined
  readonly feature_code?: string | undefined
  readonly amount: number
  /** Whether offline use activates a device that is not active. */
  readonly activate: boolean
  /** Until when a checkout would borrow its seat. */
  readonly until?: number | undefined
}

interface DiagnosisCheck {
  readonly name: string
  readonly passed: boolean
  readonly code?: Code
  readonly detail?: string
}

interface Decision {
  readonly admitted: boolean
  readonly code?: Code
  readonly message?: string
}

export interface Diagnosis extends Decision {
  readonly status: LicenseStatus
  readonly checks: ReadonlyArray<DiagnosisCheck>
  /** What an activation of the binding would decide, if it is not active. */
  readonly activation?: Decision
}

export const diagnose: Rule<DiagnoseCommand, Diagnosis, never> = {
  name: "diagnose",
  needs: ({ app_version, binding, operation }) => ({
    ...(binding && { binding: { kind: binding.kind, key: binding.key }, activeContainers: true }),
    seats: operation === "checkout",
    appVersion: app_version
  }),
  decide: (view, command, now) => {
    const checks = checksOf(view, command, now)
    const { binding } = command
    const isInactive = binding !== undefined && isRefused(activeDevice(view, view.device(binding), now))
    // A feature is no part of an activation.
    const activating: DiagnoseCommand = { ...command, operation: "activate", feature_code: undefined }
    return accept({}, () => ({
      ...decisionOf(checks),
      status: statusAt(view.license, view.policy, now),
      checks: checks.map(resultOf),
      ...(isInactive && { activation: decisionOf(checksOf(view, activating, now)) })
    }))
  }
}

const checksOf = (view: LicenseView, command: DiagnoseCommand, now: number): ReadonlyArray<Check> => [
  ...licenseChecks(view, command, now),
  ...bindingChecks(view, command),
  ...permissionChecks(view, command),
  ...versionChecks(view, command, now),
  ...borrowedTimeChecks(view, command, now),
  ...deviceChecks(view, command, now),
  ...featureChecks(view, command, now)
]

const decisionOf = (checks: ReadonlyArray<Check>): Decision => {
  const first = checks.find(([, refused]) => refused !== undefined)?.[1]
  return first === undefined ? { admitted: true } : { admitted: false, code: first.code, message: first.message }
}

type Check = readonly [name: string, refused: Refused<Code> | undefined]

const resultOf = ([name, refused]: Check): DiagnosisCheck =>
  refused === undefined
    ? { name, passed: true }
    : { name, passed: false, code: refused.code, detail: forVendor(refused.message) }

/** Refusals address the customer; diagnoses address the vendor. */
const forVendor = (message: string): string =>
  message.replaceAll("ask the vendor to ", "").replaceAll("ask the vendor for ", "issue ")

const licenseChecks = (
  view: LicenseView,
  { product_code: productCode }: DiagnoseCommand,
  now: number
): ReadonlyArray<Check> => {
  const keyHash = view.license.key_hash
  const refused = refuseLicense(view, { keyHash }, now)
  return [
    ...(productCode === undefined ? [] : [["product", refuseIdentity(view, { keyHash, productCode })] as const]),
    ["license_status", refused?.code === "LICENSE_NOT_STARTED" ? undefined : refused],
    ["license_start", refuseStart(view, now)]
  ]
}

const bindingChecks = (view: LicenseView, { binding }: DiagnoseCommand): ReadonlyArray<Check> =>
  binding === undefined
    ? []
    : [
        ["device_blacklist", refuseBlacklisted(view, { keyHash: view.license.key_hash, binding })],
        ["virtual_machine", refuseVirtualMachine(view, binding)],
        ["container", refuseContainer(view, binding)]
      ]

/** Operations that the policy or a limit can disable. */
const permissionChecks = (view: LicenseView, command: DiagnoseCommand): ReadonlyArray<Check> => {
  const { operation } = command
  if (operation === "offline") return [["offline_allowed", refuseOffline(view)]]
  if (operation !== "checkout") return []
  return [
    ["floating_enabled", refuseWithoutSeats(view)],
    ...(command.until === undefined ? [] : [["borrowing_allowed", refuseBorrowing(view.policy, command)] as const])
  ]
}

const versionChecks = (view: LicenseView, { app_version }: DiagnoseCommand, now: number): ReadonlyArray<Check> => {
  if (app_version === undefined) return []
  const gate = gateVersion(view, app_version, now)
  return [["app_version", gate !== undefined && "accepted" in gate ? gate : undefined]]
}

/** A checkout may begin the license's term, on which the end of access depends. */
const borrowedTimeChecks = (view: LicenseView, command: DiagnoseCommand, now: number): ReadonlyArray<Check> => {
  if (command.operation !== "checkout" || command.until === undefined) return []
  const { license, policy } = withTerm(view, beginTerm(view, now))
  return [["borrowed_time", refuseUntil(policy, command, accessEndsAt(license, policy), now)]]
}

const deviceChecks = (
  view: LicenseView,
  { activate, binding, operation }: DiagnoseCommand,
  now: number
): ReadonlyArray<Check> => {
  if (binding === undefined) return []
  const device = view.device(binding)
  if (operation === "activate" || (operation === "offline" && activate)) {
    return [["activation_limit", hasOwnSlot(device, now) ? undefined : refuseFull(view, binding, now)]]
  }
  if (operation === "checkout") return [["floating_limit", refuseTaken(view, device)]]
  const active = activeDeviceOf[operation](view, device, now)
  return [["device_active", isRefused(active) ? active : undefined]]
}

/** Also if the device is deactivated and its slot is held until its offline envelope ends. */
const hasOwnSlot = (device: DeviceRecord | undefined, now: number) =>
  (device !== undefined && hasSlot(device)) || heldUntil(device, now) !== undefined

/** The device that an operation requires. */
const activeDeviceOf = {
  validate: activeDevice,
  check: activeDeviceOnly,
  consume: activeDeviceOnly,
  offline: activatedDevice
} as const

const featureChecks = (
  view: LicenseView,
  { amount, feature_code }: DiagnoseCommand,
  now: number
): ReadonlyArray<Check> => {
  if (feature_code === undefined) return []
  const assignment = view.assignmentByCode(feature_code)
  if (assignment === undefined) return [["feature_entitled", notEntitled]]
  return [
    ["feature_entitled", undefined],
    ["feature_enabled", refuseDisabled(assignment)],
    ["feature_expiry", refuseEnded(assignment, now)],
    ["feature_quota", refuseExceeding(view, assignment, amount)]
  ]
}
