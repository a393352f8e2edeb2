/** How time changes the simulator's license, written from docs/API.md and docs/STATES.md, not from the rules. */
import {
  deviceById,
  endLease,
  expiredFeatures,
  isCut,
  isLapsed,
  isOverdue,
  type License,
  liveLeaseOf,
  liveLeases,
  type Policy,
  passed,
  replaced,
  statusAt,
  without
} from "./Model.ts"
import { ended } from "./Periods.ts"

/** The transitions by time that leave events, as `type resource`, or `type feature`. */
export const dueTransitions = (license: License, policy: Policy, now: number): ReadonlyArray<string> => [
  ...passed(license, policy, now).map((stage) =>
    stage === "expired" ? `license.expired ${license.id}` : `license.grace_period_started ${license.id}`
  ),
  ...expiredFeatures(license, now).map((id) => `license.feature_expired ${id}`),
  ...Array.from(license.devices.values())
    .filter((device) => isOverdue(device, license, policy, now))
    .map(({ id }) => `device.expired ${id}`),
  ...liveLeases(license)
    .filter(([, lease]) => isLapsed(lease, license, policy, now))
    .map(([, { id }]) => `lease.expired ${id}`),
  ...Array.from(license.assignments).flatMap(([id, one]) =>
    (ended(one, license, now)?.periods ?? 0) > 0 ? [`usage.period_closed ${id}`] : []
  )
]

/** Applies one transition by time. Undefined if it was not due. */
export const transitionByTime = (license: License, policy: Policy, now: number, move: string): License | undefined => {
  if (!dueTransitions(license, policy, now).includes(move)) return undefined
  const [type, id] = move.split(" ") as [string, string]
  if (type === "license.grace_period_started") {
    return { ...license, status: "grace_period", version: license.version + 1 }
  }
  if (type === "license.expired") {
    return cutLeases({ ...license, status: "expired", version: license.version + 1 }, policy, now)
  }
  if (type === "license.feature_expired") {
    const assignment = { ...license.assignments.get(id)!, recorded: true }
    return { ...license, version: license.version + 1, assignments: replaced(license.assignments, id, assignment) }
  }
  if (type === "usage.period_closed") {
    const { after } = ended(license.assignments.get(id)!, license, now)!
    return { ...license, assignments: replaced(license.assignments, id, after), open: without(license.open, id) }
  }
  if (type === "device.expired") return silence(license, policy, now, id)
  const [token] = liveLeases(license).find(([, lease]) => lease.id === id)!
  return endLease(license, token, "expired", "expired")
}

/** Ends the leases that ended with their license's access; only the license's end leaves an event. */
const cutLeases = (license: License, policy: Policy, now: number): License =>
  liveLeases(license)
    .filter(([, lease]) => isCut(lease, license, policy, now))
    .reduce((left, [token]) => endLease(left, token, "ended", "deactivated"), license)

const silence = (license: License, policy: Policy, now: number, id: string): License => {
  const [key, device] = deviceById(license, id)!
  const lease = liveLeaseOf(license, id)?.[1]
  const isSeated = lease !== undefined && !isCut(lease, license, policy, now) && !isLapsed(lease, license, policy, now)
  const silent = { ...device, slot: false, status: isSeated ? "active" : "expired" }
  return { ...license, active: license.active - 1, devices: replaced(license.devices, key, silent) }
}

/** Applies all changes by time, with or without events. A state can go back if an edit moved an end into the future. */
export const settled = (license: License, policy: Policy, now: number): License => {
  const moved = dueTransitions(license, policy, now).reduce(
    (left, move) => transitionByTime(left, policy, now, move) ?? left,
    license
  )
  const stopped = { ...moved, assignments: stoppedPeriods(moved, now) }
  return cutLeases({ ...stopped, status: statusAt(stopped, policy, now) }, policy, now)
}

/** The end of the last period leaves no event. */
export const stoppedPeriods = (license: License, now: number): License["assignments"] =>
  new Map(
    Array.from(license.assignments, ([id, one]) => {
      const end = ended(one, license, now)
      return [id, end?.periods === 0 ? end.after : one]
    })
  )
