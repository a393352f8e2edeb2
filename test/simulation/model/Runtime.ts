/** What the runtime's commands should come to, by the ladder of refusals that docs/API.md states. */
import type { Code } from "../../../src/api/Failure.ts"
import { formatTimestamp } from "../../../src/api/Timestamp.ts"
import type { ActivateCommand } from "../../../src/licenses/Activation.ts"
import type { RuntimeCommand } from "../../../src/licenses/Admission.ts"
import type { ConsumeCommand } from "../../../src/licenses/Consumption.ts"
import type { CheckoutCommand, LeaseCommand } from "../../../src/licenses/Floating.ts"
import {
  type Answer,
  type Assignment,
  accessEnd,
  type Device,
  dayMillis,
  deviceById,
  endLease,
  isOverdue,
  type License,
  liveLeaseOf,
  liveLeases,
  minuteMillis,
  publishedVersion,
  replaced,
  type Situation,
  statusAt
} from "./Model.ts"

export const refused = ({ license }: Situation, code: Code, ...events: ReadonlyArray<string>): Answer => ({
  code,
  license,
  events,
  ledger: [],
  told: {}
})

export const accepted = (license: License, told: Answer["told"], ...events: ReadonlyArray<string>): Answer => ({
  license,
  events,
  ledger: [],
  told
})

const standing = ({ license, policy, now }: Situation, keyHash: string): Code | undefined => {
  if (license.key !== keyHash) return "LICENSE_KEY_INVALID"
  const status = statusAt(license, policy, now)
  if (status === "suspended") return "LICENSE_SUSPENDED"
  if (status === "revoked") return "LICENSE_REVOKED"
  if (status === "expired") return "LICENSE_EXPIRED"
  return license.starts !== null && now < license.starts ? "LICENSE_NOT_STARTED" : undefined
}

const bindingOf = ({ binding }: RuntimeCommand): string => `${binding.kind}:${binding.key}`

const deviceOf = ({ license }: Situation, command: RuntimeCommand) => license.devices.get(bindingOf(command))

/** The ladder up to the version. `off` stands where the policy switches an operation off. */
const admission = (situation: Situation, command: RuntimeCommand, off?: Code): Code | undefined => {
  const { binding, keyHash } = command
  const { around, license, policy } = situation
  const code = standing(situation, keyHash)
  if (code !== undefined) return code
  if (deviceOf(situation, command)?.status === "blacklisted") return "DEVICE_BLACKLISTED"
  if (binding.is_vm && !policy.allow_vm) return "VM_NOT_ALLOWED"
  if (binding.is_container && !policy.allow_container) return "CONTAINER_NOT_ALLOWED"
  if (off !== undefined) return off
  if (binding.app_version === undefined || around.versions.size === 0) return undefined
  const released = around.versions.get(binding.app_version)
  if (released === undefined) return "VERSION_UNKNOWN"
  const cutoff = policy.license_type === "perpetual" ? license.maintenance : license.expires
  return cutoff !== null && released > cutoff ? "VERSION_NOT_ENTITLED" : undefined
}

const text = (instant: number | null): string | undefined => (instant === null ? undefined : formatTimestamp(instant))

const common = ({ license, policy, now }: Situation, device_id: string) => ({
  license_id: license.id,
  status: statusAt(license, policy, now),
  entitlement_version: publishedVersion(license, policy, now),
  device_id,
  expires_at: text(license.expires)
})

const features = ({ license, around, now }: Situation) =>
  Array.from(license.assignments)
    .filter(([, { enabled, expires }]) => enabled && (expires === null || now < expires))
    .map(([id, { max, used }]) => ({
      code: around.features.get(id)!,
      enabled: true,
      ...(max === null ? undefined : { quota: max, consumed: used, remaining: Math.max(0, max - used) })
    }))
    .toSorted((a, b) => (a.code < b.code ? -1 : 1))

const entitlement = (situation: Situation, deviceId: string) => ({
  ...common(situation, deviceId),
  features: features(situation),
  next_check_at: formatTimestamp(
    Math.min(
      situation.now + situation.policy.validation_interval_minutes * minuteMillis,
      accessEnd(situation.license, situation.policy)
    )
  )
})

const slots = ({ devices }: License, kind?: Device["kind"]): number =>
  Array.from(devices.values()).filter((device) => device.slot && (kind === undefined || device.kind === kind)).length

const fullFor = ({ license, policy }: Situation, { binding }: RuntimeCommand): Code | undefined => {
  const { max_activations, max_container_instances } = policy
  const isApart = max_container_instances !== null
  if (isApart && binding.is_container) {
    const isFull = max_container_instances > 0 && slots(license, "container") >= max_container_instances
    return isFull ? "CONTAINER_LIMIT_REACHED" : undefined
  }
  const used = slots(license, isApart ? "hardware" : undefined)
  return max_activations > 0 && used >= max_activations ? "ACTIVATION_LIMIT_REACHED" : undefined
}

