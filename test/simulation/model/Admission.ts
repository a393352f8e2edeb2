/** The order of refusals in docs/API.md, and the members of every runtime answer. */
import type { Code } from "../../../src/contract/api/ErrorCode.ts"
import { formatTimestamp } from "../../../src/contract/api/Timestamp.ts"
import type { KeyedCommand, RuntimeCommand } from "../../../src/licensing/rules/Admission.ts"
import { shownEnd, termEnd } from "./Limits.ts"
import {
  type Answer,
  type Assignment,
  accessEnd,
  type Device,
  featureEnd,
  heartbeatCheck,
  isOverdue,
  type License,
  liveLeaseOf,
  minuteMillis,
  publishedVersion,
  type Situation,
  statusAt
} from "./Model.ts"
import { quotaIn, quotaTold } from "./Periods.ts"

export const refused = ({ license }: Situation, code: Code, ...events: ReadonlyArray<string>): Answer => ({
  code,
  license,
  events,
  ledger: [],
  reply: {}
})

export const accepted = (license: License, reply: Answer["reply"], ...events: ReadonlyArray<string>): Answer => ({
  license,
  events,
  ledger: [],
  reply
})

/** The code of the product that all licenses are of. */
export const productCode = "prod_own"

export const standing = ({ license, policy, now }: Situation, command: KeyedCommand): Code | undefined => {
  if (license.key !== command.keyHash) return "LICENSE_KEY_INVALID"
  if (command.productCode !== undefined && command.productCode !== productCode) return "PRODUCT_MISMATCH"
  const status = statusAt(license, policy, now)
  if (status === "suspended") return "LICENSE_SUSPENDED"
  if (status === "revoked") return "LICENSE_REVOKED"
  if (status === "expired") return "LICENSE_EXPIRED"
  return license.starts !== null && now < license.starts ? "LICENSE_NOT_STARTED" : undefined
}

export const bindingOf = ({ binding }: RuntimeCommand): string => `${binding.kind}:${binding.key}`

export const deviceOf = ({ license }: Situation, command: RuntimeCommand) => license.devices.get(bindingOf(command))

/** The refusals up to the version. `off` is the code for an operation that the policy disables. */
export const admission = (situation: Situation, command: RuntimeCommand, off?: Code): Code | undefined => {
  const { binding } = command
  const { catalog, license, policy } = situation
  const code = standing(situation, command)
  if (code !== undefined) return code
  if (deviceOf(situation, command)?.status === "blacklisted") return "DEVICE_BLACKLISTED"
  if (binding.is_vm && !policy.allow_vm) return "VM_NOT_ALLOWED"
  if (binding.is_container && !policy.allow_container) return "CONTAINER_NOT_ALLOWED"
  if (off !== undefined) return off
  if (binding.app_version === undefined || catalog.versions.size === 0) return undefined
  const released = catalog.versions.get(binding.app_version)
  if (released === undefined) return "VERSION_UNKNOWN"
  const cutoff = (policy.license_type === "perpetual" ? license.maintenance : license.expires) ?? termEnd(situation)
  return cutoff !== null && released > cutoff ? "VERSION_NOT_ENTITLED" : undefined
}

const text = (instant: number | null): string | undefined => (instant === null ? undefined : formatTimestamp(instant))

export const common = ({ license, policy, now }: Situation, device_id: string) => ({
  license_id: license.id,
  product_code: productCode,
  status: statusAt(license, policy, now),
  entitlement_version: publishedVersion(license, policy, now),
  device_id,
  licensee: policy.show_licensee && license.customer_name !== null ? { name: license.customer_name } : undefined,
  expires_at: text(license.expires),
  access_ends_at: license.expires === null ? undefined : formatTimestamp(accessEnd(license, policy))
})

export const features = (situation: Situation) =>
  Array.from(situation.license.assignments)
    .filter(([, assignment]) => assignment.enabled && situation.now < featureEnd(assignment))
    .map(([id, assignment]) => ({
      code: situation.catalog.features.get(id)!,
      enabled: true,
      ...(shownEnd(situation, assignment) !== undefined && {
        expires_at: formatTimestamp(shownEnd(situation, assignment)!)
      }),
      ...usageTold(assignment)
    }))
    .toSorted((a, b) => (a.code < b.code ? -1 : 1))

/** The usage of a feature with a quota. */
const usageTold = (assignment: Assignment) => {
  const { extra_credits, overage, remaining, resets_at } = quotaTold(assignment)
  const members = { extra_credits, overage, resets_at: resets_at && formatTimestamp(resets_at) }
  return remaining === undefined
    ? undefined
    : {
        quota: quotaIn(assignment),
        consumed: assignment.used,
        remaining,
        ...Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined))
      }
}

/** When features that are included now expire. */
const includedEnds = ({ license, now }: Situation): ReadonlyArray<number> =>
  Array.from(license.assignments.values())
    .filter(({ enabled, expires }) => enabled && expires !== null)
    .map(featureEnd)
    .filter((end) => now < end)

/** Two thirds of the interval if the policy requires heartbeats. */
const checkInterval = ({ policy }: Situation): number =>
  (policy.validation_interval_minutes * minuteMillis * (policy.require_heartbeat ? 2 : 3)) / 3

export const entitlement = (situation: Situation, device: Device) => ({
  ...common(situation, device.id),
  features: features(situation),
  next_check_at: formatTimestamp(
    Math.min(
      situation.now + checkInterval(situation),
      heartbeatCheck(device, situation),
      accessEnd(situation.license, situation.policy),
      ...includedEnds(situation)
    )
  )
})

/** The refusal of operations that need an activation or a seat. */
export const inactive = ({ license, policy, now }: Situation, device: Device | undefined): Code | undefined => {
  if (device === undefined) return "DEVICE_NOT_FOUND"
  if (device.status === "active" && device.slot && !isOverdue(device, license, policy, now)) return undefined
  const lease = liveLeaseOf(license, device.id)?.[1]
  if (device.status === "active" && lease !== undefined && now < lease.ends) return undefined
  return "DEVICE_NOT_ACTIVE"
}
