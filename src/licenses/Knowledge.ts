/** Fetches what the commands of a round need beyond the license's state. Most rounds need nothing that is not in memory. */
import { Effect } from "effect"
import type { Code } from "../api/Failure.ts"
import { isResettable } from "../devices/Transitions.ts"
import type { LicenseState } from "./CommittedState.ts"
import type { Needs, Rule } from "./LicenseCommand.ts"
import type { LicenseLookups } from "./LicenseLookups.ts"
import type { CountedUsage, DeviceRecord, FeatureRecord, LeaseRecord, LinkRecord } from "./LicenseState.ts"

/** What was looked up for the commands of a round, beyond what the state holds. */
export interface Knowledge {
  readonly counted: Map<string, CountedUsage>
  readonly features: Map<string, FeatureRecord>
  /** Undefined where no command named a version. */
  readonly versions: ReadonlyMap<string, number> | undefined
  /** Leases that are not live any more, by token hash. */
  readonly endedLeases: Map<string, LeaseRecord>
  readonly links: Array<LinkRecord>
  /** Devices that are not held and that a reset would move; 0 where no command asked. */
  readonly otherResettable: number
}

interface Asked {
  readonly rule: Rule<unknown, unknown, Code>
  readonly command: unknown
}

export const gatherKnowledge = Effect.fnUntraced(function* (
  lookups: LicenseLookups["Service"],
  state: LicenseState,
  asked: ReadonlyArray<Asked>,
  now: number
) {
  const knowledge: Knowledge = {
    counted: new Map(),
    features: new Map(),
    versions: undefined,
    endedLeases: new Map(),
    links: [],
    otherResettable: 0
  }
  const fetches: Array<Effect.Effect<void>> = []
  const needed = asked.map(({ rule, command }): Needs => rule.needs?.(command) ?? {})
  for (const needs of needed) fetches.push(...fetchesOf(lookups, state, knowledge, needs))
  if (needed.some(({ activeDevices }) => activeDevices) && !state.devicesComplete) {
    fetches.push(Effect.map(lookups.activeDevices(state.license.id), (devices) => learnDevices(state, devices)))
  }
  if (needed.some(({ activeContainers }) => activeContainers)) fetches.push(...countContainers(lookups, state))
  if (now + lookAheadMillis >= state.silentFrom) fetches.push(findSilent(lookups, state, now + 2 * lookAheadMillis))
  if (fetches.length > 0) yield* Effect.all(fetches, { concurrency: "unbounded", discard: true })
  const asksFor = (need: "appVersion" | "resettable") => needed.some((needs) => (needs[need] ?? false) !== false)
  return {
    ...knowledge,
    ...(asksFor("appVersion") && {
      versions: yield* lookups.versions(state.license.product_id, state.catalogRevision)
    }),
    ...(asksFor("resettable") && { otherResettable: yield* otherResettable(lookups, state) })
  }
})

/** Counted after all other look-ups, for a device that one of them has brought is not among the others any more. */
const otherResettable = (lookups: LicenseLookups["Service"], state: LicenseState) => {
  if (state.devicesComplete) return Effect.succeed(0)
  const held = Array.from(state.devices.values()).filter(isResettable).length
  return Effect.map(lookups.resettable(state.license.id), (all) => all - held)
}

const learnDevices = (state: LicenseState, devices: ReadonlyArray<DeviceRecord>): void => {
  for (const device of devices) state.know(device)
}

/** Counted once; from then on the state keeps count of what is decided. */
const countContainers = (lookups: LicenseLookups["Service"], state: LicenseState) =>
  state.policy.max_container_instances === undefined || state.activeContainers !== undefined
    ? []
    : [
        Effect.map(lookups.activeContainers(state.license.id), (count) => {
          state.activeContainers = count
        })
      ]

/** A round is decided some time after its look-ups: so far ahead they look at least. */
const lookAheadMillis = 10_000

/**
 * Brings in the activations that lapse before an instant unless a validation comes. Of very many devices these are few, and
 * until the next of the others is due nobody has to look again.
 */
const findSilent = (lookups: LicenseLookups["Service"], state: LicenseState, before: number) =>
  Effect.map(lookups.silent(state.license.id, state.policy, before), ({ devices, next }) => {
    learnDevices(
      state,
      devices.filter(({ id }) => !state.deviceKeys.has(id))
    )
    state.silentFrom = next
  })

const fetchesOf = (
  lookups: LicenseLookups["Service"],
  state: LicenseState,
  knowledge: Knowledge,
  { binding, deviceId, eventId, leaseToken, featureId, links = {} }: Needs
): ReadonlyArray<Effect.Effect<void>> => {
  const licenseId = state.license.id
  const fetches: Array<Effect.Effect<void>> = []
  const fetch = <A>(lookup: Effect.Effect<A | undefined>, keep: (found: A) => void) =>
    fetches.push(Effect.map(lookup, (found) => (found === undefined ? undefined : keep(found))))
  if (binding !== undefined && !state.knows(binding))
    fetch(lookups.device({ licenseId, binding }), (device) => state.know(device))
  if (deviceId !== undefined && !state.knowsId(deviceId))
    fetch(lookups.deviceById(licenseId, deviceId), (device) => state.know(device))
  if (eventId !== undefined)
    fetch(lookups.counted({ licenseId, eventId }), (counted) => knowledge.counted.set(eventId, counted))
  if (featureId !== undefined)
    fetch(lookups.feature(featureId), (feature) => knowledge.features.set(featureId, feature))
  if (leaseToken !== undefined && state.leases.byToken(leaseToken) === undefined) {
    fetch(lookups.leaseByToken(licenseId, leaseToken), ({ lease, device }) => {
      knowledge.endedLeases.set(leaseToken, lease)
      if (!state.knowsId(device.id)) state.know(device)
    })
  }
  for (const kind of linkKinds) {
    const id = links[kind]
    if (id !== undefined) fetch(lookups.link(kind, id), (link) => knowledge.links.push(link))
  }
  return fetches
}

const linkKinds = ["customer", "order", "subscription"] as const
