/**
 * The order of refusals, written a second time from the contract and apart from the rules. Every check decides by itself
 * whether it refuses a request. So all reasons are known, and the rules must answer with the first one.
 */
import type { Code } from "../../../src/contract/api/ErrorCode.ts"
import type { DeviceRecord } from "../../../src/licensing/model/LicenseRecords.ts"
import { limitsOf } from "../../../src/licensing/model/Limits.ts"
import type { KeyedCommand, RuntimeCommand } from "../../../src/licensing/rules/Admission.ts"
import type { CheckoutCommand, LeaseCommand } from "../../../src/licensing/rules/Floating.ts"
import { day, minute, type Rows } from "./Licenses.ts"
import { type RefusalCheck, usage } from "./UsageRefusals.ts"

/** An end that a clock ahead has recorded is kept for a minute. */
const ended = ({ license, policy }: Rows, now: number) =>
  license.expires_at !== undefined &&
  (license.status === "expired" ? now + minute : now) >= license.expires_at + policy.grace_period_days * day

const deviceFor = ({ devices }: Rows, { binding }: RuntimeCommand) =>
  devices.find((device) => device.binding_kind === binding.kind && device.binding_key === binding.key)

/** Without a heartbeat beyond the promised instant, which passed while the license was served; applies to activations only. */
const silent = ({ license, policy }: Rows, device: DeviceRecord, now: number) => {
  const lapse = (device.due_at ?? Number.POSITIVE_INFINITY) + 1
  return (
    policy.require_heartbeat &&
    device.status === "active" &&
    device.holds_slot &&
    !["suspended", "revoked"].includes(license.status) &&
    lapse <= now &&
    (license.expires_at === undefined || lapse < license.expires_at + policy.grace_period_days * day)
  )
}

const leaseOf = ({ leases }: Rows, device: DeviceRecord | undefined) =>
  leases.find(({ device_id, status }) => device_id === device?.id && status === "live")

const isActivated = (rows: Rows, device: DeviceRecord, now: number) =>
  device.status === "active" && device.holds_slot && !silent(rows, device, now)

const isSeated = (rows: Rows, device: DeviceRecord | undefined, now: number) =>
  (leaseOf(rows, device)?.expires_at ?? now) > now

const isActive = (rows: Rows, device: DeviceRecord, now: number) =>
  device.status === "active" && (isActivated(rows, device, now) || isSeated(rows, device, now))

/** An activation that ended because of missing heartbeats, stored or not. */
const isSilenced = (rows: Rows, device: DeviceRecord, now: number) =>
  rows.policy.require_heartbeat &&
  device.activated_at !== undefined &&
  ["active", "expired"].includes(device.status) &&
  !isActive(rows, device, now)

const used = (rows: Rows, now: number, kind?: DeviceRecord["binding_kind"]) =>
  rows.devices.filter(
    (device) =>
      device.status === "active" &&
      device.holds_slot &&
      !silent(rows, device, now) &&
      (kind === undefined || device.binding_kind === kind)
  ).length

const forDevice =
  (holds: (rows: Rows, device: DeviceRecord, now: number) => boolean) =>
  (rows: Rows, command: RuntimeCommand, now: number) => {
    const device = deviceFor(rows, command)
    return device !== undefined && holds(rows, device, now)
  }

const holdsSlot = forDevice(isActivated)

const released = ({ versions }: Rows, { binding }: RuntimeCommand) => versions[binding.app_version ?? ""]
const gated = ({ versions }: Rows, { binding }: RuntimeCommand) =>
  binding.app_version !== undefined && Object.keys(versions).length > 0

const licensed: ReadonlyArray<RefusalCheck<KeyedCommand>> = [
  ["LICENSE_KEY_INVALID", (rows, command) => rows.license.key_hash !== command.keyHash],
  ["LICENSE_SUSPENDED", ({ license }) => license.status === "suspended"],
  ["LICENSE_REVOKED", ({ license }) => license.status === "revoked"],
  ["LICENSE_EXPIRED", (rows, _, now) => ended(rows, now)],
  ["LICENSE_NOT_STARTED", ({ license }, _, now) => (license.starts_at ?? now) > now]
]

const standing: ReadonlyArray<RefusalCheck<RuntimeCommand>> = [
  ...licensed,
  ["DEVICE_BLACKLISTED", (rows, command) => deviceFor(rows, command)?.status === "blacklisted"]
]

/** The checks before a slot is given back, which works in every state but revoked. */
const returningChecks = standing.filter(([code]) =>
  ["LICENSE_KEY_INVALID", "PRODUCT_MISMATCH", "LICENSE_REVOKED", "DEVICE_BLACKLISTED"].includes(code)
)

