/**
 * An actor's cached copy of its license at one revision. It changes only by absorbing committed changes. Of very many
 * devices it contains only the recently used ones and their leases.
 */

import { expiredFeatures, firstExpiryDueAt } from "../model/FeatureExpiry.ts"
import { mayLapseAt, notDueBefore } from "../model/Heartbeat.ts"
import type {
  Assignment,
  BindingName,
  CachedViews,
  DeviceRecord,
  LeaseRecord,
  LicenseRecord,
  PolicyRecord,
  Revisions
} from "../model/LicenseRecords.ts"
import { type Limits, limitsOf } from "../model/Limits.ts"
import { accessEndsAt } from "../rules/Lifecycle.ts"
import { endedPeriods, firstPeriodEnd } from "../rules/UsagePeriods.ts"
import { DueIndex } from "./DueIndex.ts"
import { LiveLeases } from "./LiveLeases.ts"

/** Cached devices of one license. Above this the least recently written ones are evicted and read again when needed. */
const devicesMax = 1024

export const bindingKey = ({ kind, key }: BindingName): string => `${kind}:${key}`
export const bindingKeyOf = (device: DeviceRecord): string => `${device.binding_kind}:${device.binding_key}`

/** A device, and the lease of its floating seat if it has one. */
export interface CachedDevice {
  readonly device: DeviceRecord
  readonly lease: LeaseRecord | undefined
}

/** The changes of a committed batch; `PendingChanges` collects them. */
interface CommittedChanges {
  readonly license: LicenseRecord
  readonly limits: Limits
  /** Whether there is a new revision. Devices that were only seen do not raise it. */
  readonly changed: boolean
  readonly revision: number
  readonly seen: ReadonlyMap<string, DeviceRecord>
  readonly changedDevices: ReadonlyMap<string, DeviceRecord>
  readonly containersGained: number
  readonly changedLeases: ReadonlyMap<string, LeaseRecord>
  readonly assignments: ReadonlyArray<Assignment>
  readonly assignmentsChanged: boolean
  readonly changedAssignments: ReadonlyMap<string, Assignment>
  readonly removedAssignments: ReadonlySet<string>
  readonly cachedViews: CachedViews | undefined
}

export class CommittedState {
  license: LicenseRecord
  readonly policy: PolicyRecord
  limits: Limits
  readonly productCode: string
  readonly catalogRevision: number
  /** By feature code, sorted. */
  assignments: Map<string, Assignment>
  private assignmentArray: ReadonlyArray<Assignment> | undefined
  /** No unrecorded expiry of a feature is before this instant. */
  expiriesFrom: number
  /** No unrecorded end of a period is before this instant. */
  periodsFrom: number
  /** Views derived from the current assignments. */
  cachedViews: CachedViews = {}
  readonly devices = new Map<string, DeviceRecord>()
  readonly deviceKeys = new Map<string, string>()
  /** Whether all devices of the license are cached. */
  devicesComplete: boolean
  /** From this instant on, an uncached activation may have lapsed without a validation. */
  silentFrom: number
  /** Whether all devices with held slots are cached. */
  heldSlotsCached = false
  /** Containers with a slot, cached or not; undefined until counted. */
  activeContainers: number | undefined
  /** Leases whose stored status is live: at least those of all cached devices. */
  readonly leases: LiveLeases
  /** From this instant on, an uncached lease may have lapsed. */
  lapsingFrom: number
  private readonly heartbeats: DueIndex<DeviceRecord>
  private devicesLimit = devicesMax

