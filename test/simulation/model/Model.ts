/**
 * The simulator's own idea of a license: what it is made of and what time does to it. Written from docs/API.md and
 * docs/STATES.md, not from the rules, and kept simple: one license is a few maps, a change is a copy.
 */
import type { Code } from "../../../src/api/ErrorCode.ts"

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
  /** The policy's share of the entitlement version. */
  readonly version: number
}

/** What a license depends on and others change. */
export interface Catalog {
  readonly policies: ReadonlyMap<string, Policy>
  /** Codes of the product's features by id. */
  readonly features: ReadonlyMap<string, string>
  /** Release instants of the product's versions. */
  readonly versions: ReadonlyMap<string, number>
}

export interface Device {
  readonly id: string
  readonly kind: "hardware" | "container"
  readonly status: string
  readonly slot: boolean
  readonly activated: number | null
  readonly validated: number | null
}

export interface Lease {
  readonly id: string
  readonly device: string
  readonly status: string
  readonly ends: number
}

export interface Assignment {
  readonly enabled: boolean
  readonly max: number | null
  readonly used: number
  readonly expires: number | null
  readonly metadata: string
}

export interface License {
  readonly id: string
  readonly policy: string
  readonly key: string
  readonly status: string
  readonly starts: number | null
  readonly expires: number | null
  readonly maintenance: number | null
  readonly customer_id: string | null
  readonly customer_email: string | null
  readonly customer_name: string | null
  readonly metadata: string
  readonly active: number
  readonly activations: number
  readonly transfers: number
  readonly total: number
  /** The license's share of the entitlement version. */
  readonly version: number
  /** By kind and key of the binding. */
  readonly devices: ReadonlyMap<string, Device>
  /** By the digest of the token. */
  readonly leases: ReadonlyMap<string, Lease>
  /** By the feature's id. */
  readonly assignments: ReadonlyMap<string, Assignment>
  /** Consumptions by event id. */
  readonly counted: ReadonlyMap<string, { readonly feature: string; readonly amount: number }>
}

/** A row of the ledger as it should be written. */
export interface Entry {
  readonly feature: string
  readonly action: string
  readonly amount: number
  readonly balance: number
  readonly max: number | null
}

/** What a command should come to. */
export interface Answer {
  /** Undefined where it should be accepted. */
  readonly code?: Code
  /** The license afterwards. */
  readonly license: License
  /** The types of the events that it should leave, in order. */
  readonly events: ReadonlyArray<string>
  readonly ledger: ReadonlyArray<Entry>
  /** Members of the answer that callers should be told. */
  readonly reply: { readonly [member: string]: unknown }
}

/** On what a command is decided. */
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

export const accessEnd = ({ expires }: License, { grace_period_days }: Policy): number =>
  expires === null ? Number.POSITIVE_INFINITY : expires + grace_period_days * dayMillis

/** Where the clock puts a license that nobody suspended or revoked. */
export const clockStatus = (license: License, policy: Policy, now: number): string => {
  if (license.expires === null || now < license.expires) return "active"
  return now < accessEnd(license, policy) ? "grace_period" : "expired"
}

export const statusAt = (license: License, policy: Policy, now: number): string =>
  license.status === "suspended" || license.status === "revoked" ? license.status : clockStatus(license, policy, now)

/** The states that time has led a license through since it was written down. */
const passed = (license: License, policy: Policy, now: number): ReadonlyArray<string> => {
  const to = statusAt(license, policy, now)
  if (license.status === "active" && to === "grace_period") return ["grace_period"]
  if (license.status === "grace_period" && to === "expired") return ["expired"]
  if (license.status !== "active" || to !== "expired") return []
  return policy.grace_period_days > 0 ? ["grace_period", "expired"] : ["expired"]
}

export const publishedVersion = (license: License, policy: Policy, now: number): number =>
  license.version + policy.version + passed(license, policy, now).length

