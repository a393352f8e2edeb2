/**
 * What an actor holds of its license, as the database held it at one revision. It is only changed by absorbing a draft that was
 * committed; a license with very many devices is held without those that were not used lately, and without their leases.
 */

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
import { accessEndsAt, heartbeatDueAt } from "../rules/Lifecycle.ts"
import { DueIndex } from "./DueIndex.ts"
import { LiveLeases } from "./LiveLeases.ts"

/** Devices that an idle actor keeps in memory; beyond, the least recently written are read again when needed. */
const devicesMax = 1024

/** How devices are found by their binding. */
export const bindingKey = ({ kind, key }: BindingName): string => `${kind}:${key}`
export const bindingKeyOf = (device: DeviceRecord): string => `${device.binding_kind}:${device.binding_key}`

/** A device, and the lease that it holds a floating seat by. */
export interface CachedDevice {
  readonly device: DeviceRecord
  readonly lease: LeaseRecord | undefined
}

/** What a committed round of commands has changed; `PendingChanges` collects it. */
interface CommittedChanges {
  readonly license: LicenseRecord
  /** Whether the revision rose: anything but a device that was only seen. */
  readonly changed: boolean
  readonly seen: ReadonlyMap<string, DeviceRecord>
  readonly changedDevices: ReadonlyMap<string, DeviceRecord>
  readonly containersGained: number
  readonly changedLeases: ReadonlyMap<string, LeaseRecord>
  readonly assignments: ReadonlyArray<Assignment>
  readonly assignmentsChanged: boolean
  readonly changedAssignments: ReadonlyMap<string, Assignment>
  readonly removedAssignments: ReadonlySet<string>
  readonly kept: CachedViews | undefined
}

export class CommittedState {
  license: LicenseRecord
  readonly policy: PolicyRecord
  readonly catalogRevision: number
  /** By feature code, in its order. */
  assignments: Map<string, Assignment>
  private listed: ReadonlyArray<Assignment> | undefined
  /** What was made of the assignments as they are. */
  kept: CachedViews = {}
  readonly devices = new Map<string, DeviceRecord>()
  readonly deviceKeys = new Map<string, string>()
  /** Whether a device that is not here does not exist. */
  devicesComplete: boolean
  /** From this instant on an activation that is not here may have lapsed for want of a validation. */
  silentFrom: number
  /** Containers that hold a slot, those that are not here among them; undefined until somebody has counted. */
  activeContainers: number | undefined
  /** Leases whose stored status is live, with their devices: all of the devices that are here, and maybe others. */
  readonly leases: LiveLeases
  /** From this instant on a lease that is not here may have lapsed. */
  lapsingFrom: number
  private readonly heartbeats: DueIndex<DeviceRecord>
  /** How many devices there may be before the least recently written are forgotten. */
  private devicesLimit = devicesMax

  constructor(loaded: {
    readonly license: LicenseRecord
    readonly policy: PolicyRecord
    readonly catalogRevision: number
    readonly assignments: ReadonlyArray<Assignment>
    readonly devices: ReadonlyArray<DeviceRecord>
    readonly devicesComplete: boolean
    /** Where all devices are loaded, all that are live. */
    readonly leases: ReadonlyArray<LeaseRecord>
    /** The first end of a lease that is not loaded. */
    readonly lapsingFrom: number
    /** Before this instant no activation lapses that is not loaded. */
    readonly silentFrom: number
  }) {
    this.license = loaded.license
    this.policy = loaded.policy
    this.catalogRevision = loaded.catalogRevision
    this.assignments = sortedByCode(loaded.assignments)
    this.leases = new LiveLeases(loaded.leases, loaded.devicesComplete)
    this.lapsingFrom = loaded.lapsingFrom
    // What the function holds on to is the policy alone: all that was loaded would stay in memory beside what it has become.
    const { policy } = loaded
    this.heartbeats = new DueIndex((device) => heartbeatDueAt(device, policy))
    for (const device of loaded.devices) this.know(device)
    this.devicesComplete = loaded.devicesComplete
    this.silentFrom = loaded.silentFrom
    this.activeContainers = loaded.devicesComplete ? loaded.devices.filter(isActiveContainer).length : undefined
  }

  /** In the order of their codes. */
  get assignmentList(): ReadonlyArray<Assignment> {
    this.listed ??= Array.from(this.assignments.values())
    return this.listed
  }

