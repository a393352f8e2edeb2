/** Fetches the data that the commands of a batch need beyond the cached state. Most batches need nothing. */
import { Effect } from "effect"
import type { Code } from "../../contract/api/ErrorCode.ts"
import { isResettable } from "../model/DeviceTransitions.ts"
import type {
  DeviceRecord,
  FeatureRecord,
  LeaseRecord,
  LinkRecord,
  Revisions,
  TargetPolicy
} from "../model/LicenseRecords.ts"
import type { CountedUsage, ReversalMark } from "../model/Usage.ts"
import type { Needs, Rule } from "../rules/LicenseCommand.ts"
import type { CommittedState } from "../state/CommittedState.ts"
import type { Lookups } from "./LicenseLookups.ts"
import { linkLookups } from "./LinkPrefetch.ts"

export interface Prefetched {
  readonly counted: ReadonlyMap<string, CountedUsage>
  readonly features: ReadonlyMap<string, FeatureRecord>
  readonly policies: ReadonlyMap<string, TargetPolicy>
  /** Undefined if no command named a version. */
  readonly versions: ReadonlyMap<string, number> | undefined
  /** Leases that are no longer live, by token hash. */
  readonly endedLeases: ReadonlyMap<string, LeaseRecord>
  /** By `markKey`: commands of a batch may name one consumption with different features. */
  readonly marks: ReadonlyMap<string, ReversalMark>
  readonly links: ReadonlyArray<LinkRecord>
  /** The number of uncached devices that a reset changes; 0 if no command needs it. */
  readonly otherResettable: number
  /**
   * Whether the state's revisions were current at all look-ups; undefined if unknown. Revisions are unique, so look-ups
   * with the same revisions have read the same license.
   */
  readonly isCurrent?: boolean
}

type Found = { -readonly [K in keyof Prefetched]: Prefetched[K] } & ReturnType<typeof emptyMaps>

const emptyMaps = () => ({
  counted: new Map<string, CountedUsage>(),
  features: new Map<string, FeatureRecord>(),
  policies: new Map<string, TargetPolicy>(),
  endedLeases: new Map<string, LeaseRecord>(),
  marks: new Map<string, ReversalMark>()
})

const emptyFound = (): Found => ({ ...emptyMaps(), versions: undefined, links: [], otherResettable: 0 })

export const markKey = (featureId: string, eventId: string): string => `${featureId} ${eventId}`

export const nothingPrefetched: Prefetched = emptyFound()

interface RequestedCommand {
  readonly rule: Rule<unknown, unknown, Code>
  readonly command: unknown
}

/** Whether the decision depends on an event id that may be used already. */
export const hasEventId = ({ rule, command }: RequestedCommand): boolean => rule.needs?.(command).eventId !== undefined

/**
 * Event ids are looked up only with `checkEventIds`. An event id is nearly always new; otherwise the ledger refuses its
 * second row. A batch without the look-up must be decided again after such a refusal, and before it refuses a command
 * itself.
 */
export const prefetch = (
  lookups: Lookups,
  state: CommittedState,
  commands: ReadonlyArray<RequestedCommand>,
  now: number,
  checkEventIds: boolean
): Effect.Effect<Prefetched> =>
  missingPrefetch(lookups, state, commands, now, checkEventIds) ?? Effect.succeed(nothingPrefetched)

