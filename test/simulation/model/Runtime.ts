/** The expected results of runtime commands on devices and usage. */
import type { Code } from "../../../src/contract/api/ErrorCode.ts"
import { formatTimestamp } from "../../../src/contract/api/Timestamp.ts"
import type { ActivateCommand } from "../../../src/licensing/rules/Activation.ts"
import type { RuntimeCommand } from "../../../src/licensing/rules/Admission.ts"
import type { ConsumeCommand } from "../../../src/licensing/rules/Consumption.ts"
import type { OfflineCommand } from "../../../src/licensing/rules/Offline.ts"
import type { OwnDeviceCommand } from "../../../src/licensing/rules/OwnDevices.ts"
import {
  accepted,
  admission,
  bindingOf,
  common,
  deviceOf,
  entitlement,
  inactive,
  refused,
  standing
} from "./Admission.ts"
import { begun, limitsFor } from "./Limits.ts"
import {
  type Answer,
  type Assignment,
  accessEnd,
  type Device,
  dayMillis,
  deviceById,
  type Entry,
  featureEnd,
  liveLeaseOf,
  minuteMillis,
  promise,
  replaced,
  type Situation
} from "./Model.ts"
import { counted, fits, givenBack, quotaIn } from "./Periods.ts"

const isTaken = ({ held, slot }: Device, now: number): boolean => slot || (held !== null && now < held)

const slots = ({ license, now }: Situation, kind?: Device["kind"]): number =>
  Array.from(license.devices.values()).filter(
    (device) => isTaken(device, now) && (kind === undefined || device.kind === kind)
  ).length

const fullFor = (situation: Situation, { binding }: RuntimeCommand): Code | undefined => {
  const { license, policy } = situation
  const { max_activations, max_container_instances } = limitsFor(license, policy)
  const isApart = max_container_instances !== null
  if (isApart && binding.is_container) {
    const isFull = max_container_instances > 0 && slots(situation, "container") >= max_container_instances
    return isFull ? "CONTAINER_LIMIT_REACHED" : undefined
  }
  const used = slots(situation, isApart ? "hardware" : undefined)
  return max_activations > 0 && used >= max_activations ? "ACTIVATION_LIMIT_REACHED" : undefined
}

export const activate = (situation: Situation, command: ActivateCommand): Answer => {
  const code = admission(situation, command)
  if (code !== undefined) return refused(situation, code)
  const known = deviceOf(situation, command)
  return known?.status === "active" && known.slot
    ? accepted(situation.license, entitlement(situation, promised(situation, known)))
    : activated(situation, command)
}

const activated = (situation: Situation, command: ActivateCommand): Answer => {
  const { license, policy, now } = situation
  const known = deviceOf(situation, command)
  const full = known !== undefined && isTaken(known, now) ? undefined : fullFor(situation, command)
  if (full !== undefined) return refusedByLimit(situation, full)
  const device: Device = {
    id: known?.id ?? command.newDeviceId,
    kind: command.binding.kind,
    status: "active",
    slot: true,
    activated: now,
    validated: known?.validated ?? null,
    due: promise(policy, known?.offline ?? null, now),
    offline: known?.offline ?? null,
    held: null
  }
  const { left, used } = begun(situation)
  const after = {
    ...used.license,
    active: license.active + 1,
    activations: license.activations + 1,
    devices: replaced(license.devices, bindingOf(command), device)
  }
  return accepted(after, entitlement({ ...situation, license: after }, device), "license.activated", ...left)
}

/** At most one event an hour for each license. */
const refusedByLimit = (situation: Situation, code: Code): Answer => {
  const { license, now } = situation
  if (license.limited !== null && Math.abs(now - license.limited) < 60 * minuteMillis) return refused(situation, code)
  const after = { ...situation, license: { ...license, limited: now } }
  return refused(after, code, "license.activation_limit_reached")
}

export const validate = (situation: Situation, command: RuntimeCommand): Answer => {
  const device = deviceOf(situation, command)
  const code = admission(situation, command) ?? inactive(situation, device)
  const isSilent = code === "DEVICE_NOT_ACTIVE" && device!.status === "expired" && device!.activated !== null
  if (isSilent && situation.policy.require_heartbeat) return refused(situation, "HEARTBEAT_OVERDUE")
  if (code !== undefined) return refused(situation, code)
  return accepted(situation.license, entitlement(situation, promised(situation, device!)))
}

/** A device as an answer to activate or validate shows it. */
const promised = ({ now, policy }: Situation, device: Device): Device => ({
  ...device,
  due: promise(policy, device.offline, now)
})

