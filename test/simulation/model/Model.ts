/** The simulator's license and its states, written from docs/API.md and docs/STATES.md, not from the rules. */
import type { Code } from "../../../src/contract/api/ErrorCode.ts"
import { type Device, isBorrowed, type Lease } from "./Devices.ts"
import type { OwnLimits } from "./Limits.ts"
import type { PolicyFeature } from "./Moves.ts"
import type { Grid, Quota, Subscription, Usage } from "./Periods.ts"

export type { Device, Lease } from "./Devices.ts"

export interface Policy {
  readonly id: string
  readonly license_type: string
  readonly max_activations: number
  readonly max_floating_users: number | null
  readonly max_container_instances: number | null
  readonly floating_timeout_minutes: number
  readonly grace_period_days: number
  readonly validation_interval_minutes: number
  readonly require_heartbeat: boolean
  readonly allow_offline_activation: boolean
  readonly offline_grace_days: number
  readonly allow_vm: boolean
  readonly allow_container: boolean
  readonly max_transfers: number
  readonly allow_transfer: boolean
  readonly self_deactivations_per_month: number
  readonly hold_offline_slots: boolean
  readonly borrow_days_max: number | null
  readonly show_licensee: boolean
  readonly duration_days: number | null
  readonly maintenance_days: number | null
  readonly duration_starts: string
  /** What licenses get with the policy, by feature id. */
  readonly features: ReadonlyMap<string, PolicyFeature>
  /** No device is due before this instant. */
  readonly floor: number | null
  /** The policy's share of the entitlement version. */
  readonly version: number
}

/** What a license depends on and other requests change. */
export interface Catalog {
  readonly policies: ReadonlyMap<string, Policy>
  /** Codes of the product's features by id. */
  readonly features: ReadonlyMap<string, string>
  /** Release instants of the product's versions. */
  readonly versions: ReadonlyMap<string, number>
  readonly subscriptions: ReadonlyMap<string, Subscription>
}

export interface Assignment extends Quota, Usage, Grid {
  readonly enabled: boolean
  readonly expires: number | null
  /** The days until the expiry, while the license's term has not begun. */
  readonly waiting: number | null
  readonly follows: boolean // Whether it ends with the license's access.
  /** Whether the expiry was recorded, or needs no record. */
  readonly recorded: boolean
  /** Whether it came with the policy. */
  readonly granted: boolean
  readonly metadata: string
}

export interface License extends OwnLimits {
  readonly id: string
  readonly policy: string
  readonly key: string
  readonly status: string
  readonly created: number
  readonly starts: number | null
  readonly expires: number | null
  readonly maintenance: number | null
  /** The days of a term that begins with the first use. */
  readonly term: number | null
  /** When a term began with the first use. */
  readonly began: number | null
  readonly subscription: string | null
  /** Counts of features that a policy took away, as JSON. */
  readonly kept: string
  readonly customer_id: string | null
  readonly customer_email: string | null
  readonly customer_name: string | null
  readonly metadata: string
  readonly active: number
  readonly activations: number
  readonly transfers: number
  /** No device is due before this instant. */
  readonly floor: number | null
  readonly total: number
  /** The license's share of the entitlement version. */
  readonly version: number
  /** When a reached limit of activations was last recorded. */
  readonly limited: number | null
  /** When the holder of the key deactivated devices by their ids; null = never. */
  readonly returned: ReadonlyArray<number> | null
  /** By kind and key of the binding. */
  readonly devices: ReadonlyMap<string, Device>
  /** By the digest of the token. */
  readonly leases: ReadonlyMap<string, Lease>
  /** By the feature's id. */
  readonly assignments: ReadonlyMap<string, Assignment>
  /** Consumptions and their reversals by event id. */
  readonly counted: ReadonlyMap<string, Counted>
  /** The consumptions since the last reset of a feature's count, by the feature's id: the event id that took each back, or null. */
  readonly open: ReadonlyMap<string, ReadonlyMap<string, string | null>>
}