/** Like `prefetch`; undefined if nothing has to be looked up, as in nearly all cases. */
export const missingPrefetch = (
  lookups: Lookups,
  state: CommittedState,
  commands: ReadonlyArray<RequestedCommand>,
  now: number,
  checkEventIds: boolean
): Effect.Effect<Prefetched> | undefined => {
  const found = emptyFound()
  const reads: Reads = { batched: [], inSnapshot: [], revisions: [] }
  const allNeeds: Array<Needs> = []
  for (const { rule, command } of commands) {
    const needs = rule.needs?.(command)
    if (needs === undefined) continue
    allNeeds.push(needs)
    addFetches(lookups, state, found, needs, checkEventIds, reads)
  }
  const { batched, inSnapshot } = reads
  if (allNeeds.some(({ activeDevices }) => activeDevices) && !state.devicesComplete) {
    inSnapshot.push(Effect.map(lookups.activeDevices(state.license.id), (devices) => cacheDevices(state, devices)))
  }
  if (allNeeds.some(({ activeContainers }) => activeContainers))
    inSnapshot.push(...countContainers(lookups, state), ...cacheHeldSlots(lookups, state, now))
  if (!state.heartbeatsReadyAt(now + lookAheadMillis)) inSnapshot.push(cacheSilentDevices(lookups, state, now))
  inSnapshot.push(...cacheLeases(lookups, state, allNeeds, now))
  let resettable = 0
  if (!state.devicesComplete && allNeeds.some((needs) => needs.resettable === true))
    inSnapshot.push(
      Effect.map(lookups.resettableCount(state.license.id), (all) => {
        resettable = all
      })
    )
  const needsVersions = allNeeds.some(({ appVersion }) => appVersion !== undefined)
  if (batched.length === 0 && inSnapshot.length === 0 && !needsVersions) return undefined
  return Effect.gen(function* () {
    if (needsVersions) {
      const { revision, versions } = yield* lookups.catalog(state.license.product_id, state.catalogRevision)
      found.versions = versions
      if (revision !== state.catalogRevision) found.isCurrent = false
    }
    yield* Effect.all([...batched, ...readSnapshot(lookups, state, reads)], { concurrency: "unbounded", discard: true })
    const readsAll = batched.length + Math.min(inSnapshot.length, 1)
    if (!reads.revisions.every((revisions) => revisions !== undefined && state.hasRevisions(revisions)))
      found.isCurrent = false
    else if (readsAll > 0 && reads.revisions.length === readsAll) found.isCurrent ??= true
    // After all other look-ups, because these may have cached some of the counted devices.
    if (resettable > 0)
      found.otherResettable = resettable - Array.from(state.devices.values()).filter(isResettable).length
    return found
  })
}

/** The look-ups of a batch. Their results are cached with the state, so they must have the state's revisions. */
interface Reads {
  /** Look-ups that add their revisions to `revisions` if they find something. */
  readonly batched: Array<Effect.Effect<void>>
  /** Look-ups without revisions. */
  readonly inSnapshot: Array<Effect.Effect<void>>
  /** Undefined: there is no such license. */
  readonly revisions: Array<Revisions | undefined>
}

const readSnapshot = (lookups: Lookups, state: CommittedState, { inSnapshot, revisions }: Reads) =>
  inSnapshot.length === 0
    ? []
    : [Effect.map(lookups.inOneSnapshot(state.license.id, inSnapshot), (read) => void revisions.push(read))]

/** Caches devices without a seat, or with a lease that is looked up separately. */
const cacheDevices = (state: CommittedState, devices: ReadonlyArray<DeviceRecord>): void => {
  for (const device of devices) state.cacheDevice({ device, lease: undefined })
}

/** Counts once; later decisions update the count. */
const countContainers = (lookups: Lookups, state: CommittedState) =>
  state.limits.max_container_instances === undefined || state.activeContainers !== undefined
    ? []
    : [
        Effect.map(lookups.activeContainerCount(state.license.id), (count) => {
          state.activeContainers = count
        })
      ]

/** Caches the devices whose slots are held. Nearly no license has any. */
const cacheHeldSlots = (lookups: Lookups, state: CommittedState, now: number) =>
  state.devicesComplete || state.heldSlotsCached || (state.license.slots_held_until ?? 0) <= now
    ? []
    : [
        Effect.map(lookups.heldSlots(state.license.id, now), (devices) => {
          for (const device of devices) state.cacheDevice(device)
          state.heldSlotsCached = true
        })
      ]

/** A batch is decided after its look-ups, so they look at least this far ahead. */
const lookAheadMillis = 10_000

/** Caches the activations that lapse soon without a validation. These are few, even of very many devices. */
const cacheSilentDevices = (lookups: Lookups, state: CommittedState, now: number) => {
  const before = now + 2 * lookAheadMillis
  // After the end of access nothing becomes due. An edit that moves the end changes `not_due_before`.
  const lapsedBefore = state.accessEndsBy(now) ? Math.min(before, state.accessEndsAt) : before
  return Effect.map(lookups.silentDevices(state.license.id, lapsedBefore, before), ({ devices, nextDueAt }) => {
    for (const device of devices) state.cacheDevice(device)
    state.silentFrom = nextDueAt
  })
}