export const isOverdue = (device: Device, policy: Policy, now: number): boolean =>
  policy.require_heartbeat &&
  device.status === "active" &&
  device.slot &&
  now >
    Math.max(device.activated ?? 0, device.validated ?? 0) + policy.validation_interval_minutes * minuteMillis + 30_000

/** A live lease that ended with its license's access rather than by itself. */
export const isCut = (lease: Lease, license: License, policy: Policy, now: number): boolean =>
  lease.status === "live" && statusAt(license, policy, now) === "expired" && lease.ends >= accessEnd(license, policy)

const isLapsed = (lease: Lease, license: License, policy: Policy, now: number): boolean =>
  lease.status === "live" && lease.ends <= now && !isCut(lease, license, policy, now)

export const deviceById = (license: License, id: string): readonly [string, Device] | undefined =>
  Array.from(license.devices).find(([, device]) => device.id === id)

export const liveLeases = ({ leases }: License): ReadonlyArray<readonly [string, Lease]> =>
  Array.from(leases).filter(([, { status }]) => status === "live")

export const liveLeaseOf = (license: License, deviceId: string): readonly [string, Lease] | undefined =>
  liveLeases(license).find(([, { device }]) => device === deviceId)

/** Ends a lease; whoever was active for nothing else is not any more. */
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

/** What time does that is recorded, as events name it: `type resource`. */
export const dueTransitions = (license: License, policy: Policy, now: number): ReadonlyArray<string> => [
  ...passed(license, policy, now).map((stage) =>
    stage === "expired" ? `license.expired ${license.id}` : `license.grace_period_started ${license.id}`
  ),
  ...Array.from(license.devices.values())
    .filter((device) => isOverdue(device, policy, now))
    .map(({ id }) => `device.expired ${id}`),
  ...liveLeases(license)
    .filter(([, lease]) => isLapsed(lease, license, policy, now))
    .map(([, { id }]) => `lease.expired ${id}`)
]

/** Applies one recorded move of time. Undefined where it was not due. */
export const transitionByTime = (license: License, policy: Policy, now: number, move: string): License | undefined => {
  if (!dueTransitions(license, policy, now).includes(move)) return undefined
  const [type, id] = move.split(" ") as [string, string]
  if (type === "license.grace_period_started") {
    return { ...license, status: "grace_period", version: license.version + 1 }
  }
  if (type === "license.expired") {
    return cutLeases({ ...license, status: "expired", version: license.version + 1 }, policy, now)
  }
  if (type === "device.expired") return silence(license, policy, now, id)
  const [token] = liveLeases(license).find(([, lease]) => lease.id === id)!
  return endLease(license, token, "expired", "expired")
}

/** Leases that ended with their license's access: nothing is recorded of them but the license's end. */
const cutLeases = (license: License, policy: Policy, now: number): License =>
  liveLeases(license)
    .filter(([, lease]) => isCut(lease, license, policy, now))
    .reduce((left, [token]) => endLease(left, token, "ended", "deactivated"), license)

const silence = (license: License, policy: Policy, now: number, id: string): License => {
  const [key, device] = deviceById(license, id)!
  const lease = liveLeaseOf(license, id)?.[1]
  const isSeated = lease !== undefined && !isCut(lease, license, policy, now) && !isLapsed(lease, license, policy, now)
  const silent = { ...device, slot: false, status: isSeated ? "active" : "expired" }
  return { ...license, active: license.active - 1, devices: replaced(license.devices, key, silent) }
}

/** All that time does, recorded or not. A state can go back, where an edit moved an end ahead of the clock. */
export const settled = (license: License, policy: Policy, now: number): License => {
  const moved = dueTransitions(license, policy, now).reduce(
    (left, move) => transitionByTime(left, policy, now, move) ?? left,
    license
  )
  return cutLeases({ ...moved, status: statusAt(moved, policy, now) }, policy, now)
}