export const activate = (situation: Situation, command: ActivateCommand): Answer => {
  const code = admission(situation, command)
  if (code !== undefined) return refused(situation, code)
  const { license, now } = situation
  const known = deviceOf(situation, command)
  if (known?.status === "active" && known.slot) return accepted(license, entitlement(situation, known.id))
  const full = fullFor(situation, command)
  if (full !== undefined) return refused(situation, full, "license.activation_limit_reached")
  const device: Device = {
    id: known?.id ?? command.newDeviceId,
    kind: command.binding.kind,
    status: "active",
    slot: true,
    activated: now,
    validated: known?.validated ?? null
  }
  const after = {
    ...license,
    active: license.active + 1,
    activations: license.activations + 1,
    devices: replaced(license.devices, bindingOf(command), device)
  }
  return accepted(after, entitlement({ ...situation, license: after }, device.id), "license.activated")
}

/** The rung of the operations that need an activation or a seat. */
const inactive = ({ license, policy, now }: Situation, device: Device | undefined): Code | undefined => {
  if (device === undefined) return "DEVICE_NOT_FOUND"
  if (device.status === "active" && device.slot && !isOverdue(device, policy, now)) return undefined
  const lease = liveLeaseOf(license, device.id)?.[1]
  if (device.status === "active" && lease !== undefined && now < lease.ends) return undefined
  return "DEVICE_NOT_ACTIVE"
}

export const validate = (situation: Situation, command: RuntimeCommand): Answer => {
  const device = deviceOf(situation, command)
  const code = admission(situation, command) ?? inactive(situation, device)
  const isSilent = code === "DEVICE_NOT_ACTIVE" && device!.status === "expired" && device!.activated !== null
  if (isSilent && situation.policy.require_heartbeat) return refused(situation, "HEARTBEAT_OVERDUE")
  if (code !== undefined) return refused(situation, code)
  return accepted(situation.license, entitlement(situation, device!.id))
}

export const check = (situation: Situation, command: RuntimeCommand): Answer => {
  const device = deviceOf(situation, command)
  const code = admission(situation, command) ?? inactive(situation, device)
  return code === undefined ? accepted(situation.license, entitlement(situation, device!.id)) : refused(situation, code)
}

export const deactivate = (situation: Situation, command: RuntimeCommand): Answer => {
  const { license } = situation
  const device = deviceOf(situation, command)
  const code = standing(situation, command.keyHash)
  if (code !== undefined) return refused(situation, code)
  if (device === undefined) return refused(situation, "DEVICE_NOT_FOUND")
  if (device.status === "blacklisted") return refused(situation, "DEVICE_BLACKLISTED")
  if (device.status !== "active" || !device.slot) return refused(situation, "DEVICE_STATE_CONFLICT")
  const isSeated = liveLeaseOf(license, device.id) !== undefined
  const left: Device = {
    ...device,
    slot: false,
    status: isSeated ? "active" : "deactivated",
    activated: isSeated ? null : device.activated
  }
  const after = { ...license, active: license.active - 1, devices: replaced(license.devices, bindingOf(command), left) }
  return accepted(after, common({ ...situation, license: after }, device.id), "license.deactivated")
}

export const issueOffline = (situation: Situation, command: RuntimeCommand): Answer => {
  const { license, policy, now } = situation
  const device = deviceOf(situation, command)
  const off = policy.allow_offline_activation ? undefined : "OFFLINE_NOT_ALLOWED"
  const code = admission(situation, command, off) ?? inactive(situation, device)
  if (code !== undefined) return refused(situation, code)
  if (!device!.slot) return refused(situation, "DEVICE_NOT_ACTIVE")
  const until = Math.min(now + policy.offline_grace_days * dayMillis, accessEnd(license, policy))
  const told = { ...entitlement(situation, device!.id), offline_expires_at: formatTimestamp(until) }
  return accepted(license, told, "license.offline_issued")
}

const usageRefusal = (
  situation: Situation,
  use: ConsumeCommand,
  assignment: Assignment | undefined
): Code | undefined => {
  if (assignment === undefined) return "FEATURE_NOT_ENTITLED"
  if (!assignment.enabled) return "FEATURE_DISABLED"
  if (assignment.expires !== null && situation.now >= assignment.expires) return "FEATURE_EXPIRED"
  const used = assignment.used + use.amount
  if (assignment.max !== null && used > assignment.max) return "USAGE_LIMIT_EXCEEDED"
  return Math.max(used, situation.license.total + use.amount) > Number.MAX_SAFE_INTEGER ? "VALIDATION_ERROR" : undefined
}

const usageEvents = (before: number, after: number, max: number | null): ReadonlyArray<string> => {
  const reaches = (mark: number) => max !== null && before < mark && mark <= after
  return [
    "usage.consumed",
    ...(reaches((max ?? 0) * 0.8) ? ["usage.threshold_reached"] : []),
    ...(reaches(max ?? 0) ? ["usage.exhausted"] : [])
  ]
}

