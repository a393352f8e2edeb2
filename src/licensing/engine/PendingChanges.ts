/** The changes that a batch has decided on top of the committed state. They are discarded if the commit fails. */
import type { Entry } from "../../ledger/events/Entry.ts"
import { markKey, type Prefetched } from "../lookups/Prefetch.ts"
import { expiredFeatures, expiryDueAt } from "../model/FeatureExpiry.ts"
import { notDueBefore } from "../model/Heartbeat.ts"
import type {
  Assignment,
  BindingName,
  CachedViews,
  Changes,
  DeviceRecord,
  FeatureRecord,
  LeaseRecord,
  LicenseRecord,
  LicenseView,
  LinkKind,
  LinkRecord,
  PolicyRecord,
  TargetPolicy,
  VersionRecord
} from "../model/LicenseRecords.ts"
import { type Limits, limitsOf } from "../model/Limits.ts"
import type { CountedUsage, LedgerEntry, ReversalMark } from "../model/Usage.ts"
import { clockOrigin, eventRow, pendingMark, usageRow } from "../rows/EventRows.ts"
import { changesProfile } from "../rows/LicenseTable.ts"
import { cachedViewsAfter } from "../rules/Entitlement.ts"
import type { Origin, StoredWithChange } from "../rules/LicenseCommand.ts"
import { isOverdue } from "../rules/Lifecycle.ts"
import { endedPeriods, periodEndsAt } from "../rules/UsagePeriods.ts"
import {
  bindingKey,
  bindingKeyOf,
  type CommittedState,
  isActiveContainer,
  mergedAssignments
} from "../state/CommittedState.ts"
import { LeaseChanges } from "../state/LiveLeases.ts"

export class PendingChanges implements LicenseView {
  license: LicenseRecord
  /** Differs from the committed state's if the license moves to another policy. */
  policy: PolicyRecord
  limits: Limits
  readonly productCode: string
  readonly base: CommittedState
  readonly prefetched: Prefetched
  cachedViews: CachedViews | undefined
  readonly changedDevices = new Map<string, DeviceRecord>()
  readonly seen = new Map<string, DeviceRecord>()
  readonly changedAssignments = new Map<string, Assignment>()
  /** By feature id. */
  readonly removedAssignments = new Set<string>()
  /** Events and rows of the ledger, in the order of the decisions. */
  readonly entries: Array<Entry> = []
  /** Responses and mails to store with the change. */
  readonly stored: Array<StoredWithChange> = []
  /** When all devices that are not cached were reset. */
  othersResetAt: number | undefined
  /** Whether license columns beyond state and counters changed. */
  profileChanged = false
  /** The license's revision after the commit; the journal draws it. */
  revision = 0
  /** The node's epoch at the decision. Undefined: any epoch. */
  epoch: string | undefined
  /** From this instant on the changes are not committed, unless their commit has begun. */
  deadline = Number.POSITIVE_INFINITY
  /** The change in the number of containers with a slot. */
  containersGained = 0
  private readonly counts = new Map<string, CountedUsage>()
  private readonly changedIds = new Map<string, DeviceRecord>()
  private merged: ReadonlyArray<Assignment> | undefined
  /** The same as in the committed state, for changed assignments. */
  private expiriesFrom = Number.POSITIVE_INFINITY
  private periodsFrom = Number.POSITIVE_INFINITY
  private readonly leases: LeaseChanges

  constructor(base: CommittedState, prefetched: Prefetched) {
    this.base = base
    this.license = base.license
    this.policy = base.policy
    this.limits = base.limits
    this.productCode = base.productCode
    this.cachedViews = base.cachedViews
    this.prefetched = prefetched
    this.leases = new LeaseChanges(base.leases)
  }

  /** Whether there are changes to commit under the fence. Changes by the clock alone can wait. */
  changed = false

  /** Whether the license moves to another policy, so that its cached state must be loaded again. */
  get movesPolicy(): boolean {
    return this.policy !== this.base.policy
  }

  get assignmentsChanged(): boolean {
    return this.changedAssignments.size > 0 || this.removedAssignments.size > 0
  }