interface Counted {
  readonly feature: string
  /** Of a reversal: negative. */
  readonly amount: number
  /** The event id that was taken back. */
  readonly reverses: string | null
}

/** The expected row of the ledger. */
export interface Entry {
  readonly feature: string
  readonly action: string
  readonly amount: number
  readonly balance: number
  readonly max: number | null
  /** The changes of bought credits and of overage. */
  readonly credits?: number
  readonly overage?: number
}

/** The expected result of a command. */
export interface Answer {
  /** The refusal's code; undefined if the command is accepted. */
  readonly code?: Code
  /** The license after the command. */
  readonly license: License
  /** The types of its events, in order. */
  readonly events: ReadonlyArray<string>
  readonly ledger: ReadonlyArray<Entry>
  /** Expected members of the answer. */
  readonly reply: { readonly [member: string]: unknown }
}

/** The state on which a command is decided. */
export interface Situation {
  readonly license: License
  readonly policy: Policy
  readonly catalog: Catalog
  readonly now: number
}

export const dayMillis = 86_400_000
export const minuteMillis = 60_000

export const replaced = <K, V>(map: ReadonlyMap<K, V>, key: K, value: V): ReadonlyMap<K, V> =>
  new Map(map).set(key, value)

export const without = <K, V>(map: ReadonlyMap<K, V>, key: K): ReadonlyMap<K, V> => {
  const left = new Map(map)
  left.delete(key)
  return left
}

/** When the license loses a feature. A clock behind keeps an expiry that another clock recorded, for a minute. */
export const featureEnd = ({ expires, recorded }: Assignment): number =>
  expires === null ? Number.POSITIVE_INFINITY : expires - (recorded ? minuteMillis : 0)

export const accessEnd = ({ expires }: License, { grace_period_days }: Policy): number =>
  expires === null ? Number.POSITIVE_INFINITY : expires + grace_period_days * dayMillis

/** The state that the clock gives a license that is neither suspended nor revoked. */
export const clockStatus = (license: License, policy: Policy, now: number): string => {
  if (license.expires === null || now < license.expires) return "active"
  return now < accessEnd(license, policy) ? "grace_period" : "expired"
}

const stages = ["active", "grace_period", "expired"]

const earlier = (one: string, other: string): string => (stages.indexOf(one) < stages.indexOf(other) ? one : other)

/** A stage that was recorded stays, unless its end is now more than a minute away: nodes' clocks differ by less. */
export const statusAt = (license: License, policy: Policy, now: number): string => {
  if (!stages.includes(license.status)) return license.status
  const byClock = clockStatus(license, policy, now)
  if (earlier(byClock, license.status) !== byClock) return byClock
  return earlier(license.status, clockStatus(license, policy, now + minuteMillis))
}

/** The states that a license has passed through by time since its row was written. */
export const passed = (license: License, policy: Policy, now: number): ReadonlyArray<string> => {
  const to = statusAt(license, policy, now)
  if (license.status === "active" && to === "grace_period") return ["grace_period"]
  if (license.status === "grace_period" && to === "expired") return ["expired"]
  if (license.status !== "active" || to !== "expired") return []
  return policy.grace_period_days > 0 ? ["grace_period", "expired"] : ["expired"]
}

/** The features whose expiry is due and was not recorded, by id; a revoked license's are never. */
export const expiredFeatures = ({ assignments, status }: License, now: number): ReadonlyArray<string> =>
  status === "revoked"
    ? []
    : Array.from(assignments).flatMap(([id, { enabled, expires, recorded }]) =>
        enabled && !recorded && expires !== null && now >= expires ? [id] : []
      )

export const publishedVersion = (license: License, policy: Policy, now: number): number =>
  license.version + policy.version + passed(license, policy, now).length + expiredFeatures(license, now).length

/** When the heartbeat is due of an interval that begins at an instant. */
export const intervalEnd = ({ validation_interval_minutes }: Policy, from: number): number =>
  from + validation_interval_minutes * minuteMillis + 30_000

