/** The expected results of management commands. */
import { canonicalize } from "../../../src/contract/api/CanonicalJson.ts"
import type { Code } from "../../../src/contract/api/ErrorCode.ts"
import type { DeviceCommand } from "../../../src/licensing/changes/DeviceActions.ts"
import type { RotateKeyCommand } from "../../../src/licensing/changes/KeyRotation.ts"
import type { MaintenanceCommand } from "../../../src/licensing/changes/MaintenanceRenewal.ts"
import type { RenewCommand } from "../../../src/licensing/changes/Renewal.ts"
import type { TransferCommand } from "../../../src/licensing/changes/Transfer.ts"
import type { UpdateCommand } from "../../../src/licensing/changes/Update.ts"
import { accepted, refused } from "./Admission.ts"
import { isBorrowed } from "./Devices.ts"
import { beganAt, featuresFrom, limitsFor, termEnd } from "./Limits.ts"
import {
  type Answer,
  type Assignment,
  clockStatus,
  type Device,
  dayMillis,
  deviceById,
  endLease,
  endLeases,
  endUnborrowed,
  type License,
  liveLeaseOf,
  liveLeases,
  publishedVersion,
  replaced,
  type Situation,
  servedAgain,
  statusAt
} from "./Model.ts"
import { isOfSubscription, placed } from "./Periods.ts"
import { clockEvents, deviceTransitions, licenseTransitions } from "./Transitions.ts"

/** The customers of the initial data. */
export const customers: { readonly [id: string]: { readonly name: string; readonly email: string | null } } = {
  cust_a: { name: "Company A", email: "a@example.com" },
  cust_b: { name: "Company B", email: null }
}

export const shown = ({ policy, now }: Situation, license: License) => ({
  status: statusAt(license, policy, now),
  entitlement_version: publishedVersion(license, policy, now),
  active_device_count: license.active,
  times_activated: license.activations,
  times_transferred: license.transfers,
  total_consumptions: license.total,
  policy_id: license.policy,
  limits: Object.fromEntries(Object.entries(limitsFor(license, policy)).filter(([, limit]) => limit !== null)),
  expires_at: license.expires ?? undefined,
  customer_id: license.customer_id ?? undefined,
  customer_name: license.customer_name ?? undefined
})

export const isRevoked = ({ license }: Situation): boolean => license.status === "revoked"

export const raised = (license: License): License => ({ ...license, version: license.version + 1 })

/** A transition of the table; `also` applies the changes that go with it. */
const lifecycle =
  (
    operation: keyof typeof licenseTransitions,
    event: string,
    also: (license: License, situation: Situation) => License
  ) =>
  (situation: Situation): Answer => {
    const { license, policy, now } = situation
    const to = licenseTransitions[operation][statusAt(license, policy, now)]!
    if (to === "conflict") return refused(situation, "LICENSE_STATE_CONFLICT")
    if (to === "unchanged") return accepted(license, shown(situation, license))
    const status = to === "by clock" ? clockStatus(license, policy, now) : to
    const after = raised(also({ ...license, status }, situation))
    return accepted(after, shown(situation, after), event, ...(clockEvents[status] ?? []))
  }

const endAllUnborrowed = (license: License, now: number): License =>
  liveLeases(license).reduce((left, [token]) => endUnborrowed(left, token, "ended", now), license)

export const suspend = lifecycle("suspend", "license.suspended", (license, { now }) => endAllUnborrowed(license, now))
export const reinstate = lifecycle("reinstate", "license.reinstated", (license, { policy, now }) => ({
  ...license,
  floor: servedAgain(license, policy, license.starts, now)
}))
export const revoke = lifecycle("revoke", "license.revoked", (license) => ({
  ...endLeases(license, "ended", "deactivated"),
  active: 0,
  devices: new Map(
    Array.from(license.devices, ([key, device]) => [
      key,
      device.status === "active" ? { ...device, status: "deactivated", slot: false } : device
    ])
  )
}))

