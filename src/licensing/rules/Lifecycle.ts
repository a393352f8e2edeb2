/**
 * The states of a license, and their changes by the clock and by commands. The clock is applied whenever a license is
 * read or used, so a late sweep never causes a wrong result.
 */

import { dayMillis } from "../../contract/api/Timestamp.ts"
import type { LicenseType } from "../../vendor/policies/Policy.ts"
import { clockLagMillisMax } from "../model/ClockLag.ts"
import type { DeviceStatus } from "../model/Device.ts"
import { dueAt, wholeIntervals } from "../model/Heartbeat.ts"
import type { LicenseStatus } from "../model/License.ts"
import {
  type Changes,
  type DeviceRecord,
  type LeaseRecord,
  type LicenseRecord,
  type LicenseSnapshot,
  type LicenseView,
  type PolicyRecord,
  snapshot
} from "../model/LicenseRecords.ts"
import { deviceExpiredEvent, leaseExpiredEvent, statusEvents } from "./ClockEvents.ts"
import { settleFeatures } from "./FeatureSettling.ts"
import { accept, licenseEvent, type Needs, type Outcome, type Rule, reject } from "./LicenseCommand.ts"
import { endUnborrowed } from "./Seats.ts"
import { renewable } from "./Terms.ts"

type LicenseTerm = Pick<LicenseRecord, "status" | "expires_at">
type PolicyGrace = Pick<PolicyRecord, "grace_period_days">

/** The end of access: expiry and the policy's grace after it; undefined = never. */
export const accessEndsAt = (license: LicenseTerm, policy: PolicyGrace): number | undefined =>
  license.expires_at === undefined ? undefined : license.expires_at + policy.grace_period_days * dayMillis

/** The state by the clock of a license that is neither suspended nor revoked. */
export const statusByClock = (license: LicenseTerm, policy: PolicyGrace, now: number): LicenseStatus => {
  const end = accessEndsAt(license, policy)
  if (license.expires_at === undefined || end === undefined || now < license.expires_at) return "active"
  return now < end ? "grace_period" : "expired"
}

/** In the order in which the clock moves a license through them. */
const clockStatuses: ReadonlyArray<LicenseStatus> = ["active", "grace_period", "expired"]

/** The state of a license at an instant. A state written by a clock ahead goes back only if the expiry has moved. */
export const statusAt = (license: LicenseTerm, policy: PolicyGrace, now: number): LicenseStatus => {
  const { status } = license
  if (status === "suspended" || status === "revoked") return status
  const byClock = statusByClock(license, policy, now)
  if (status === "active" || status === byClock || byClock === "expired") return byClock
  const ahead = statusByClock(license, policy, now + clockLagMillisMax)
  return clockStatuses.indexOf(ahead) < clockStatuses.indexOf(status) ? ahead : status
}

/**
 * The states that the clock has moved a license through since it was last written, in order. Moves back are not
 * included: an edit of the expiry or of the grace causes them, and has raised the version. So the version never
 * decreases.
 */
export const statusesPassed = (license: LicenseTerm, policy: PolicyGrace, now: number): ReadonlyArray<LicenseStatus> =>
  clockStatuses
    .slice(clockStatuses.indexOf(license.status) + 1, clockStatuses.indexOf(statusAt(license, policy, now)) + 1)
    .filter((stage) => stage !== "grace_period" || policy.grace_period_days > 0)

/** The published entitlement version: the counters of license and policy, unwritten moves, and feature expiries. */
export const entitlementVersionAt = (
  license: LicenseRecord,
  policy: PolicyRecord,
  expiredFeatures: number,
  now: number
): number =>
  license.entitlement_counter +
  policy.entitlement_counter +
  statusesPassed(license, policy, now).length +
  (recordsExpiries(license) ? expiredFeatures : 0)

/** Whether the expiry of a feature creates an event and raises the version. A revoked license does not change. */
export const recordsExpiries = ({ status }: Pick<LicenseRecord, "status">): boolean => status !== "revoked"

/**
 * The changes by the clock that are not written yet. The actor applies them before its commands, so that every move is
 * recorded once and in order. For unused licenses the sweeps write the same changes as set-based statements: change
 * both together.
 */
