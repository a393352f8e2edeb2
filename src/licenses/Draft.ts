/**
 * What an actor holds of its license (`LicenseState`, as committed) and what a round of commands has decided on top of it
 * (`Draft`). A draft is thrown away when its commit does not come about; the state is only changed by absorbing a draft that
 * was committed.
 */
import type { AnswerRow } from "../api/KeptAnswer.ts"
import type { EventRow, NewEvent, UsageRow } from "../events/EventLog.ts"
import type { Origin } from "./LicenseCommand.ts"
import type {
  Assignment,
  BindingName,
  Changes,
  CountedUsage,
  DeviceRecord,
  FeatureRecord,
  LeaseRecord,
  LedgerEntry,
  LicenseRecord,
  LicenseView,
  PolicyRecord,
  VersionRecord
} from "./LicenseState.ts"

/** Devices that an idle actor keeps in memory; beyond, the least recently written are read again when needed. */
const devicesMax = 1024

const bindingKey = ({ kind, key }: BindingName): string => `${kind}:${key}`
const keyOf = (device: DeviceRecord): string => `${device.binding_kind}:${device.binding_key}`

export class LicenseState {
  license: LicenseRecord
  readonly policy: PolicyRecord
  readonly catalogRevision: number
  /** By feature code, in its order. */
  assignments: ReadonlyMap<string, Assignment>
  readonly devices = new Map<string, DeviceRecord>()
  readonly deviceKeys = new Map<string, string>()
  /** Whether a device that is not here does not exist. */
  devicesComplete: boolean
  /** Whether every active device is here. */
  activeComplete: boolean
  /** All leases whose stored status is live, by token hash. */
  readonly leases = new Map<string, LeaseRecord>()

  constructor(loaded: {
    readonly license: LicenseRecord
    readonly policy: PolicyRecord
    readonly catalogRevision: number
    readonly assignments: ReadonlyArray<Assignment>
    readonly devices: ReadonlyArray<DeviceRecord>
    readonly devicesComplete: boolean
    readonly activeComplete: boolean
    readonly leases: ReadonlyArray<LeaseRecord>
  }) {
    this.license = loaded.license
    this.policy = loaded.policy
    this.catalogRevision = loaded.catalogRevision
    this.assignments = sortedByCode(loaded.assignments)
    for (const device of loaded.devices) this.know(device)
    this.devicesComplete = loaded.devicesComplete
    this.activeComplete = loaded.activeComplete
    for (const lease of loaded.leases) this.leases.set(lease.token_hash, lease)
  }

  know(device: DeviceRecord): void {
    this.devices.set(keyOf(device), device)
    this.deviceKeys.set(device.id, keyOf(device))
  }

  /** Whether it is known of a binding which device it names, or that there is none. */
  knows(binding: BindingName): boolean {
    return this.devicesComplete || this.devices.has(bindingKey(binding))
  }

  knowsId(deviceId: string): boolean {
    return this.devicesComplete || this.deviceKeys.has(deviceId)
  }

  /** Takes over what a committed draft has changed. */
  absorb(draft: Draft): void {
    for (const device of draft.seen.values()) this.know(device)
    if (draft.changed) this.absorbChanges(draft)
    if (this.devices.size > devicesMax) this.forgetDevices()
  }

  private absorbChanges(draft: Draft): void {
    this.license = { ...draft.license, revision: this.license.revision + 1 }
    if (draft.assignmentsChanged) this.assignments = sortedByCode(draft.assignments)
    for (const device of draft.changedDevices.values()) this.know(device)
    for (const lease of draft.changedLeases.values()) {
      if (lease.status === "live") this.leases.set(lease.token_hash, lease)
      else this.leases.delete(lease.token_hash)
    }
  }