const machine: ReadonlyArray<RefusalCheck<RuntimeCommand>> = [
  ["VM_NOT_ALLOWED", ({ policy }, { binding }) => binding.is_vm && !policy.allow_vm],
  ["CONTAINER_NOT_ALLOWED", ({ policy }, { binding }) => binding.is_container && !policy.allow_container]
]

/** The end of a pending term that the request begins. */
const pendingEnd = ({ license, policy }: Rows, now: number): number => {
  const isPending = (license.expires_at ?? license.maintenance_expires_at) === undefined
  if (license.term_days === undefined || !isPending) return Number.POSITIVE_INFINITY
  const days = policy.duration_starts === "first_activation" ? policy.duration_days : undefined
  return now + (days ?? license.term_days) * day
}

const version: ReadonlyArray<RefusalCheck<RuntimeCommand>> = [
  ["VERSION_UNKNOWN", (rows, command) => gated(rows, command) && released(rows, command) === undefined],
  [
    "VERSION_NOT_ENTITLED",
    (rows, command, now) => {
      const cutoff =
        rows.policy.license_type === "perpetual" ? rows.license.maintenance_expires_at : rows.license.expires_at
      return gated(rows, command) && (released(rows, command) ?? 0) > (cutoff ?? pendingEnd(rows, now))
    }
  ]
]

const admission = [...standing, ...machine, ...version]

const offlineOff: RefusalCheck<RuntimeCommand> = [
  "OFFLINE_NOT_ALLOWED",
  ({ policy }) => !policy.allow_offline_activation
]
const floatingOff: RefusalCheck<RuntimeCommand> = [
  "FLOATING_NOT_ENABLED",
  ({ license, policy }) => !limitsOf(license, policy).max_floating_users
]

const borrowingOff: RefusalCheck<CheckoutCommand> = [
  "BORROWING_NOT_ALLOWED",
  ({ policy }, { until }) => until !== undefined && !policy.borrow_days_max
]

/** The end of access after a checkout, which may begin the license's term. */
const accessEnd = (rows: Rows, now: number): number => {
  const { license, policy } = rows
  const expires = policy.license_type === "perpetual" ? Number.POSITIVE_INFINITY : pendingEnd(rows, now)
  return (license.expires_at ?? expires) + policy.grace_period_days * day
}

const borrowed: ReadonlyArray<RefusalCheck<CheckoutCommand>> = [
  ["VALIDATION_ERROR", (_, { until }, now) => until !== undefined && until <= now],
  [
    "BORROW_TOO_LONG",
    (rows, { until }, now) =>
      until !== undefined && (until > now + (rows.policy.borrow_days_max ?? 0) * day || until > accessEnd(rows, now))
  ]
]

const seat: RefusalCheck<RuntimeCommand> = [
  "FLOATING_LIMIT_REACHED",
  (rows, command, now) => {
    const taken = rows.leases.filter(({ status, expires_at }) => status === "live" && expires_at > now)
    const own = taken.some(({ device_id }) => device_id === deviceFor(rows, command)?.id)
    return !own && taken.length >= (limitsOf(rows.license, rows.policy).max_floating_users ?? 0)
  }
]

const leaseFor = ({ leases }: Rows, { tokenHash }: LeaseCommand) =>
  leases.find(({ token_hash }) => token_hash === tokenHash)

/** The state of a token's lease; a live one past its end is expired. */
const leaseState = (rows: Rows, command: LeaseCommand, now: number) => {
  const lease = leaseFor(rows, command)
  return lease?.status === "live" && lease.expires_at <= now ? "expired" : lease?.status
}

/** Whether the lease is borrowed: then it may be given back whatever becomes of the license, until it is revoked. */
const isBorrowed = (rows: Rows, command: LeaseCommand, now: number) =>
  leaseState(rows, command, now) === "live" && (leaseFor(rows, command)?.borrowed_until ?? now) > now

const returningSeat: ReadonlyArray<RefusalCheck<LeaseCommand>> = licensed.map(([code, stops]) =>
  ["LICENSE_KEY_INVALID", "LICENSE_REVOKED"].includes(code)
    ? [code, stops]
    : [code, (rows, command, now) => !isBorrowed(rows, command, now) && stops(rows, command, now)]
)

const isReset = (rows: Rows, command: LeaseCommand) =>
  rows.devices.some(({ id, status }) => id === leaseFor(rows, command)?.device_id && status === "reset")

const isBarred = (rows: Rows, command: LeaseCommand) =>
  rows.devices.some(({ id, status }) => id === leaseFor(rows, command)?.device_id && status === "blacklisted")