  /** Whether this is the state at these revisions. */
  isAsOf({ license, policy, catalog }: Revisions): boolean {
    return license === this.license.revision && policy === this.policy.revision && catalog === this.catalogRevision
  }

  /** Takes in a device that was looked up, with the live lease that it has. */
  learn({ device, lease }: CachedDevice): void {
    if (!this.deviceKeys.has(device.id)) this.know(device)
    if (lease?.status === "live" && this.leases.byToken(lease.token_hash) === undefined) this.leases.know(lease)
  }

  private know(device: DeviceRecord): void {
    const key = bindingKeyOf(device)
    this.devices.set(key, device)
    this.deviceKeys.set(device.id, key)
    this.heartbeats.put(key, device)
  }

  overdue(now: number): ReadonlyArray<DeviceRecord> {
    return this.heartbeats.at(now, this.devices)
  }

  /** Whether it is known of a binding which device it names, or that there is none. */
  knows(binding: BindingName): boolean {
    return this.devicesComplete || this.devices.has(bindingKey(binding))
  }

  knowsId(deviceId: string): boolean {
    return this.devicesComplete || this.deviceKeys.has(deviceId)
  }

  /** Whether it is all here that time changes at an instant. */
  isReadyAt(now: number): boolean {
    return now < this.silentFrom && this.leasesReadyAt(now)
  }

  /** Whether all leases are here that time ends by an instant, by themselves or with the license's access. */
  leasesReadyAt(now: number): boolean {
    return this.leases.isComplete || (now < this.lapsingFrom && !this.accessEndsBy(now))
  }

  accessEndsBy(now: number): boolean {
    return (accessEndsAt(this.license, this.policy) ?? Number.POSITIVE_INFINITY) <= now
  }

  /** Takes over what a committed draft has changed. */
  absorb(changes: CommittedChanges): void {
    for (const device of changes.seen.values()) this.know(device)
    if (changes.changed) this.absorbChanges(changes)
    if (this.devices.size > this.devicesLimit) this.forgetDevices()
  }

  private absorbChanges(changes: CommittedChanges): void {
    this.license = { ...changes.license, revision: this.license.revision + 1 }
    if (changes.assignmentsChanged) this.absorbAssignments(changes)
    if (this.activeContainers !== undefined) this.activeContainers += changes.containersGained
    for (const device of changes.changedDevices.values()) this.know(device)
    for (const lease of changes.changedLeases.values()) this.leases.put(lease)
  }

  private absorbAssignments(changes: CommittedChanges): void {
    this.listed = undefined
    this.kept = changes.kept ?? {}
    const changed = Array.from(changes.changedAssignments.values())
    // Most only count: they stay in their places, for sorting two hundred again took as long as the rest of a consumption.
    if (changes.removedAssignments.size === 0 && changed.every((row) => this.holdsPlaceOf(row)))
      for (const row of changed) this.assignments.set(row.feature_code, row)
    else this.assignments = sortedByCode(changes.assignments)
  }

  private holdsPlaceOf({ feature_code, feature_id }: Assignment): boolean {
    return this.assignments.get(feature_code)?.feature_id === feature_id
  }

  /** Holders of seats come again with each heartbeat, so they stay, as their leases do; the others are looked up when they come. */
  private forgetDevices(): void {
    for (const [key, device] of this.devices) {
      if (this.devices.size <= devicesMax / 2) break
      if (this.leases.ofDevice(device.id) !== undefined) continue
      this.devices.delete(key)
      this.deviceKeys.delete(device.id)
      this.heartbeats.drop(key)
      this.devicesComplete = false
      this.silentFrom = Math.min(this.silentFrom, heartbeatDueAt(device, this.policy))
    }
    // Where nearly all must stay, looking again at each change would be in vain.
    this.devicesLimit = Math.max(devicesMax, 2 * this.devices.size)
  }
}

/** Whether a device takes one of the slots that a limit of container instances counts. */
export const isActiveContainer = ({ binding_kind, holds_slot, status }: DeviceRecord): boolean =>
  binding_kind === "container" && holds_slot && status === "active"

export const sortedByCode = (assignments: ReadonlyArray<Assignment>): Map<string, Assignment> =>
  new Map(
    assignments
      .toSorted((a, b) => (a.feature_code < b.feature_code ? -1 : 1))
      .map((assignment) => [assignment.feature_code, assignment])
  )