/**
 * Caches the leases that may end in this batch, with their devices; all live leases if a command or the clock may end
 * them all; and their number if a command takes a seat. Later decisions update the number.
 */
const cacheLeases = (lookups: Lookups, state: CommittedState, allNeeds: ReadonlyArray<Needs>, now: number) => {
  const { leases, license } = state
  if (leases.isComplete) return []
  const until = now + lookAheadMillis
  if (state.accessEndsBy(until) || allNeeds.some(({ allLeases }) => allLeases === true))
    return [
      Effect.map(lookups.endingLeases(license.id, undefined), ({ devices }) => {
        for (const device of devices) state.cacheDevice(device)
        leases.count = devices.length
        // A cached lease has ended meanwhile, so the state is outdated.
        if (!leases.isComplete) state.lapsingFrom = Number.NEGATIVE_INFINITY
      })
    ]
  const fetches: Array<Effect.Effect<void>> = []
  if (!state.leasesReadyAt(until))
    fetches.push(
      Effect.map(lookups.endingLeases(license.id, until + lookAheadMillis), ({ devices, nextDueAt }) => {
        for (const device of devices) state.cacheDevice(device)
        state.lapsingFrom = nextDueAt
      })
    )
  if (leases.count === undefined && allNeeds.some(({ seats }) => seats === true))
    fetches.push(
      Effect.map(lookups.liveLeaseCount(license.id), (count) => {
        leases.count = count
      })
    )
  return fetches
}

const addFetches = (
  lookups: Lookups,
  state: CommittedState,
  found: Found,
  needs: Needs,
  checkEventIds: boolean,
  reads: Reads
): void => {
  const { binding, deviceId, eventId, leaseToken, featureId, policyId, reverses } = needs
  const licenseId = state.license.id
  const fetch = <A>(
    into: Array<Effect.Effect<void>>,
    lookup: Effect.Effect<A | undefined>,
    onFound: (value: A) => unknown
  ) => into.push(Effect.map(lookup, (value) => (value === undefined ? undefined : onFound(value))))
  if (binding !== undefined && !state.canResolve(binding))
    fetch(reads.batched, lookups.device({ licenseId, binding }), ({ revisions, devices }) => {
      reads.revisions.push(revisions)
      for (const device of devices) state.cacheDevice(device)
    })
  if (deviceId !== undefined && !state.canResolveId(deviceId))
    fetch(reads.inSnapshot, lookups.deviceById(licenseId, deviceId), (device) => state.cacheDevice(device))
  if (checkEventIds) addCounted(lookups, state, found, [eventId, reverses?.eventId], reads)
  if (reverses !== undefined)
    fetch(
      reads.inSnapshot,
      lookups.reversalMark({ licenseId, productId: state.license.product_id, ...reverses }),
      ({ featureId, mark }) => found.marks.set(markKey(featureId, reverses.eventId), mark)
    )
  if (featureId !== undefined) {
    fetch(reads.inSnapshot, lookups.feature(featureId), (feature) => {
      found.features.set(featureId, feature)
    })
  }
  if (policyId !== undefined) {
    fetch(reads.inSnapshot, lookups.targetPolicy(policyId), (target) => {
      found.policies.set(policyId, target)
    })
  }
  if (leaseToken !== undefined && state.leases.byToken(leaseToken) === undefined) {
    fetch(reads.batched, lookups.leaseByToken({ licenseId, tokenHash: leaseToken }), ({ revisions, devices }) => {
      reads.revisions.push(revisions)
      for (const one of devices) {
        state.cacheDevice(one)
        if (one.lease !== undefined && one.lease.status !== "live") found.endedLeases.set(leaseToken, one.lease)
      }
    })
  }
  reads.inSnapshot.push(
    ...linkLookups(lookups, state.license, needs, (link) => {
      found.links = [...found.links, link]
    })
  )
}

const addCounted = (
  lookups: Lookups,
  { license }: CommittedState,
  found: Found,
  eventIds: ReadonlyArray<string | undefined>,
  reads: Reads
): void => {
  for (const eventId of eventIds) {
    if (eventId === undefined) continue
    reads.batched.push(
      Effect.map(lookups.countedUsage({ licenseId: license.id, eventId }), (usage) => {
        if (usage === undefined) return
        reads.revisions.push(usage.revisions)
        found.counted.set(eventId, usage.counted)
      })
    )
  }
}
