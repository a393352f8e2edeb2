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
  private readonly tokens = new Map<string, LeaseRecord>()
  private readonly devices = new Map<string, LeaseRecord>()
  private readonly due = new DueIndex<LeaseRecord>(({ expires_at }) => expires_at)

  constructor(leases: Iterable<LeaseRecord>, complete: boolean) {
    for (const lease of leases) this.add(lease)
    this.count = complete ? this.tokens.size : undefined
  }

  get isComplete(): boolean {
    return this.count === this.tokens.size
  }

  byToken(tokenHash: string): LeaseRecord | undefined {
    return this.tokens.get(tokenHash)
  }

  ofDevice(deviceId: string): LeaseRecord | undefined {
    return this.devices.get(deviceId)
  }

  /** All live leases. */
  values(): Iterable<LeaseRecord> {
    return this.isComplete ? this.tokens.values() : failUndeclared()
  }

  lapsed(now: number): ReadonlyArray<LeaseRecord> {
    return this.due.at(now, this.tokens)
  }

  /** Caches a live lease that is already counted. */
  add(lease: LeaseRecord): void {
    this.tokens.set(lease.token_hash, lease)
    this.devices.set(lease.device_id, lease)
    this.due.put(lease.token_hash, lease)
  }

  /** Applies a changed lease. A lease that is no longer live is removed. */
  put(lease: LeaseRecord): void {
    const before = this.tokens.size
    if (lease.status === "live") this.add(lease)
    else this.drop(lease)
    if (this.count !== undefined) this.count += this.tokens.size - before
  }

  private drop({ token_hash, device_id }: LeaseRecord): void {
    this.tokens.delete(token_hash)
    this.due.drop(token_hash)
    // The device may already have a superseding lease.
    if (this.devices.get(device_id)?.token_hash === token_hash) this.devices.delete(device_id)
  }
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
