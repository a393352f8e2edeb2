/**
 * The live leases of a license: as committed (`LiveLeases`), and with pending changes (`LeaseChanges`). A license may
 * have thousands, so only operations that end all leases scan or copy them. Of very many leases only used ones are
 * cached. What must stay true: the live lease of a cached device is cached.
 */

import type { LeaseRecord } from "../model/LicenseRecords.ts"
import { DueIndex } from "./DueIndex.ts"

export class LiveLeases {
  /** The number of live leases, cached or not; undefined until counted. */
  count: number | undefined
  /** Absent until the first lease: most licenses have none. */
  private cached: CachedLeases | undefined

  constructor(leases: Iterable<LeaseRecord>, complete: boolean) {
    for (const lease of leases) this.add(lease)
    this.count = complete ? this.size : undefined
  }

  private get size(): number {
    return this.cached?.tokens.size ?? 0
  }

  get isComplete(): boolean {
    return this.count === this.size
  }

  byToken(tokenHash: string): LeaseRecord | undefined {
    return this.cached?.tokens.get(tokenHash)
  }

  ofDevice(deviceId: string): LeaseRecord | undefined {
    return this.cached?.devices.get(deviceId)
  }

  /** All live leases. */
  values(): Iterable<LeaseRecord> {
    return this.isComplete ? (this.cached?.tokens.values() ?? []) : failUndeclared()
  }

  lapsed(now: number): ReadonlyArray<LeaseRecord> {
    return this.cached?.due.at(now, this.cached.tokens) ?? []
  }

  /** Caches a live lease that is already counted. */
  add(lease: LeaseRecord): void {
    this.cached ??= { tokens: new Map(), devices: new Map(), due: new DueIndex(endOfLease) }
    this.cached.tokens.set(lease.token_hash, lease)
    this.cached.devices.set(lease.device_id, lease)
    this.cached.due.put(lease.token_hash, lease)
  }

  /** Applies a changed lease. A lease that is no longer live is removed. */
  put(lease: LeaseRecord): void {
    const before = this.size
    if (lease.status === "live") this.add(lease)
    else if (this.cached !== undefined) drop(lease, this.cached)
    if (this.count !== undefined) this.count += this.size - before
  }
}

interface CachedLeases {
  readonly tokens: Map<string, LeaseRecord>
  readonly devices: Map<string, LeaseRecord>
  readonly due: DueIndex<LeaseRecord>
}

const endOfLease = ({ expires_at }: LeaseRecord) => expires_at

const drop = ({ token_hash, device_id }: LeaseRecord, { devices, due, tokens }: CachedLeases): void => {
  tokens.delete(token_hash)
  due.drop(token_hash)
  // The device may already have a superseding lease.
  if (devices.get(device_id)?.token_hash === token_hash) devices.delete(device_id)
}

/** Without a declaration in `needs`, a rule would count seats wrongly or leave leases live. */
const failUndeclared = (): never => {
  throw new Error("The command does not declare the leases of the license in its needs.")
}

export class LeaseChanges {
  /** By token, in the order of the decisions, including leases that ended. */
  readonly changed = new Map<string, LeaseRecord>()
  private readonly base: LiveLeases
  /** The change in the number of live leases. */
  private gained = 0
  private readonly devices = new Map<string, LeaseRecord | undefined>()

  constructor(base: LiveLeases) {
    this.base = base
  }

  get count(): number {
    return (this.base.count ?? failUndeclared()) + this.gained
  }

  byToken(tokenHash: string): LeaseRecord | undefined {
    return this.changed.get(tokenHash) ?? this.base.byToken(tokenHash)
  }

  ofDevice(deviceId: string): LeaseRecord | undefined {
    return this.devices.has(deviceId) ? this.devices.get(deviceId) : this.base.ofDevice(deviceId)
  }

  *live(): Generator<LeaseRecord> {
    for (const lease of this.base.values()) if (!this.changed.has(lease.token_hash)) yield lease
    for (const lease of this.changed.values()) if (lease.status === "live") yield lease
  }

  lapsed(now: number): ReadonlyArray<LeaseRecord> {
    const untouched = this.base.lapsed(now)
    if (this.changed.size === 0) return untouched
    const isLapsed = ({ status, expires_at }: LeaseRecord) => status === "live" && expires_at <= now
    return [
      ...untouched.filter(({ token_hash }) => !this.changed.has(token_hash)),
      ...Array.from(this.changed.values()).filter(isLapsed)
    ]
  }

  put(lease: LeaseRecord): void {
    const { token_hash, device_id } = lease
    this.gained += Number(lease.status === "live") - Number(this.byToken(token_hash)?.status === "live")
    this.changed.set(token_hash, lease)
    if (lease.status === "live") this.devices.set(device_id, lease)
    else if (this.ofDevice(device_id)?.token_hash === token_hash) this.devices.set(device_id, undefined)
  }
}