export const settle = (view: LicenseView, now: number): Changes | undefined => {
  const { license, policy } = view
  const status = statusAt(license, policy, now)
  const statusChanged = status !== license.status
  const lapsed = view.lapsed(now)
  const silent = view.overdue(now)
  const cut = status === "expired" && view.liveLeaseCount > 0 ? cutOff(view, now) : []
  const features = settleFeatures(view, recordsExpiries(license), now)
  if (!statusChanged && cut.length === 0 && lapsed.length === 0 && silent.length === 0 && features === undefined)
    return undefined
  const passedStatuses = statusesPassed(license, policy, now)
  const seats = settleLeases(view, lapsed, cut, now)
  const overdue = settleDevices(view, silent, seats.leases, now)
  return {
    license: {
      ...(statusChanged ? { status } : undefined),
      entitlement_counter: license.entitlement_counter + passedStatuses.length + (features?.expiries ?? 0),
      active_device_count: license.active_device_count - overdue.devices.length
    },
    devices: [...overdue.devices, ...seats.devices],
    leases: seats.leases,
    ...(features === undefined ? undefined : { assignments: features.assignments, ledger: features.ledger }),
    events: [
      ...statusEvents(license.id, passedStatuses),
      ...(features?.events ?? []),
      ...overdue.events,
      ...seats.events
    ]
  }
}

/** Whether a live lease ends with its license's access, before its own end. */
export const isCutOff = (
  lease: Pick<LeaseRecord, "expires_at" | "borrowed_until">,
  license: LicenseTerm,
  policy: PolicyGrace,
  now: number
): boolean =>
  now >= (lease.borrowed_until ?? now) &&
  statusAt(license, policy, now) === "expired" &&
  lease.expires_at >= (accessEndsAt(license, policy) ?? 0)

/** The live leases that end with the license's access. */
const cutOff = ({ license, liveLeases, policy }: LicenseView, now: number): ReadonlyArray<LeaseRecord> =>
  Array.from(liveLeases).filter((lease) => isCutOff(lease, license, policy, now))

/** Ends leases: with the license's access, or before that on their own. */
const settleLeases = (
  view: LicenseView,
  due: ReadonlyArray<LeaseRecord>,
  ended: ReadonlyArray<LeaseRecord>,
  now: number
) => {
  const endedIds = new Set(ended.map(({ id }) => id))
  const lapsed = due
    .filter(({ id }) => !endedIds.has(id))
    .toSorted((a, b) => a.expires_at - b.expires_at || (a.id < b.id ? -1 : 1))
  return {
    leases: [
      ...ended.map((lease) => ({ ...lease, status: "ended" as const, ended_at: now })),
      ...lapsed.map((lease) => ({ ...lease, status: "expired" as const, ended_at: lease.expires_at }))
    ],
    devices: [...releasedHolders(view, ended, "deactivated", now), ...releasedHolders(view, lapsed, "expired", now)],
    events: lapsed.map((lease) => leaseExpiredEvent(view.license.id, lease))
  }
}

/** The status after a floating seat: active with an activation, expired with a lapsed one, otherwise as given. */
export const statusUnseated = <S extends DeviceStatus>(device: DeviceRecord, otherwise: S) => {
  if (device.holds_slot) return "active"
  return device.activated_at === undefined ? otherwise : "expired"
}

/** The devices of ending leases, except activated ones, which do not change. */
const releasedHolders = (
  view: LicenseView,
  leases: Iterable<LeaseRecord>,
  status: "deactivated" | "expired",
  now: number
): ReadonlyArray<DeviceRecord> =>
  Array.from(leases).flatMap(({ device_id }) => {
    const device = view.deviceById(device_id)
    if (device?.status !== "active" || device.holds_slot) return []
    return [{ ...device, status: statusUnseated(device, status), updated_at: now }]
  })

/** Activations that lapsed without a heartbeat. A device with a seat stays active. */
const settleDevices = (
  view: LicenseView,
  silent: ReadonlyArray<DeviceRecord>,
  ending: ReadonlyArray<LeaseRecord>,
  now: number
) => {
  const endingIds = new Set(ending.map(({ id }) => id))
  const overdue = silent.map((device) => {
    const lease = view.liveLeaseOf(device.id)
    const status = lease === undefined || endingIds.has(lease.id) ? ("expired" as const) : ("active" as const)
    return { ...device, status, holds_slot: false, updated_at: now }
  })
  return { devices: overdue, events: overdue.map(({ id }) => deviceExpiredEvent(view.license.id, id)) }
}