  /** Rules that count or time active devices need all of them here; the others can be looked up again. */
  private forgetDevices(): void {
    const keepsActive = this.policy.require_heartbeat || (this.policy.max_container_instances ?? 0) > 0
    for (const [key, device] of this.devices) {
      if (this.devices.size <= devicesMax / 2) break
      if (keepsActive && device.status === "active") continue
      this.devices.delete(key)
      this.deviceKeys.delete(device.id)
    }
    this.devicesComplete = false
    this.activeComplete &&= keepsActive
  }
}

const sortedByCode = (assignments: ReadonlyArray<Assignment>): ReadonlyMap<string, Assignment> =>
  new Map(
    assignments
      .toSorted((a, b) => (a.feature_code < b.feature_code ? -1 : 1))
      .map((assignment) => [assignment.feature_code, assignment])
  )

/** What was looked up for the commands of a round, beyond what the state holds. */
export interface Knowledge {
  readonly counted: Map<string, CountedUsage>
  readonly features: Map<string, FeatureRecord>
  /** Undefined where no command named a version. */
  readonly versions: ReadonlyMap<string, number> | undefined
  /** Leases that are not live any more, by token hash. */
  readonly endedLeases: Map<string, LeaseRecord>
}

export class Draft implements LicenseView {
  license: LicenseRecord
  readonly policy: PolicyRecord
  readonly base: LicenseState
  readonly knowledge: Knowledge
  readonly changedDevices = new Map<string, DeviceRecord>()
  readonly seen = new Map<string, DeviceRecord>()
  readonly changedAssignments = new Map<string, Assignment>()
  readonly removedAssignments = new Set<string>()
  readonly changedLeases = new Map<string, LeaseRecord>()
  readonly ledger: Array<UsageRow> = []
  readonly events: Array<EventRow> = []
  /** Answers to be kept with the change, of requests with an Idempotency-Key. */
  readonly answers: Array<AnswerRow> = []
  /** Whether license columns beyond state and counters changed. */
  profileChanged = false
  private readonly counts = new Map<string, CountedUsage>()

  constructor(base: LicenseState, knowledge: Knowledge) {
    this.base = base
    this.license = base.license
    this.policy = base.policy
    this.knowledge = knowledge
  }

  /** Whether anything was decided that must be committed under the fence. What time alone has done is not: it can wait. */
  changed = false

  get assignmentsChanged(): boolean {
    return this.changedAssignments.size > 0 || this.removedAssignments.size > 0
  }

  get assignments(): ReadonlyArray<Assignment> {
    if (!this.assignmentsChanged) return Array.from(this.base.assignments.values())
    const merged = Array.from(
      this.base.assignments.values(),
      (known) => this.changedAssignments.get(known.feature_id) ?? known
    )
    const known = new Set(merged.map((assignment) => assignment.feature_id))
    const added = Array.from(this.changedAssignments.values()).filter((assignment) => !known.has(assignment.feature_id))
    const present = [...merged, ...added].filter((assignment) => !this.removedAssignments.has(assignment.feature_id))
    return added.length === 0 ? present : Array.from(sortedByCode(present).values())
  }

  assignmentByCode(code: string): Assignment | undefined {
    const known = this.base.assignments.get(code)
    if (known !== undefined && !this.assignmentsChanged) return known
    return this.assignments.find((assignment) => assignment.feature_code === code)
  }

  assignmentById(featureId: string): Assignment | undefined {
    return this.assignments.find((assignment) => assignment.feature_id === featureId)
  }

  device(binding: BindingName): DeviceRecord | undefined {
    const key = bindingKey(binding)
    return this.changedDevices.get(key) ?? this.seen.get(key) ?? this.base.devices.get(key)
  }

  deviceById(id: string): DeviceRecord | undefined {
    for (const device of this.changedDevices.values()) if (device.id === id) return device
    const key = this.base.deviceKeys.get(id)
    return key === undefined
      ? undefined
      : (this.changedDevices.get(key) ?? this.seen.get(key) ?? this.base.devices.get(key))
  }

  get devices(): Iterable<DeviceRecord> {
    return this.changedDevices.size === 0
      ? this.base.devices.values()
      : new Map([...this.base.devices, ...this.changedDevices]).values()
  }

