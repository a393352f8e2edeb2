/**
 * The live leases of a license: as committed (`LiveLeases`), and with what a draft has changed on top (`LeaseChanges`). A license
 * may have thousands, so nothing here looks at all of them or copies them, but for what ends them all.
 */
import { Due } from "./Due.ts"
import type { LeaseRecord } from "./LicenseState.ts"
import { drop, noEntries, put } from "./SmallMap.ts"

export class LiveLeases {
  private tokens = noEntries<LeaseRecord>()
  private devices = noEntries<LeaseRecord>()
  private readonly due = new Due<LeaseRecord>(({ expires_at }) => expires_at)

  constructor(leases: Iterable<LeaseRecord>) {
    for (const lease of leases) this.put(lease)
  }

  get size(): number {
    return this.tokens.size
  }

  byToken(tokenHash: string): LeaseRecord | undefined {
    return this.tokens.get(tokenHash)
  }

  ofDevice(deviceId: string): LeaseRecord | undefined {
    return this.devices.get(deviceId)
  }

  values(): Iterable<LeaseRecord> {
    return this.tokens.values()
  }

  lapsed(now: number): ReadonlyArray<LeaseRecord> {
    return this.due.at(now, this.tokens)
  }

  /** Takes over the state of a lease: one that is not live any more is forgotten. */
  put(lease: LeaseRecord): void {
    if (lease.status === "live") {
      this.tokens = put(this.tokens, lease.token_hash, lease)
      this.devices = put(this.devices, lease.device_id, lease)
      this.due.put(lease.token_hash, lease)
    } else {
      this.drop(lease)
    }
  }

  private drop({ token_hash, device_id }: LeaseRecord): void {
    this.tokens = drop(this.tokens, token_hash)
    this.due.drop(token_hash)
    // A lease that superseded this one may stand there already.
    if (this.devices.get(device_id)?.token_hash === token_hash) this.devices = drop(this.devices, device_id)
  }
}

export class LeaseChanges {
  /** By token, in the order of the decisions; the ones that ended among them. */
  changed = noEntries<LeaseRecord>()
  /** How many leases are live. */
  count: number
  private readonly base: LiveLeases
  private devices = noEntries<LeaseRecord | undefined>()

  constructor(base: LiveLeases) {
    this.base = base
    this.count = base.size
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
    this.count += Number(lease.status === "live") - Number(this.byToken(token_hash)?.status === "live")
    this.changed = put(this.changed, token_hash, lease)
    if (lease.status === "live") this.devices = put(this.devices, device_id, lease)
    else if (this.ofDevice(device_id)?.token_hash === token_hash)
      this.devices = put<LeaseRecord | undefined>(this.devices, device_id, undefined)
  }
}
