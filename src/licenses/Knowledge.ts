/** Fetches what the commands of a round need beyond the license's state. Most rounds need nothing that is not in memory. */
import { Effect } from "effect"
import type { Code } from "../api/Failure.ts"
import type { Knowledge, LicenseState } from "./Draft.ts"
import type { Needs, Rule } from "./LicenseCommand.ts"
import type { LicenseLookups } from "./LicenseLookups.ts"

interface Asked {
  readonly rule: Rule<unknown, unknown, Code>
  readonly command: unknown
}

export const gatherKnowledge = Effect.fnUntraced(function* (
  lookups: LicenseLookups["Service"],
  state: LicenseState,
  asked: ReadonlyArray<Asked>
) {
  const knowledge: Knowledge = { counted: new Map(), features: new Map(), versions: undefined, endedLeases: new Map() }
  const fetches: Array<Effect.Effect<void>> = []
  const needed = asked.map(({ rule, command }): Needs => rule.needs?.(command) ?? {})
  for (const needs of needed) fetches.push(...fetchesOf(lookups, state, knowledge, needs))
  if (needed.some(({ activeDevices }) => activeDevices) && !state.activeComplete) {
    fetches.push(Effect.map(lookups.activeDevices(state.license.id), (devices) => learnActive(state, devices)))
  }
  if (fetches.length > 0) yield* Effect.all(fetches, { concurrency: "unbounded", discard: true })
  if (!needed.some(({ appVersion }) => appVersion !== undefined)) return knowledge
  return { ...knowledge, versions: yield* lookups.versions(state.license.product_id, state.catalogRevision) }
})

const learnActive = (state: LicenseState, devices: ReadonlyArray<Parameters<LicenseState["know"]>[0]>): void => {
  for (const device of devices) state.know(device)
}

const fetchesOf = (
  lookups: LicenseLookups["Service"],
  state: LicenseState,
  knowledge: Knowledge,
  { binding, deviceId, eventId, leaseToken, featureId }: Needs
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
  if (leaseToken !== undefined && !state.leases.has(leaseToken)) {
    fetch(lookups.leaseByToken(licenseId, leaseToken), (lease) => knowledge.endedLeases.set(leaseToken, lease))
  }
  return fetches
}
