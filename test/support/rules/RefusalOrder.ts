/**
 * The order of refusals, written a second time from the contract and apart from the rules. Every check decides by itself
 * whether it refuses a request. So all reasons are known, and the rules must answer with the first one.
 */
import type { Code } from "../../../src/contract/api/ErrorCode.ts"
import type { DeviceRecord } from "../../../src/licensing/model/LicenseRecords.ts"
import { limitsOf } from "../../../src/licensing/model/Limits.ts"
import type { KeyedCommand, RuntimeCommand } from "../../../src/licensing/rules/Admission.ts"
import type { ConsumeCommand } from "../../../src/licensing/rules/Consumption.ts"
import type { LeaseCommand } from "../../../src/licensing/rules/Floating.ts"
import { day, minute, type Rows } from "./Licenses.ts"

/** A code, and whether it applies to the request. */
export type RefusalCheck<Command> = readonly [code: Code, stops: (rows: Rows, command: Command, now: number) => boolean]

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

const version: ReadonlyArray<RefusalCheck<RuntimeCommand>> = [
  ["VERSION_UNKNOWN", (rows, command) => gated(rows, command) && released(rows, command) === undefined],
  [
    "VERSION_NOT_ENTITLED",
    (rows, command) => {
      const cutoff =
        rows.policy.license_type === "perpetual" ? rows.license.maintenance_expires_at : rows.license.expires_at
      return gated(rows, command) && (released(rows, command) ?? 0) > (cutoff ?? Number.POSITIVE_INFINITY)
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

const assigned = ({ assignments }: Rows, { feature_code }: ConsumeCommand) =>
  assignments.find((assignment) => assignment.feature_code === feature_code)

/** The earlier use of the event id, as "feature amount". */
const countedAs = ({ ledger }: Rows, { event_id }: ConsumeCommand) =>
  ledger.filter((entry) => entry.event_id === event_id).map(({ feature_id, amount }) => `${feature_id} ${amount}`)[0]

const isNew = (rung: RefusalCheck<ConsumeCommand>): RefusalCheck<ConsumeCommand> => [
  rung[0],
  (rows, command, now) => countedAs(rows, command) === undefined && rung[1](rows, command, now)
]

const usage: ReadonlyArray<RefusalCheck<ConsumeCommand>> = [
  [
    "EVENT_ID_CONFLICT",
    (rows, command) =>
      (countedAs(rows, command) ?? `feat_${command.feature_code} ${command.amount}`) !==
      `feat_${command.feature_code} ${command.amount}`
  ],
  isNew(["FEATURE_NOT_ENTITLED", (rows, command) => assigned(rows, command) === undefined]),
  isNew(["FEATURE_DISABLED", (rows, command) => assigned(rows, command)?.enabled === false]),
  isNew(["FEATURE_EXPIRED", (rows, command, now) => (assigned(rows, command)?.expires_at ?? now + 1) <= now]),
  isNew([
    "USAGE_LIMIT_EXCEEDED",
    (rows, command) => {
      const { max_consumptions, total_consumptions = 0 } = assigned(rows, command) ?? {}
      return (
        max_consumptions !== undefined && BigInt(total_consumptions) + BigInt(command.amount) > BigInt(max_consumptions)
      )
    }
  ]),
  isNew([
    "VALIDATION_ERROR",
    (rows, command) =>
      [rows.license.total_consumptions, assigned(rows, command)?.total_consumptions ?? 0].some(
        (total) => BigInt(total) + BigInt(command.amount) >= 2n ** 53n
      )
  ])
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
  checkout: [...standing, ...machine, floatingOff, ...version, seat],
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
      (rows, command, now) => !["live", "expired"].includes(leaseState(rows, command, now) ?? "unknown")
    ]
  ] satisfies ReadonlyArray<RefusalCheck<LeaseCommand>>,
  checkin: [...licensed, unknownLease, ["DEVICE_BLACKLISTED", isBarred], endedLease] satisfies ReadonlyArray<
    RefusalCheck<LeaseCommand>
  >
} satisfies Record<string, ReadonlyArray<RefusalCheck<never>>>