  constructor(loaded: {
    readonly license: LicenseRecord
    readonly policy: PolicyRecord
    readonly productCode: string
    readonly catalogRevision: number
    readonly assignments: ReadonlyArray<Assignment>
    readonly devices: ReadonlyArray<DeviceRecord>
    readonly devicesComplete: boolean
    /** All live leases, if all devices are loaded. */
    readonly leases: ReadonlyArray<LeaseRecord>
    /** The earliest end of an unloaded lease. */
    readonly lapsingFrom: number
    /** No unloaded activation lapses before this instant. */
    readonly silentFrom: number
  }) {
    this.license = loaded.license
    this.policy = loaded.policy
    this.limits = limitsOf(loaded.license, loaded.policy)
    this.productCode = loaded.productCode
    this.catalogRevision = loaded.catalogRevision
    this.assignments = sortedByCode(loaded.assignments)
    this.expiriesFrom = firstExpiryDueAt(loaded.assignments)
    this.periodsFrom = firstPeriodEnd(loaded.assignments)
    this.leases = new LiveLeases(loaded.leases, loaded.devicesComplete)
    this.lapsingFrom = loaded.lapsingFrom
    // The closure captures only the policy: capturing `loaded` would keep the loaded rows in memory.
    const { policy } = loaded
    this.heartbeats = new DueIndex((device) => mayLapseAt(device, policy))
    for (const device of loaded.devices) this.putDevice(device)
    this.devicesComplete = loaded.devicesComplete
    this.silentFrom = loaded.silentFrom
    this.activeContainers = loaded.devicesComplete ? loaded.devices.filter(isActiveContainer).length : undefined
  }

  /** Sorted by feature code. */
  get assignmentList(): ReadonlyArray<Assignment> {
    this.assignmentArray ??= Array.from(this.assignments.values())
    return this.assignmentArray
  }

  expiredFeatures(now: number): ReadonlyArray<Assignment> {
    if (now < this.expiriesFrom) return []
    const expired = expiredFeatures(this.assignmentList, now)
    // An edit has moved or removed the expiry at this instant.
    if (expired.length === 0) this.expiriesFrom = firstExpiryDueAt(this.assignmentList)
    return expired
  }

  endedPeriods(now: number): ReadonlyArray<Assignment> {
    if (now < this.periodsFrom) return []
    const ended = endedPeriods(this.assignmentList, now)
    if (ended.length === 0) this.periodsFrom = firstPeriodEnd(this.assignmentList)
    return ended
  }

  /** Whether the state was read at these revisions. */
  hasRevisions({ license, policy, catalog }: Revisions): boolean {
    return license === this.license.revision && policy === this.policy.revision && catalog === this.catalogRevision
  }

  /** Caches a device that was looked up, with its live lease. */
  cacheDevice({ device, lease }: CachedDevice): void {
    if (!this.deviceKeys.has(device.id)) this.putDevice(device)
    if (lease?.status === "live" && this.leases.byToken(lease.token_hash) === undefined) this.leases.add(lease)
  }

  private putDevice(device: DeviceRecord): void {
    const key = bindingKeyOf(device)
    this.devices.set(key, device)
    this.deviceKeys.set(device.id, key)
    this.heartbeats.put(key, device)
  }

  /** The devices whose promise has ended before an instant. License and policy may still keep their slots. */
  unpromised(now: number): ReadonlyArray<DeviceRecord> {
    return this.heartbeats.at(now, this.devices)
  }

  /** Whether the cache knows the device of a binding, or that there is none. */
  canResolve(binding: BindingName): boolean {
    return this.devicesComplete || this.devices.has(bindingKey(binding))
  }

  canResolveId(deviceId: string): boolean {
    return this.devicesComplete || this.deviceKeys.has(deviceId)
  }

  /** Whether everything is cached that the clock changes until an instant. */
  isReadyAt(now: number): boolean {
    return this.heartbeatsReadyAt(now) && this.leasesReadyAt(now)
  }

  /** Whether all devices are cached that may lapse until an instant. */
  heartbeatsReadyAt(now: number): boolean {
    const { status } = this.license
    return now < Math.max(this.silentFrom, notDueBefore(this.license, this.policy)) || status === "suspended"
  }

  /** Whether all leases are cached that end until an instant, on their own or with the license's access. */
  leasesReadyAt(now: number): boolean {
    return this.leases.isComplete || (now < this.lapsingFrom && !this.accessEndsBy(now))
  }

  get accessEndsAt(): number {
    return accessEndsAt(this.license, this.policy) ?? Number.POSITIVE_INFINITY
  }