export const renew = (situation: Situation, command: RenewCommand): Answer => {
  const { license, policy, now } = situation
  const status = licenseTransitions.renew[statusAt(license, policy, now)]!
  if (status === "conflict") return refused(situation, "LICENSE_STATE_CONFLICT")
  if (!["subscription", "time_limited", "trial"].includes(policy.license_type)) {
    return refused(situation, "LICENSE_NOT_RENEWABLE")
  }
  if (command.order_id === "ord_foreign") return refused(situation, "LINKAGE_MISMATCH")
  if (command.order_id !== undefined && command.order_id !== "ord_own") return refused(situation, "NOT_FOUND")
  const basis = Math.max(license.expires ?? termEnd(situation) ?? now, now)
  const expires = command.expires_at ?? basis + (command.extend_by_days ?? 0) * dayMillis
  if (expires <= now) return refused(situation, "EXPIRY_NOT_IN_FUTURE")
  if (license.expires !== null && expires <= license.expires) return refused(situation, "RENEWAL_NOT_LATER")
  if (license.starts !== null && license.starts >= expires) return refused(situation, "VALIDATION_ERROR")
  const isRevived = statusAt(license, policy, now) === "expired"
  const floor = isRevived ? servedAgain(license, policy, license.starts, now) : license.floor
  const begins = Math.max(now, license.starts ?? now)
  const terms = { assignments: featuresFrom(license, begins, now), term: null, began: beganAt(license, begins) }
  const after = raised({ ...license, ...terms, status, expires, floor })
  return accepted(after, shown(situation, after), "license.renewed")
}

export const renewMaintenance = (situation: Situation, command: MaintenanceCommand): Answer => {
  const { license, policy, now } = situation
  if (isRevoked(situation)) return refused(situation, "LICENSE_STATE_CONFLICT")
  const end = license.maintenance ?? termEnd(situation)
  if (policy.license_type !== "perpetual" || end === null) return refused(situation, "VALIDATION_ERROR")
  const maintenance = command.maintenance_expires_at ?? Math.max(end, now) + (command.extend_by_days ?? 0) * dayMillis
  if (maintenance <= now) return refused(situation, "EXPIRY_NOT_IN_FUTURE")
  if (license.maintenance !== null && maintenance <= license.maintenance) return refused(situation, "RENEWAL_NOT_LATER")
  const begins = Math.max(now, license.starts ?? now)
  const terms = { assignments: featuresFrom(license, begins, now), term: null, began: beganAt(license, begins) }
  const after = raised({ ...license, ...terms, maintenance })
  return accepted(after, shown(situation, after), "license.maintenance_renewed")
}

const resettable = Object.entries(deviceTransitions.reset).flatMap(([from, to]) => (to === "reset" ? [from] : []))

const allReset = (license: License, releases: boolean, now: number): License => ({
  ...(releases ? endLeases(license, "ended", "deactivated") : endAllUnborrowed(license, now)),
  active: 0,
  devices: new Map(
    Array.from(license.devices, ([key, device]) => [
      key,
      resettable.includes(device.status) ? { ...device, status: "reset", slot: false, held: null } : device
    ])
  )
})

