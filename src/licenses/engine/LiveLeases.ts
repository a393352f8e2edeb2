/**
 * The live leases of a license: as committed (`LiveLeases`), and with what a draft has changed on top (`LeaseChanges`). A license
 * may have thousands, so nothing here looks at all of them or copies them, but for what ends them all; and of very many
 * only those are here that were spoken of. A device that is known has its lease here, so a device without one has none.
 */

import type { LeaseRecord } from "../model/LicenseRecords.ts"
import { DueIndex } from "./DueIndex.ts"

export class LiveLeases {
  /** How many are live, those that are not here among them; undefined until somebody has counted. */
  count: number | undefined
  private readonly tokens = new Map<string, LeaseRecord>()
  private readonly devices = new Map<string, LeaseRecord>()
  private readonly due = new DueIndex<LeaseRecord>(({ expires_at }) => expires_at)

  /** `complete`: whether these are all that are live. */
  constructor(leases: Iterable<LeaseRecord>, complete: boolean) {
    for (const lease of leases) this.know(lease)
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

  /** All that are live. */
  values(): Iterable<LeaseRecord> {
    return this.isComplete ? this.tokens.values() : unknown()
  }

  lapsed(now: number): ReadonlyArray<LeaseRecord> {
    return this.due.at(now, this.tokens)
  }

  /** Takes in a live lease that was live before, too. */
  know(lease: LeaseRecord): void {
    this.tokens.set(lease.token_hash, lease)
    this.devices.set(lease.device_id, lease)
    this.due.put(lease.token_hash, lease)
  }

  /** Takes over the state of a lease that has changed: one that is not live any more is forgotten. */
  put(lease: LeaseRecord): void {
    const before = this.tokens.size
    if (lease.status === "live") this.know(lease)
    else this.drop(lease)
    if (this.count !== undefined) this.count += this.tokens.size - before
  }

  private drop({ token_hash, device_id }: LeaseRecord): void {
    this.tokens.delete(token_hash)
    this.due.drop(token_hash)
    // A lease that superseded this one may stand there already.
    if (this.devices.get(device_id)?.token_hash === token_hash) this.devices.delete(device_id)
  }
}

/** A rule that asks for what its needs do not name would count seats wrongly, or leave leases live: better it fails. */
const unknown = (): never => {
  throw new Error("The leases of the license were not asked for by the command's needs.")
}

export class LeaseChanges {
  /** By token, in the order of the decisions; the ones that ended among them. */
  readonly changed = new Map<string, LeaseRecord>()
  private readonly base: LiveLeases
  /** How many more leases are live than as committed. */
  private gained = 0
  private readonly devices = new Map<string, LeaseRecord | undefined>()

  constructor(base: LiveLeases) {
    this.base = base
  }

  /** How many leases are live. */
  get count(): number {
    return (this.base.count ?? unknown()) + this.gained
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
