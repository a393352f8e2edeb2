/**
 * Diagnoses what validate would decide about a binding, and a consumption about a feature, with the result of each
 * check and without changes. The checks and their order are those of the operations. A check without a value in the
 * request is omitted.
 */
import type { Code } from "../../contract/api/ErrorCode.ts"
import type { Binding } from "../model/Binding.ts"
import type { LicenseStatus } from "../model/License.ts"
import type { LicenseView } from "../model/LicenseRecords.ts"
import {
  activeDevice,
  isRefused,
  refuseBlacklisted,
  refuseContainer,
  refuseLicense,
  refuseStart,
  refuseVirtualMachine
} from "./Admission.ts"
import { notEntitled, refuseDisabled, refuseEnded, refuseExceeding } from "./Consumption.ts"
import { accept, type Refused, type Rule } from "./LicenseCommand.ts"
import { statusAt } from "./Lifecycle.ts"
import { gateVersion } from "./VersionGate.ts"

export interface DiagnoseCommand {
  /** Absent if the request names no machine or container. */
  readonly binding?: Binding | undefined
  readonly app_version?: string | undefined
  readonly feature_code?: string | undefined
  readonly amount: number
}

interface DiagnosisCheck {
  readonly name: string
  readonly passed: boolean
  readonly code?: Code
  readonly detail?: string
}

export interface Diagnosis {
  readonly admitted: boolean
  readonly code?: Code
  readonly message?: string
  readonly status: LicenseStatus
  readonly checks: ReadonlyArray<DiagnosisCheck>
}

export const diagnose: Rule<DiagnoseCommand, Diagnosis, never> = {
  name: "diagnose",
  needs: ({ app_version, binding }) => ({
    ...(binding && { binding: { kind: binding.kind, key: binding.key } }),
    appVersion: app_version
  }),
  decide: (view, command, now) => {
    const checks = [
      ...licenseChecks(view, now),
      ...bindingChecks(view, command),
      ...versionChecks(view, command),
      ...deviceChecks(view, command, now),
      ...featureChecks(view, command, now)
    ]
    const first = checks.find(([, refused]) => refused !== undefined)?.[1]
    return accept({}, () => ({
      admitted: first === undefined,
      ...(first !== undefined && { code: first.code, message: first.message }),
      status: statusAt(view.license, view.policy, now),
      checks: checks.map(resultOf)
    }))
  }
}

type Check = readonly [name: string, refused: Refused<Code> | undefined]

const resultOf = ([name, refused]: Check): DiagnosisCheck =>
  refused === undefined
    ? { name, passed: true }
    : { name, passed: false, code: refused.code, detail: forVendor(refused.message) }

/** Refusals address the customer; diagnoses address the vendor. */
const forVendor = (message: string): string =>
  message.replaceAll("ask the vendor to ", "").replaceAll("ask the vendor for ", "issue ")

const licenseChecks = (view: LicenseView, now: number): ReadonlyArray<Check> => {
  const refused = refuseLicense(view, { keyHash: view.license.key_hash }, now)
  return [
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

const versionChecks = (view: LicenseView, { app_version }: DiagnoseCommand): ReadonlyArray<Check> => {
  if (app_version === undefined) return []
  const gate = gateVersion(view, app_version)
  return [["app_version", gate !== undefined && "accepted" in gate ? gate : undefined]]
}

const deviceChecks = (view: LicenseView, { binding }: DiagnoseCommand, now: number): ReadonlyArray<Check> => {
  if (binding === undefined) return []
  const device = activeDevice(view, view.device(binding), now)
  return [["device_active", isRefused(device) ? device : undefined]]
}

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
    ["feature_quota", refuseExceeding(assignment, amount)]
  ]
}