  /** Also true for a license that a node with a clock ahead has stored as expired. */
  accessEndsBy(now: number): boolean {
    return this.license.status === "expired" || this.accessEndsAt <= now
  }

  /** Applies committed changes. */
  absorb(changes: CommittedChanges): void {
    for (const device of changes.seen.values()) this.putDevice(device)
    if (changes.changed) this.absorbChanges(changes)
    if (this.devices.size > this.devicesLimit) this.evictDevices()
  }

  private absorbChanges(changes: CommittedChanges): void {
    const { not_due_before } = changes.license
    if (not_due_before !== this.license.not_due_before && !this.devicesComplete)
      this.silentFrom = Math.min(this.silentFrom, not_due_before ?? this.silentFrom)
    this.license = { ...changes.license, revision: changes.revision }
    this.limits = changes.limits
    if (changes.assignmentsChanged) this.absorbAssignments(changes)
    if (this.activeContainers !== undefined) this.activeContainers += changes.containersGained
    for (const device of changes.changedDevices.values()) this.putDevice(device)
    for (const lease of changes.changedLeases.values()) this.leases.put(lease)
  }

  private absorbAssignments(changes: CommittedChanges): void {
    this.assignmentArray = undefined
    this.cachedViews = changes.cachedViews ?? {}
    const changed = Array.from(changes.changedAssignments.values())
    this.expiriesFrom = Math.min(this.expiriesFrom, firstExpiryDueAt(changed))
    this.periodsFrom = Math.min(this.periodsFrom, firstPeriodEnd(changed))
    // Most commands only change counts: sorting 200 assignments again took as long as the rest of a consumption.
    if (changes.removedAssignments.size === 0 && changed.every((row) => this.hasSamePosition(row)))
      for (const row of changed) this.assignments.set(row.feature_code, row)
    else this.assignments = sortedByCode(changes.assignments)
  }

  private hasSamePosition({ feature_code, feature_id }: Assignment): boolean {
    return this.assignments.get(feature_code)?.feature_id === feature_id
  }

  /** Evicts devices without a seat. Devices with a seat stay cached, because each heartbeat needs them. */
  private evictDevices(): void {
    for (const [key, device] of this.devices) {
      if (this.devices.size <= devicesMax / 2) break
      if (this.leases.ofDevice(device.id) !== undefined) continue
      this.devices.delete(key)
      this.deviceKeys.delete(device.id)
      if (device.slot_held_until !== undefined) this.heldSlotsCached = false
      this.heartbeats.drop(key)
      this.devicesComplete = false
      this.silentFrom = Math.min(this.silentFrom, mayLapseAt(device, this.policy))
    }
    // If nearly all devices must stay, a higher limit prevents repeated scans that free nothing.
    this.devicesLimit = Math.max(devicesMax, 2 * this.devices.size)
  }
}

export const isActiveContainer = ({ binding_kind, holds_slot, status }: DeviceRecord): boolean =>
  binding_kind === "container" && holds_slot && status === "active"

/** The assignments with pending changes, sorted by feature code. */
export const mergedAssignments = (
  { assignments }: CommittedState,
  changed: ReadonlyMap<string, Assignment>,
  removed: ReadonlySet<string>
): ReadonlyArray<Assignment> => {
  const merged: Array<Assignment> = []
  let replaced = 0
  for (const committed of assignments.values()) {
    const after = changed.get(committed.feature_id)
    if (after !== undefined) replaced++
    if (!removed.has(committed.feature_id)) merged.push(after ?? committed)
  }
  if (replaced === changed.size) return merged
  const mergedIds = new Set(merged.map((assignment) => assignment.feature_id))
  const added = Array.from(changed.values()).filter(({ feature_id }) => !mergedIds.has(feature_id))
  return Array.from(sortedByCode([...merged, ...added]).values())
}

const sortedByCode = (assignments: ReadonlyArray<Assignment>): Map<string, Assignment> =>
  new Map(
    assignments
      .toSorted((a, b) => (a.feature_code < b.feature_code ? -1 : 1))
      .map((assignment) => [assignment.feature_code, assignment])
  )