/** A heartbeat may take a free seat again for a lease that lapsed within the last day. */
const isTooLate = (rows: Rows, command: LeaseCommand, now: number) => {
  const lease = leaseFor(rows, command)
  const device = rows.devices.find(({ id }) => id === lease?.device_id)
  const taken = rows.leases.filter(({ status, expires_at }) => status === "live" && expires_at > now)
  return (
    now - (lease?.ended_at ?? lease?.expires_at ?? 0) >= day ||
    device?.status === "reset" ||
    taken.some(({ device_id }) => device_id === device?.id) ||
    taken.length >= (limitsOf(rows.license, rows.policy).max_floating_users ?? 0)
  )
}

const unknownLease: RefusalCheck<LeaseCommand> = [
  "LEASE_NOT_FOUND",
  (rows, command) => leaseFor(rows, command) === undefined
]
const endedLease: RefusalCheck<LeaseCommand> = [
  "LEASE_NOT_ACTIVE",
  (rows, command, now) => leaseState(rows, command, now) !== "live"
]

const slot: ReadonlyArray<RefusalCheck<RuntimeCommand>> = [
  [
    "CONTAINER_LIMIT_REACHED",
    (rows, command, now) => {
      const limit = limitsOf(rows.license, rows.policy).max_container_instances ?? 0
      return (
        command.binding.is_container &&
        limit > 0 &&
        !holdsSlot(rows, command, now) &&
        used(rows, now, "container") >= limit
      )
    }
  ],
  [
    "ACTIVATION_LIMIT_REACHED",
    (rows, command, now) => {
      const { max_activations, max_container_instances } = limitsOf(rows.license, rows.policy)
      const apart = max_container_instances !== undefined
      if (max_activations === 0 || (apart && command.binding.is_container) || holdsSlot(rows, command, now))
        return false
      return used(rows, now, apart ? "hardware" : undefined) >= max_activations
    }
  ]
]

const known: RefusalCheck<RuntimeCommand> = [
  "DEVICE_NOT_FOUND",
  (rows, command) => deviceFor(rows, command) === undefined
]
const active: RefusalCheck<RuntimeCommand> = [
  "DEVICE_NOT_ACTIVE",
  (rows, command, now) => !forDevice(isActive)(rows, command, now)
]
const activated: RefusalCheck<RuntimeCommand> = [
  "DEVICE_NOT_ACTIVE",
  (rows, command, now) => !holdsSlot(rows, command, now)
]
const heartbeat: RefusalCheck<RuntimeCommand> = ["HEARTBEAT_OVERDUE", forDevice(isSilenced)]
const held: RefusalCheck<RuntimeCommand> = [
  "DEVICE_STATE_CONFLICT",
  (rows, command, now) => !holdsSlot(rows, command, now)
]

/** The codes of all checks that refuse a request, in order. */
export const failingChecks = <Command>(
  ladder: ReadonlyArray<RefusalCheck<Command>>,
  rows: Rows,
  command: Command,
  now: number
): ReadonlyArray<Code> => ladder.filter(([, stops]) => stops(rows, command, now)).map(([code]) => code)

/** The checks of each operation, in order. */
export const refusalOrders = {
  activate: [...admission, ...slot],
  validate: [...admission, known, heartbeat, active],
  check: [...admission, known, active],
  consume: [...admission, known, active, ...usage],
  deactivate: [...returningChecks, known, held],
  offline: [...standing, ...machine, offlineOff, ...version, known, activated],
  checkout: [...standing, ...machine, floatingOff, borrowingOff, ...version, ...borrowed, seat],
  heartbeat: [
    ...licensed,
    unknownLease,
    [
      "DEVICE_BLACKLISTED",
      (rows, command, now) => isBarred(rows, command) || leaseState(rows, command, now) === "blacklisted"
    ],
    [
      "LEASE_EXPIRED",
      (rows, command, now) => leaseState(rows, command, now) === "expired" && isTooLate(rows, command, now)
    ],
    [
      "LEASE_NOT_ACTIVE",
      (rows, command, now) =>
        !["live", "expired"].includes(leaseState(rows, command, now) ?? "unknown") ||
        (leaseState(rows, command, now) === "live" && isReset(rows, command))
    ]
  ] satisfies ReadonlyArray<RefusalCheck<LeaseCommand>>,
  checkin: [...returningSeat, unknownLease, ["DEVICE_BLACKLISTED", isBarred], endedLease] satisfies ReadonlyArray<
    RefusalCheck<LeaseCommand>
  >
} satisfies Record<string, ReadonlyArray<RefusalCheck<never>>>