  get liveLeases(): Iterable<LeaseRecord> {
    if (this.changedLeases.size === 0) return this.base.leases.values()
    return Array.from(new Map([...this.base.leases, ...this.changedLeases]).values()).filter(
      (lease) => lease.status === "live"
    )
  }

  leaseByToken(tokenHash: string): LeaseRecord | undefined {
    return (
      this.changedLeases.get(tokenHash) ?? this.base.leases.get(tokenHash) ?? this.knowledge.endedLeases.get(tokenHash)
    )
  }

  counted(eventId: string): CountedUsage | undefined {
    return this.counts.get(eventId) ?? this.knowledge.counted.get(eventId)
  }

  version(appVersion: string): VersionRecord {
    const versions = this.knowledge.versions
    return { enforced: versions !== undefined && versions.size > 0, released_at: versions?.get(appVersion) }
  }

  feature(featureId: string): FeatureRecord | undefined {
    return this.knowledge.features.get(featureId)
  }

  /** Applies a decision. */
  apply(changes: Changes, origin: Origin, now: number): void {
    const { seen, ...fenced } = changes
    if (Object.values(fenced).some((part) => !Array.isArray(part) || part.length > 0)) this.changed = true
    this.write(fenced, origin, now)
    if (seen !== undefined && !this.changedDevices.has(keyOf(seen))) this.seen.set(keyOf(seen), seen)
  }

  /** Applies what time has done: committed with the first decision, not for a mere look. */
  settle(changes: Changes | undefined, now: number): void {
    if (changes !== undefined) this.write(changes, clock, now)
  }

  private write(changes: Changes, origin: Origin, now: number): void {
    if (changes.license !== undefined || changes.entitlement === true) {
      this.license = {
        ...this.license,
        ...changes.license,
        entitlement_counter:
          (changes.license?.entitlement_counter ?? this.license.entitlement_counter) +
          (changes.entitlement === true ? 1 : 0)
      }
      this.profileChanged ||= Object.keys(changes.license ?? {}).some((column) => !hotColumns.has(column))
    }
    for (const device of changes.devices ?? []) this.changedDevices.set(keyOf(device), device)
    for (const assignment of changes.assignments ?? []) {
      this.changedAssignments.set(assignment.feature_id, assignment)
      this.removedAssignments.delete(assignment.feature_id)
    }
    for (const featureId of changes.removedAssignments ?? []) {
      this.changedAssignments.delete(featureId)
      this.removedAssignments.add(featureId)
    }
    for (const lease of changes.leases ?? []) this.changedLeases.set(lease.token_hash, lease)
    for (const entry of changes.ledger ?? []) this.enter(entry, origin, now)
    this.record(changes.events, origin, now)
  }

  private record(events: ReadonlyArray<NewEvent> | undefined, origin: Origin, now: number): void {
    const { request_id, ip_address, actor_type, actor_id } = origin
    for (const event of events ?? []) {
      this.events.push({
        ...event,
        actor_type,
        actor_id,
        ip_address,
        created_at: now,
        metadata: { ...event.metadata, request_id }
      })
    }
  }

  private enter(entry: LedgerEntry, { actor_type, actor_id, request_id }: Origin, now: number): void {
    this.ledger.push({ ...entry, license_id: this.license.id, actor_type, actor_id, request_id, occurred_at: now })
    const assignment = this.assignmentById(entry.feature_id)
    if (entry.event_id !== undefined && assignment !== undefined) {
      this.counts.set(entry.event_id, { feature_code: assignment.feature_code, amount: entry.amount })
    }
  }
}

/** What time does to a license is done by the system, for no request. */
const clock: Origin = { actor_type: "system", actor_id: "clock", request_id: "req_none", ip_address: undefined }

/** License columns that every commit writes; the others are written only when a command changes one. */
const hotColumns = new Set([
  "status",
  "active_device_count",
  "times_activated",
  "times_transferred",
  "total_consumptions",
  "entitlement_counter",
  "updated_at"
])
