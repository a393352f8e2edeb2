/** Compares a license as replayed with its rows. Changes that leave no event are taken from the rows if they are possible. */
import { isDeepStrictEqual } from "node:util"
import { stoppedPeriods } from "../model/Clock.ts"
import { heartbeatEnd } from "../model/Leases.ts"
import {
  endLease,
  isCut,
  type License,
  type Policy,
  promise,
  replaced,
  type Situation,
  statusAt
} from "../model/Model.ts"
import type { Call } from "../requests/Operations.ts"
import type { LicenseStep } from "./LicenseStep.ts"
import { show, violation } from "./Violation.ts"

const stages = ["active", "grace_period", "expired"]

/** The state by the clock if it is an earlier stage, else the license's state. */
export const backByClock = ({ status }: License, byClock: string): string =>
  stages.indexOf(byClock) < stages.indexOf(status) ? byClock : status

/** A license with the last-seen times of its devices and leases as stored. */
export const asHeard = (license: License, stored: License): License => ({
  ...license,
  devices: new Map(
    Array.from(license.devices, ([key, device]) => {
      const { due = device.due, validated = null } = stored.devices.get(key) ?? {}
      return [key, validated === device.validated && due === device.due ? device : { ...device, due, validated }]
    })
  ),
  leases: new Map(
    Array.from(license.leases, ([token, lease]) => {
      const ends = stored.leases.get(token)?.ends ?? lease.ends
      return [token, ends === lease.ends ? lease : { ...lease, ends }]
    })
  )
})

/** The operations whose responses promise a device its slot without an event. */
const promising: ReadonlyArray<string> = ["activate", "validate"]

/** A license whose devices got such a promise at an instant, under one of the policies of the step. */
export const asPromised = (license: License, calls: LicenseStep["calls"], policy: Policy, at: number): License => {
  const asked = new Set(calls.filter(({ operation }) => promising.includes(operation)).map(bindingOf))
  const devices = Array.from(license.devices, ([key, device]) =>
    asked.has(key)
      ? ([key, { ...device, due: promise(policy, device.offline, at) }] as const)
      : ([key, device] as const)
  )
  return asked.size === 0 ? license : { ...license, devices: new Map(devices) }
}

/**
 * Changes that sweeps write without an event: a state that an edit set back, leases that ended with their license, features
 * of a revoked license that expired.
 */
export const adoptQuiet = (license: License, stored: License, situations: Iterable<Situation>): License => {
  let adopted = license
  for (const { license: seen, policy, now } of situations) {
    const status = statusAt(seen, policy, now)
    if (adopted.status !== stored.status && backByClock(adopted, status) === stored.status) {
      adopted = { ...adopted, status: stored.status }
    }
    for (const [id, assignment] of stoppedPeriods(adopted, now)) {
      if (stored.assignments.get(id)?.resets === null && assignment.resets === null)
        adopted = { ...adopted, assignments: replaced(adopted.assignments, id, assignment) }
    }
    for (const [id, assignment] of adopted.assignments) {
      const isExpired = adopted.status === "revoked" && assignment.enabled && now >= (assignment.expires ?? anyTime)
      if (isExpired && stored.assignments.get(id)?.recorded)
        adopted = { ...adopted, assignments: replaced(adopted.assignments, id, { ...assignment, recorded: true }) }
    }
    adopted = adoptCuts(adopted, stored, { license: seen, policy, now })
  }
  return adopted
}

/** Ends the leases that were stored as ended with their license, if the license had ended by the given clock. */
export const adoptCuts = (
  license: License,
  stored: License,
  { license: seen, policy, now }: Pick<Situation, "license" | "policy" | "now">
): License =>
  Array.from(seen.leases).reduce((left, [token, lease]) => {
    const isGone = left.leases.get(token)?.status === "live" && stored.leases.get(token)?.status === "ended"
    return isGone && isCut(lease, seen, policy, now) ? endLease(left, token, "ended", "deactivated") : left
  }, license)

const anyTime = Number.POSITIVE_INFINITY

export const bindingOf = ({ command }: Call): string => {
  const { kind, key } = (command as { readonly binding: { readonly kind: string; readonly key: string } }).binding
  return `${kind}:${key}`
}

/** Last-seen times of devices and leases leave no event: a request of the step must explain them. */
export const adoptTimes = (
  license: License,
  stored: License,
  { before, intervals, nows, calls, outcomes, remembered }: LicenseStep,
  situations: Iterable<Situation>
): License => {
  const kindOf = ({ request }: Call) => outcomes.get(request)!.kind
  const all = Array.from(situations)
  for (const [key, device] of license.devices) {
    const heardAt = stored.devices.get(key)?.validated ?? null
    const asked = calls.filter((call) => call.operation === "validate" && bindingOf(call) === key).map(kindOf)
    // A refused validation may have been recorded, because the time is written apart from the decision.
    if (heardAt !== device.validated && (asked.length === 0 || !nows.includes(heardAt ?? 0))) {
      violation(`${device.id} was last seen at ${heardAt} without a validation`)
    }
    // A node writes a validation only if it knows of none within the last second.
    const known = Math.max(heardAt ?? 0, remembered.get(key)?.validated ?? 0)
    if (asked.includes("accepted") && known <= Math.min(...nows) - 1000) {
      violation(`a validation of ${device.id} was not kept`)
    }
    const { due = device.due, offline = null } = stored.devices.get(key) ?? {}
    // Without required heartbeats the promise of a decision on an outdated policy may be stored: it is not fenced.
    const isPromised = () =>
      all.some(({ policy, now }) =>
        [policy.validation_interval_minutes, ...intervals].some(
          (minutes) => promise({ ...policy, validation_interval_minutes: minutes }, offline, now) === due
        )
      )
    const isAnswered = () => calls.some((call) => promising.includes(call.operation) && bindingOf(call) === key)
    // A node that remembers a lost promise does not write the same one again.
    const isForgotten = () => remembered.has(key) && due === before.devices.get(key)?.due
    if (due !== device.due && !(isAnswered() && isPromised()) && !isForgotten()) {
      violation(`${device.id} is due at ${due}, the model says ${device.due}`)
    }
  }
  let { devices, leases } = license
  for (const [key, device] of devices) {
    const offline = stored.devices.get(key)?.offline ?? null
    if (offline !== device.offline && offline === remembered.get(key)?.offline)
      devices = replaced(devices, key, { ...device, offline })
  }
  for (const [token, lease] of license.leases) {
    const ends = stored.leases.get(token)?.ends ?? lease.ends
    if (ends === lease.ends) continue
    const asked = calls.filter(({ command }) => (command as { tokenHash?: string } | undefined)?.tokenHash === token)
    if (
      asked.every((call) => kindOf(call) === "refused") ||
      all.every((situation) => heartbeatEnd(situation, lease) !== ends)
    ) {
      violation(`the end of ${lease.id} is ${ends}, the model says ${lease.ends}`)
    }
    leases = replaced(leases, token, { ...lease, ends })
  }
  return asHeard({ ...license, devices, leases }, stored)
}

/** The entries of a map that differ from another map's. */
const distinct = (one: unknown, other: unknown): unknown =>
  one instanceof Map && other instanceof Map
    ? new Map(Array.from(one).filter(([key, value]) => !isDeepStrictEqual(other.get(key), value)))
    : one

export const compare = (license: License, stored: License): void => {
  for (const [member, value] of Object.entries(license)) {
    const row = stored[member as keyof License]
    if (isDeepStrictEqual(row, value)) continue
    violation(
      `${member} of ${license.id} is ${show(distinct(row, value))}, the model says ${show(distinct(value, row))}`
    )
  }
}