  get assignments(): ReadonlyArray<Assignment> {
    this.merged ??= this.assignmentsChanged
      ? mergedAssignments(this.base, this.changedAssignments, this.removedAssignments)
      : this.base.assignmentList
    return this.merged
  }

  assignmentByCode(code: string): Assignment | undefined {
    const committed = this.base.assignments.get(code)
    if (!this.assignmentsChanged) return committed
    if (committed !== undefined && !this.removedAssignments.has(committed.feature_id)) {
      const current = this.changedAssignments.get(committed.feature_id) ?? committed
      if (current.feature_code === code) return current
    }
    return this.assignments.find((assignment) => assignment.feature_code === code)
  }

  assignmentById(featureId: string): Assignment | undefined {
    return this.assignments.find((assignment) => assignment.feature_id === featureId)
  }

  expiredFeatures(now: number): ReadonlyArray<Assignment> {
    if (!this.assignmentsChanged) return this.base.expiredFeatures(now)
    return now < Math.min(this.base.expiriesFrom, this.expiriesFrom) ? [] : expiredFeatures(this.assignments, now)
  }

  endedPeriods(now: number): ReadonlyArray<Assignment> {
    if (!this.assignmentsChanged) return this.base.endedPeriods(now)
    return now < Math.min(this.base.periodsFrom, this.periodsFrom) ? [] : endedPeriods(this.assignments, now)
  }

  device(binding: BindingName): DeviceRecord | undefined {
    return this.deviceAt(bindingKey(binding))
  }

  private deviceAt(key: string): DeviceRecord | undefined {
    return this.changedDevices.get(key) ?? this.seen.get(key) ?? this.base.devices.get(key)
  }

  deviceById(id: string): DeviceRecord | undefined {
    const key = this.base.deviceKeys.get(id)
    return (
      this.changedIds.get(id) ?? (key === undefined ? undefined : (this.seen.get(key) ?? this.base.devices.get(key)))
    )
  }

  get devices(): Iterable<DeviceRecord> {
    return this.changedDevices.size === 0 ? this.base.devices.values() : this.mergedDevices()
  }

  private *mergedDevices(): Generator<DeviceRecord> {
    for (const [key, device] of this.base.devices) yield this.changedDevices.get(key) ?? device
    for (const [key, device] of this.changedDevices) if (!this.base.devices.has(key)) yield device
  }

  get activeContainers(): number {
    return (this.base.activeContainers ?? 0) + this.containersGained
  }

  overdue(now: number): ReadonlyArray<DeviceRecord> {
    const { license, policy } = this
    if (!policy.require_heartbeat || now <= notDueBefore(license, policy)) return []
    const untouched = this.base.unpromised(now).filter((device) => !this.changedDevices.has(bindingKeyOf(device)))
    return [...untouched, ...this.changedDevices.values()].filter((device) => isOverdue(device, license, policy, now))
  }

  get liveLeases(): Iterable<LeaseRecord> {
    return this.leases.live()
  }

  get liveLeaseCount(): number {
    return this.leases.count
  }

  liveLeaseOf(deviceId: string): LeaseRecord | undefined {
    return this.leases.ofDevice(deviceId)
  }

  lapsed(now: number): ReadonlyArray<LeaseRecord> {
    return this.leases.lapsed(now)
  }

  leaseByToken(tokenHash: string): LeaseRecord | undefined {
    return this.leases.byToken(tokenHash) ?? this.prefetched.endedLeases.get(tokenHash)
  }

  /** Changed leases, by token. */
  get changedLeases(): ReadonlyMap<string, LeaseRecord> {
    return this.leases.changed
  }

  counted(eventId: string): CountedUsage | undefined {
    return this.counts.get(eventId) ?? this.prefetched.counted.get(eventId)
  }

  reversalMark(featureId: string, eventId: string): ReversalMark | undefined {
    return pendingMark(this.entries, featureId, eventId) ?? this.prefetched.marks.get(markKey(featureId, eventId))
  }