export const check = (situation: Situation, command: RuntimeCommand): Answer => {
  const device = deviceOf(situation, command)
  const code = admission(situation, command) ?? inactive(situation, device)
  return code === undefined ? accepted(situation.license, entitlement(situation, device!)) : refused(situation, code)
}

export const deactivate = (situation: Situation, command: RuntimeCommand): Answer => {
  const device = deviceOf(situation, command)
  const code = standing(situation, command)
  if (code === "LICENSE_KEY_INVALID" || code === "PRODUCT_MISMATCH" || code === "LICENSE_REVOKED")
    return refused(situation, code)
  if (device === undefined) return refused(situation, "DEVICE_NOT_FOUND")
  if (device.status === "blacklisted") return refused(situation, "DEVICE_BLACKLISTED")
  if (device.status !== "active" || !device.slot) return refused(situation, "DEVICE_STATE_CONFLICT")
  return deactivated(situation, bindingOf(command), situation.policy.hold_offline_slots)
}

const deactivated = (situation: Situation, key: string, holds: boolean): Answer => {
  const { license, now } = situation
  const device = license.devices.get(key)!
  const isSeated = liveLeaseOf(license, device.id) !== undefined
  const left: Device = {
    ...device,
    slot: false,
    status: isSeated ? "active" : "deactivated",
    activated: isSeated ? null : device.activated,
    held: holds && device.offline !== null && device.offline > now ? device.offline : null
  }
  const after = { ...license, active: license.active - 1, devices: replaced(license.devices, key, left) }
  return accepted(after, common({ ...situation, license: after }, device.id), "license.deactivated")
}

export const deactivateOwn = (situation: Situation, command: OwnDeviceCommand): Answer => {
  const { license, now, policy } = situation
  const code = standing(situation, command)
  if (code === "LICENSE_KEY_INVALID" || code === "PRODUCT_MISMATCH" || code === "LICENSE_REVOKED")
    return refused(situation, code)
  const found = deviceById(license, command.deviceId)
  if (found === undefined) return refused(situation, "DEVICE_NOT_FOUND")
  const [key, device] = found
  if (device.status === "blacklisted") return refused(situation, "DEVICE_BLACKLISTED")
  if (device.status !== "active" || !device.slot) return refused(situation, "DEVICE_STATE_CONFLICT")
  const recent = (license.returned ?? []).filter((at) => now - at < 30 * dayMillis)
  if (recent.length >= limitsFor(license, policy).self_deactivations_per_month)
    return refused(situation, "SELF_DEACTIVATION_LIMIT_REACHED")
  const answer = deactivated(situation, key, true)
  return { ...answer, license: { ...answer.license, returned: [...recent, now] } }
}

export const issueOffline = (situation: Situation, command: OfflineCommand): Answer => {
  const off = situation.policy.allow_offline_activation ? undefined : "OFFLINE_NOT_ALLOWED"
  const code = admission(situation, command, off)
  if (code !== undefined) return refused(situation, code)
  const known = deviceOf(situation, command)
  if (command.activation === undefined || (known?.status === "active" && known.slot)) return sealed(situation, command)
  const first = activated(situation, { ...command, ...command.activation })
  if (first.code !== undefined) return first
  const second = sealed({ ...situation, license: first.license }, command)
  return { ...second, events: [...first.events, ...second.events] }
}

const sealed = (situation: Situation, command: RuntimeCommand): Answer => {
  const { license, policy, now } = situation
  const device = deviceOf(situation, command)
  const code = inactive(situation, device)
  if (code !== undefined) return refused(situation, code)
  if (!device!.slot) return refused(situation, "DEVICE_NOT_ACTIVE")
  const until = Math.min(now + limitsFor(license, policy).offline_grace_days * dayMillis, accessEnd(license, policy))
  const offline = Math.max(until, device!.offline ?? 0)
  const kept = { ...device!, offline, due: Math.max(device!.due ?? 0, offline + 30_000) }
  const reply = { ...entitlement(situation, kept), offline_expires_at: formatTimestamp(until) }
  const after = { ...license, devices: replaced(license.devices, bindingOf(command), kept) }
  return accepted(after, reply, "license.offline_issued")
}

const usageRefusal = (
  situation: Situation,
  use: ConsumeCommand,
  assignment: Assignment | undefined
): Code | undefined => {
  if (assignment === undefined) return "FEATURE_NOT_ENTITLED"
  if (!assignment.enabled) return "FEATURE_DISABLED"
  if (featureEnd(assignment) <= situation.now) return "FEATURE_EXPIRED"
  if (!fits(assignment, use.amount)) return "USAGE_LIMIT_EXCEEDED"
  const used = assignment.used + use.amount
  return Math.max(used, situation.license.total + use.amount) > Number.MAX_SAFE_INTEGER ? "VALIDATION_ERROR" : undefined
}