/**
 * Whether an activation has lapsed without a validation. Nothing becomes due while the runtime refuses the license: a
 * suspension records earlier lapses, and instants after the end of access do not count.
 */
export const isOverdue = (device: DeviceRecord, license: LicenseRecord, policy: PolicyRecord, now: number): boolean => {
  const due = dueAt(device, license, policy)
  return (
    due < now &&
    license.status !== "suspended" &&
    license.status !== "revoked" &&
    due + 1 < (accessEndsAt(license, policy) ?? Number.POSITIVE_INFINITY)
  )
}

export const endAll = (leases: LicenseView["liveLeases"], now: number) =>
  Array.from(leases, (lease) => ({ ...lease, status: "ended" as const, ended_at: now }))

/** The next state for each command and current state. */
export const transitions = {
  suspend: {
    active: "suspended",
    grace_period: "suspended",
    expired: "suspended",
    suspended: "unchanged",
    revoked: "conflict"
  },
  reinstate: {
    suspended: "by clock",
    active: "unchanged",
    grace_period: "unchanged",
    expired: "conflict",
    revoked: "conflict"
  },
  revoke: {
    active: "revoked",
    grace_period: "revoked",
    expired: "revoked",
    suspended: "revoked",
    revoked: "unchanged"
  }
} as const satisfies Record<
  string,
  Record<LicenseStatus, "suspended" | "revoked" | "by clock" | "unchanged" | "conflict">
>

/** Only a reinstatement is refused because of expiry. */
const conflictMessage = (from: LicenseStatus, type: LicenseType): string => {
  if (from !== "expired") return "The license is revoked and cannot be changed: issue a new one."
  return `The license is not suspended but expired: ${renewable.has(type) ? "renew it" : "update its expires_at"} instead.`
}

const transition = (
  name: keyof typeof transitions,
  eventType: "license.suspended" | "license.reinstated" | "license.revoked",
  needs: Needs,
  sideEffects: (view: LicenseView, now: number) => Changes
): Rule<unknown, LicenseSnapshot, "LICENSE_STATE_CONFLICT"> => ({
  name,
  needs: () => needs,
  decide: (view, _command, now): Outcome<LicenseSnapshot, "LICENSE_STATE_CONFLICT"> => {
    const from = statusAt(view.license, view.policy, now)
    const to = transitions[name][from]
    if (to === "conflict")
      return reject("LICENSE_STATE_CONFLICT", conflictMessage(from, view.policy.license_type), { detail: from })
    if (to === "unchanged") return accept({}, snapshot)
    const status = to === "by clock" ? statusByClock(view.license, view.policy, now) : to
    const { license, ...rest } = sideEffects(view, now)
    return accept(
      {
        ...rest,
        license: { ...license, status, updated_at: now },
        entitlement: true,
        events: [
          licenseEvent(eventType, view.license.id, { status: { old: from, new: status } }),
          ...statusEvents(view.license.id, [status])
        ]
      },
      snapshot
    )
  }
})

/** Suspends: leases end unless they are borrowed, devices stay. */
export const suspend = transition("suspend", "license.suspended", { allLeases: true }, (view, now) => {
  const leases = endUnborrowed(view.liveLeases, "ended", now)
  const ended = leases.filter(({ status }) => status === "ended")
  return { leases, devices: releasedHolders(view, ended, "deactivated", now) }
})

/** Reinstates to the state that the clock gives, and records a grace or an expiry. Every device gets a whole interval. */
export const reinstate = transition("reinstate", "license.reinstated", {}, ({ license, policy }, now) => ({
  license: wholeIntervals(license, policy, license.starts_at, now)
}))

/** Revokes permanently: devices are deactivated, leases end. */
export const revoke = transition(
  "revoke",
  "license.revoked",
  { activeDevices: true, allLeases: true },
  ({ devices, liveLeases }, now) => ({
    license: { active_device_count: 0 },
    devices: Array.from(devices)
      .filter((device) => device.status === "active")
      .map((device) => ({ ...device, status: "deactivated" as const, holds_slot: false, updated_at: now })),
    leases: endAll(liveLeases, now)
  })
)