export const transfer = (situation: Situation, command: TransferCommand): Answer => {
  const { license, now, policy } = situation
  if (isRevoked(situation)) return refused(situation, "LICENSE_STATE_CONFLICT")
  const { customer_id = license.customer_id, release_borrowed = false, reset_devices = false } = command
  const customer = customers[command.customer_id || "cust_a"]
  if (customer === undefined) return refused(situation, "NOT_FOUND")
  const isAnother = customer_id !== null && customer_id !== "" && customer_id !== license.customer_id
  const customer_email = command.customer_email ?? (isAnother ? customer.email : license.customer_email)
  const customer_name = command.customer_name ?? (isAnother ? customer.name : license.customer_name)
  const owner = { customer_id: customer_id || null, customer_email, customer_name }
  const moves = (["customer_id", "customer_email", "customer_name"] as const).some((one) => owner[one] !== license[one])
  if (moves && !policy.allow_transfer) return refused(situation, "TRANSFER_NOT_ALLOWED")
  const { max_transfers } = limitsFor(license, policy)
  if (moves && max_transfers > 0 && license.transfers >= max_transfers) {
    return refused(situation, "TRANSFER_LIMIT_REACHED")
  }
  const frees = release_borrowed && liveLeases(license).some(([, lease]) => isBorrowed(lease, now))
  const isAny = Array.from(license.devices.values()).some(({ status }) => resettable.includes(status))
  const resets = reset_devices && (isAny || frees)
  const left = resets ? allReset(license, release_borrowed, now) : license
  const owned = moves ? { ...left, ...owner, transfers: license.transfers + 1 } : left
  const raisedOrNot = moves || resets ? raised(owned) : owned
  const after = { ...raisedOrNot, key: command.newKey?.key_hash ?? license.key }
  const events = [
    ...(moves || resets ? ["license.transferred"] : []),
    ...(command.newKey ? ["license.key_rotated"] : [])
  ]
  return accepted(after, shown(situation, after), ...events)
}

export const rotateKey = (situation: Situation, command: RotateKeyCommand): Answer => {
  if (isRevoked(situation)) return refused(situation, "LICENSE_STATE_CONFLICT")
  const after = { ...situation.license, key: command.key_hash }
  return accepted(after, shown(situation, after), "license.key_rotated")
}

export const given = <A>(value: A | null | undefined, before: A | null): A | null =>
  value === undefined ? before : value

export const same = (one: object, other: object): boolean => canonicalize(one as never) === canonicalize(other as never)

const deviceAction =
  (operation: keyof typeof deviceTransitions, event: string, leaseStatus: string) =>
  (situation: Situation, { device_id, release_borrowed = false }: DeviceCommand): Answer => {
    const { license, now } = situation
    const [key, device] = deviceById(license, device_id) ?? []
    if (key === undefined || device === undefined) return refused(situation, "NOT_FOUND")
    if (isRevoked(situation)) return refused(situation, "LICENSE_STATE_CONFLICT")
    const to = deviceTransitions[operation][device.status]!
    if (to === "conflict") return refused(situation, "DEVICE_STATE_CONFLICT")
    const lease = liveLeaseOf(license, device_id)
    const releases = release_borrowed && lease !== undefined && isBorrowed(lease[1], now)
    if (to === "unchanged" && !releases) return accepted(license, { id: device_id, status: device.status })
    const status = to === "unchanged" ? device.status : to
    const freed =
      lease === undefined
        ? license
        : releases
          ? endLease(license, lease[0], leaseStatus, "deactivated")
          : endUnborrowed(license, lease[0], leaseStatus, now)
    const moved: Device = { ...device, status, slot: false, held: null }
    const active = device.slot ? license.active - 1 : license.active
    const after = { ...freed, active, devices: replaced(freed.devices, key, moved) }
    return accepted(after, { id: device_id, status }, event)
  }

export const resetDevice = deviceAction("reset", "device.reset", "ended")
export const blacklist = deviceAction("blacklist", "device.blacklisted", "blacklisted")
export const unblacklist = deviceAction("unblacklist", "device.unblacklisted", "ended")

/** The dates that a license of this type may have. */
export const wrongTerms = (type: string, { expires, starts, maintenance, term }: License): Code | undefined => {
  const isPerpetual = type === "perpetual"
  const needsEnd = ["time_limited", "subscription", "trial"].includes(type)
  const isWrong =
    (isPerpetual && expires !== null) ||
    (!isPerpetual && maintenance !== null) ||
    (needsEnd && expires === null && term === null) ||
    (starts !== null && expires !== null && starts >= expires)
  return isWrong ? "VALIDATION_ERROR" : undefined
}