const usageEvents = (before: Assignment, after: Assignment): ReadonlyArray<string> => {
  const quota = quotaIn(before)
  const used = before.used - (before.credited ?? 0) - (before.overage ?? 0)
  const reaches = (mark: number) => quota !== null && used < mark && mark <= used + after.used - before.used
  return [
    "usage.consumed",
    ...(reaches((quota ?? 0) * 0.8) ? ["usage.threshold_reached"] : []),
    ...(reaches(quota ?? 0) ? ["usage.exhausted"] : []),
    ...(before.overage === null && after.overage !== null ? ["usage.overage_started"] : [])
  ]
}

/** The row of the ledger that a change of a count leaves. */
const entryOf = (feature: string, action: string, before: Assignment, after: Assignment): Entry => {
  const credits = (after.extra ?? 0) - (before.extra ?? 0)
  const overage = (after.overage ?? 0) - (before.overage ?? 0)
  return {
    feature,
    action,
    amount: after.used - before.used,
    balance: after.used,
    max: quotaIn(after),
    ...(credits === 0 ? undefined : { credits }),
    ...(overage === 0 ? undefined : { overage })
  }
}

export const consume = (situation: Situation, command: ConsumeCommand): Answer => {
  const { license, catalog } = situation
  const device = deviceOf(situation, command)
  const code = admission(situation, command) ?? inactive(situation, device)
  if (code !== undefined) return refused(situation, code)
  const reply = entitlement(situation, device!)
  const feature = Array.from(license.assignments.keys()).find((id) => catalog.features.get(id) === command.feature_code)
  const before = feature === undefined ? undefined : license.assignments.get(feature)
  if (command.reverses !== undefined)
    return takeBack(situation, { ...command, reverses: command.reverses }, feature, before, device!)
  const known = license.counted.get(command.event_id)
  if (known !== undefined) {
    const isSame = catalog.features.get(known.feature) === command.feature_code && known.amount === command.amount
    return isSame ? accepted(license, reply) : refused(situation, "EVENT_ID_CONFLICT")
  }
  const why = usageRefusal(situation, command, before)
  if (why !== undefined || feature === undefined || before === undefined) return refused(situation, why!)
  const assignment = counted(before, command.amount)
  const { amount, event_id } = command
  const after = {
    ...license,
    total: license.total + amount,
    assignments: replaced(license.assignments, feature, assignment),
    counted: replaced(license.counted, event_id, { feature, amount, reverses: null }),
    open: replaced(license.open, feature, replaced(license.open.get(feature) ?? new Map(), event_id, null))
  }
  return {
    license: after,
    events: usageEvents(before, assignment),
    ledger: [entryOf(feature, "consume", before, assignment)],
    reply: entitlement({ ...situation, license: after }, device!)
  }
}

/** Takes a consumption back that is part of the count, once. */
const takeBack = (
  situation: Situation,
  { event_id, feature_code, reverses }: ConsumeCommand & { readonly reverses: string },
  feature: string | undefined,
  before: Assignment | undefined,
  device: Device
): Answer => {
  const { catalog, license } = situation
  const span = license.open.get(feature ?? "") ?? new Map<string, string | null>()
  const known = license.counted.get(event_id)
  if (known !== undefined) {
    const isOfFeature = catalog.features.get(known.feature) === feature_code
    const isOpposite = known.reverses !== null && known.amount === -(license.counted.get(reverses)?.amount ?? 0)
    const isSame = isOfFeature && (span.has(reverses) ? span.get(reverses) === event_id : isOpposite)
    if (isSame) return accepted(license, entitlement(situation, device))
    if (before !== undefined) return refused(situation, "EVENT_ID_CONFLICT")
  }
  if (feature === undefined || before === undefined) return refused(situation, "FEATURE_NOT_ENTITLED")
  if (span.get(reverses) !== null) return refused(situation, "REVERSAL_NOT_POSSIBLE")
  const assignment = givenBack(before, license.counted.get(reverses)!.amount)
  const amount = assignment.used - before.used
  const after = {
    ...license,
    assignments: replaced(license.assignments, feature, assignment),
    counted: replaced(license.counted, event_id, { feature, amount, reverses }),
    open: replaced(license.open, feature, replaced(span, reverses, event_id))
  }
  return {
    license: after,
    events: ["usage.reversed"],
    ledger: [entryOf(feature, "reverse", before, assignment)],
    reply: entitlement({ ...situation, license: after }, device)
  }
}