/** What an answer to activate or validate promises a device. */
export const promise = (policy: Policy, offline: number | null, now: number): number =>
  Math.max(intervalEnd(policy, now), offline === null ? 0 : offline + 30_000)

/** A license that is served again, or from its start on: every device gets a whole interval. */
export const servedAgain = (license: License, policy: Policy, starts: number | null, now: number): number => {
  const due = intervalEnd(policy, Math.max(now, starts ?? now))
  const isStarted = license.starts === null || license.starts <= now
  return isStarted ? Math.max(due, license.floor ?? due) : due
}

/** A start that was moved ahead: every device without an answer since has a whole interval of the policy as it is. */
const dueAfterStart = ({ activated, validated }: Device, { floor, starts }: License, policy: Policy): number =>
  starts !== null && floor !== null && floor >= starts && Math.max(activated ?? 0, validated ?? 0) < starts
    ? intervalEnd(policy, starts)
    : 0

const dueOf = (device: Device, license: License, policy: Policy): number =>
  Math.max(device.due ?? 0, license.floor ?? 0, policy.floor ?? 0, dueAfterStart(device, license, policy))

/** When a device should validate to keep the slot that it was promised: a third of the interval before that ends. */
export const heartbeatCheck = (device: Device, { license, policy, now }: Situation): number =>
  policy.require_heartbeat && device.status === "active" && device.slot
    ? Math.max(now, dueOf(device, license, policy) - (policy.validation_interval_minutes * minuteMillis) / 3)
    : Number.POSITIVE_INFINITY

/** Past the promised instant. While the license is refused nothing falls due. */
export const isOverdue = (device: Device, license: License, policy: Policy, now: number): boolean => {
  const due = dueOf(device, license, policy)
  const isServed = license.status !== "suspended" && license.status !== "revoked"
  const isHeld = device.status === "active" && device.slot
  return policy.require_heartbeat && isHeld && isServed && now > due && due + 1 < accessEnd(license, policy)
}

/** A live lease that ended because its license's access ended. */
export const isCut = (lease: Lease, license: License, policy: Policy, now: number): boolean =>
  lease.status === "live" &&
  !isBorrowed(lease, now) &&
  statusAt(license, policy, now) === "expired" &&
  lease.ends >= accessEnd(license, policy)

export const isLapsed = (lease: Lease, license: License, policy: Policy, now: number): boolean =>
  lease.status === "live" && lease.ends <= now && !isCut(lease, license, policy, now)

export const deviceById = (license: License, id: string): readonly [string, Device] | undefined =>
  Array.from(license.devices).find(([, device]) => device.id === id)

export const liveLeases = ({ leases }: License): ReadonlyArray<readonly [string, Lease]> =>
  Array.from(leases).filter(([, { status }]) => status === "live")

export const liveLeaseOf = (license: License, deviceId: string): readonly [string, Lease] | undefined =>
  liveLeases(license).find(([, { device }]) => device === deviceId)

/** Ends a lease. A device that was active only by this lease becomes inactive. */
export const endLease = (license: License, token: string, status: string, otherwise: string): License => {
  const lease = license.leases.get(token)!
  const ended = { ...license, leases: replaced(license.leases, token, { ...lease, status }) }
  const holder = deviceById(ended, lease.device)
  if (holder === undefined || holder[1].status !== "active" || holder[1].slot) return ended
  const left = holder[1].activated === null ? otherwise : "expired"
  return { ...ended, devices: replaced(ended.devices, holder[0], { ...holder[1], status: left }) }
}

export const endLeases = (license: License, status: string, otherwise: string): License =>
  liveLeases(license).reduce((left, [token]) => endLease(left, token, status, otherwise), license)

/** Ends a lease, unless its seat is borrowed: then it stays until its machine is due to bring it back. */
export const endUnborrowed = (license: License, token: string, status: string, now: number): License => {
  const lease = license.leases.get(token)!
  return isBorrowed(lease, now)
    ? { ...license, leases: replaced(license.leases, token, { ...lease, ends: lease.borrowed! }) }
    : endLease(license, token, status, "deactivated")
}