/** What an edit records. */
const recorded = [
  "customer_name",
  "starts",
  "expires",
  "maintenance",
  "max_activations",
  "max_container_instances",
  "max_floating_users",
  "max_transfers",
  "offline_grace_days",
  "self_deactivations_per_month",
  "subscription",
  "metadata"
] as const

export const update = (situation: Situation, command: UpdateCommand): Answer => {
  const { license, policy, now } = situation
  if (isRevoked(situation)) return refused(situation, "LICENSE_STATE_CONFLICT")
  const unlinkable = { sub_foreign: "LINKAGE_MISMATCH", "unheard-of": "NOT_FOUND" } as const
  const { subscription_id } = command
  if (subscription_id != null && subscription_id in unlinkable)
    return refused(situation, unlinkable[subscription_id as keyof typeof unlinkable])
  const isDated = [command.expires_at, command.maintenance_expires_at].some((end) => typeof end === "number")
  const edited: License = {
    ...license,
    customer_name: given(command.customer_name, license.customer_name),
    starts: given(command.starts_at, license.starts),
    expires: given(command.expires_at, license.expires),
    maintenance: given(command.maintenance_expires_at, license.maintenance),
    max_activations: given(command.max_activations, license.max_activations),
    max_container_instances: given(command.max_container_instances, license.max_container_instances),
    max_floating_users: given(command.max_floating_users, license.max_floating_users),
    max_transfers: given(command.max_transfers, license.max_transfers),
    offline_grace_days: given(command.offline_grace_days, license.offline_grace_days),
    self_deactivations_per_month: given(command.self_deactivations_per_month, license.self_deactivations_per_month),
    term: isDated ? null : license.term,
    subscription: given(subscription_id, license.subscription),
    metadata: command.metadata === undefined ? license.metadata : canonicalize(command.metadata)
  }
  if (recorded.every((member) => edited[member] === license[member]))
    return accepted(license, shown(situation, license))
  const code = wrongTerms(policy.license_type, edited)
  if (code !== undefined) return refused(situation, code)
  const isRevived =
    edited.expires !== license.expires && edited.status !== "suspended" && clockStatus(edited, policy, now) === "active"
  const isServed = (one: License) => statusAt(one, policy, now) !== "expired" && (one.starts ?? now) <= now
  const isMoved = edited.starts !== license.starts || edited.expires !== license.expires
  const isRefused = isMoved && !(isServed(license) && isServed(edited))
  const floor = isRefused ? servedAgain(license, policy, edited.starts, now) : license.floor
  const begins = Math.max(now, edited.starts ?? now)
  const begun = isDated
    ? { assignments: featuresFrom(license, begins, now), began: beganAt(license, begins) }
    : undefined
  const dated = withMovedPeriods(situation, { ...edited, ...begun })
  const moved: License = { ...dated, floor, status: isRevived ? "active" : edited.status }
  const isRenamed = policy.show_licensee && edited.customer_name !== license.customer_name
  const isReset = Array.from(moved.assignments).some(([id, one]) => one.resets !== license.assignments.get(id)?.resets)
  const isEndMoved = edited.expires !== license.expires || edited.maintenance !== license.maintenance
  const after = isRenamed || isReset || isEndMoved ? raised(moved) : moved
  return accepted(after, shown(situation, after), "license.updated")
}

/** The periods that follow the license's start or its subscription, if the edit changed them. */
const withMovedPeriods = ({ catalog, license, now }: Situation, edited: License): License => {
  const isRelinked = edited.subscription !== license.subscription
  if (edited.starts === license.starts && !isRelinked) return edited
  const subscription = catalog.subscriptions.get(edited.subscription ?? "")
  const isMoved = (one: Assignment) => one.period !== null && (isRelinked || !isOfSubscription(one))
  const assignments = Array.from(
    edited.assignments,
    ([id, one]) => [id, isMoved(one) ? placed(one, edited, subscription, now) : one] as const
  )
  return { ...edited, assignments: new Map(assignments) }
}