  version(appVersion: string): VersionRecord {
    const versions = this.prefetched.versions
    return { enforced: versions !== undefined && versions.size > 0, released_at: versions?.get(appVersion) }
  }

  feature(featureId: string): FeatureRecord | undefined {
    return this.prefetched.features.get(featureId)
  }

  link(kind: LinkKind, id: string): LinkRecord | undefined {
    return this.prefetched.links.find((link) => link.kind === kind && link.id === id)
  }

  targetPolicy(id: string): TargetPolicy | undefined {
    return this.prefetched.policies.get(id)
  }

  get otherResettable(): number {
    return this.othersResetAt === undefined ? this.prefetched.otherResettable : 0
  }

  /** Applies a decision. */
  apply(changes: Changes, origin: Origin, now: number): void {
    const { seen, ...fenced } = changes
    this.changed ||= changesAnything(fenced)
    this.applyAll(fenced, origin, now)
    if (seen === undefined) return
    const key = bindingKeyOf(seen)
    if (this.changedDevices.has(key)) {
      this.changedDevices.set(key, seen)
      this.changedIds.set(seen.id, seen)
    } else this.seen.set(key, seen)
  }

  /** Applies changes by the clock. They are committed with the first decision; reads do not commit them. */
  settle(changes: Changes | undefined, now: number): void {
    if (changes !== undefined) this.applyAll(changes, clockOrigin, now)
  }

  private applyAll(changes: Changes, origin: Origin, now: number): void {
    if (changes.policy !== undefined) this.policy = changes.policy
    if (changes.license !== undefined || changes.entitlement === true) {
      const isProfile = changesProfile(this.license, changes.license)
      this.license = {
        ...this.license,
        ...changes.license,
        entitlement_counter:
          (changes.license?.entitlement_counter ?? this.license.entitlement_counter) +
          (changes.entitlement === true ? 1 : 0)
      }
      if (isProfile) {
        this.profileChanged = true
        this.limits = limitsOf(this.license, this.policy)
      }
    }
    for (const device of changes.devices ?? []) {
      const key = bindingKeyOf(device)
      const before = this.deviceAt(key)
      this.containersGained +=
        Number(isActiveContainer(device)) - Number(before !== undefined && isActiveContainer(before))
      this.changedDevices.set(key, device)
      this.changedIds.set(device.id, device)
    }
    if (changes.othersReset === true) {
      this.othersResetAt = now
      // A reset frees the slots of all devices, cached or not.
      this.containersGained = -(this.base.activeContainers ?? 0)
    }
    if (changes.removedAssignments !== undefined) this.cachedViews = undefined
    else if (changes.assignments !== undefined) this.cachedViews = cachedViewsAfter(this, changes.assignments)
    for (const assignment of changes.assignments ?? []) {
      this.merged = undefined
      this.expiriesFrom = Math.min(this.expiriesFrom, expiryDueAt(assignment))
      this.periodsFrom = Math.min(this.periodsFrom, periodEndsAt(assignment))
      this.changedAssignments.set(assignment.feature_id, assignment)
      this.removedAssignments.delete(assignment.feature_id)
    }
    for (const featureId of changes.removedAssignments ?? []) {
      this.merged = undefined
      this.changedAssignments.delete(featureId)
      this.removedAssignments.add(featureId)
    }
    for (const lease of changes.leases ?? []) this.leases.put(lease)
    // The ledger row of a consumption is its event, which precedes the events that it triggers.
    for (const entry of changes.ledger ?? []) this.addUsage(entry, origin, now)
    for (const event of changes.events ?? []) this.entries.push(eventRow(event, origin, now))
  }

  private addUsage(entry: LedgerEntry, origin: Origin, now: number): void {
    this.entries.push(usageRow(entry, this.license.id, origin, now))
    const { amount, event_id, feature_code } = entry
    if (event_id !== undefined && feature_code !== undefined) {
      this.counts.set(event_id, { feature_code, amount })
    }
  }
}

const changesAnything = (changes: Changes): boolean => {
  for (const part of Object.values(changes)) if (!Array.isArray(part) || part.length > 0) return true
  return false
}