export const consume = (situation: Situation, command: ConsumeCommand): Answer => {
  const { license, around } = situation
  const device = deviceOf(situation, command)
  const code = admission(situation, command) ?? inactive(situation, device)
  if (code !== undefined) return refused(situation, code)
  const counted = license.counted.get(command.event_id)
  if (counted !== undefined) {
    const isSame = around.features.get(counted.feature) === command.feature_code && counted.amount === command.amount
    return isSame ? accepted(license, entitlement(situation, device!.id)) : refused(situation, "EVENT_ID_CONFLICT")
  }
  const feature = Array.from(license.assignments.keys()).find((id) => around.features.get(id) === command.feature_code)
  const assignment = feature === undefined ? undefined : license.assignments.get(feature)
  const why = usageRefusal(situation, command, assignment)
  if (why !== undefined || feature === undefined || assignment === undefined) return refused(situation, why!)
  const balance = assignment.used + command.amount
  const after = {
    ...license,
    total: license.total + command.amount,
    assignments: replaced(license.assignments, feature, { ...assignment, used: balance }),
    counted: replaced(license.counted, command.event_id, { feature, amount: command.amount })
  }
  return {
    license: after,
    events: usageEvents(assignment.used, balance, assignment.max),
    ledger: [{ feature, action: "consume", amount: command.amount, balance, max: assignment.max }],
    told: entitlement({ ...situation, license: after }, device!.id)
  }
}

export const leaseEnd = ({ license, policy, now }: Situation): number =>
  Math.min(now + policy.floating_timeout_minutes * minuteMillis, accessEnd(license, policy))

export const checkout = (situation: Situation, command: CheckoutCommand): Answer => {
  const { license, policy } = situation
  const seats = policy.max_floating_users ?? 0
  const code = admission(situation, command, seats === 0 ? "FLOATING_NOT_ENABLED" : undefined)
  if (code !== undefined) return refused(situation, code)
  const known = deviceOf(situation, command)
  const held = known === undefined ? undefined : liveLeaseOf(license, known.id)
  if (held === undefined && liveLeases(license).length >= seats) return refused(situation, "FLOATING_LIMIT_REACHED")
  const device: Device = {
    id: known?.id ?? command.newDeviceId,
    kind: command.binding.kind,
    status: "active",
    slot: known?.slot ?? false,
    activated: known?.slot || known?.status === "expired" ? known.activated : null,
    validated: known?.validated ?? null
  }
  const superseded =
    held === undefined ? license.leases : replaced(license.leases, held[0], { ...held[1], status: "superseded" })
  const ends = leaseEnd(situation)
  const lease = { id: command.newLeaseId, device: device.id, status: "live", ends }
  const after = {
    ...license,
    devices: replaced(license.devices, bindingOf(command), device),
    leases: replaced(superseded, command.tokenHash, lease)
  }
  const told = {
    ...common(situation, device.id),
    features: features(situation),
    lease_token: command.leaseToken,
    lease_expires_at: formatTimestamp(ends)
  }
  return accepted(after, told, "lease.checked_out")
}

const leaseRefusal = (situation: Situation, { keyHash, tokenHash }: LeaseCommand): Code | undefined => {
  const code = standing(situation, keyHash)
  if (code !== undefined) return code
  const lease = situation.license.leases.get(tokenHash)
  if (lease === undefined) return "LEASE_NOT_FOUND"
  return deviceById(situation.license, lease.device)?.[1].status === "blacklisted" ? "DEVICE_BLACKLISTED" : undefined
}

export const heartbeat = (situation: Situation, command: LeaseCommand): Answer => {
  const code = leaseRefusal(situation, command)
  if (code !== undefined) return refused(situation, code)
  const lease = situation.license.leases.get(command.tokenHash)!
  if (lease.status === "blacklisted") return refused(situation, "DEVICE_BLACKLISTED")
  if (lease.status === "expired") return refused(situation, "LEASE_EXPIRED")
  if (lease.status !== "live") return refused(situation, "LEASE_NOT_ACTIVE")
  const ends = leaseEnd(situation)
  const told = { ...common(situation, lease.device), lease_expires_at: formatTimestamp(ends) }
  const leases = replaced(situation.license.leases, command.tokenHash, { ...lease, ends })
  return accepted({ ...situation.license, leases }, { ...told, features: features(situation) })
}

export const checkin = (situation: Situation, command: LeaseCommand): Answer => {
  const code = leaseRefusal(situation, command)
  if (code !== undefined) return refused(situation, code)
  const lease = situation.license.leases.get(command.tokenHash)!
  if (lease.status !== "live") return refused(situation, "LEASE_NOT_ACTIVE")
  const told = { ...common(situation, lease.device), lease_expires_at: formatTimestamp(situation.now) }
  const after = endLease(situation.license, command.tokenHash, "checked_in", "deactivated")
  return accepted(after, told, "lease.checked_in")
}
