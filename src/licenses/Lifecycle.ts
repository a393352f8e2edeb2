/**
 * The states of a license, what time does to them, and the commands that move them. The clock is applied whenever a license
 * is read or used: a sweep that comes late shows nothing wrong, it only writes down what already holds.
 */
import type { NewEvent } from "../events/EventLog.ts"
import type { LicenseStatus } from "./License.ts"
import { accept, type Needs, type Outcome, type Rule, reject } from "./LicenseCommand.ts"
import {
  type Changes,
  type DeviceRecord,
  type LicenseRecord,
  type LicenseSnapshot,
  type LicenseView,
  type PolicyRecord,
  snapshot
} from "./LicenseState.ts"

const dayMillis = 86_400_000

/** The instant at which access ends: expiry and the policy's grace after it; undefined = never. */
export const accessEndsAt = (license: LicenseRecord, policy: PolicyRecord): number | undefined =>
  license.expires_at === undefined ? undefined : license.expires_at + policy.grace_period_days * dayMillis

/** Where the clock alone puts a license that nobody suspended or revoked. */
export const statusByClock = (license: LicenseRecord, policy: PolicyRecord, now: number): LicenseStatus => {
  const end = accessEndsAt(license, policy)
  if (license.expires_at === undefined || end === undefined || now < license.expires_at) return "active"
  return now < end ? "grace_period" : "expired"
}

/** The state of a license at an instant. */
export const statusAt = (license: LicenseRecord, policy: PolicyRecord, now: number): LicenseStatus =>
  license.status === "suspended" || license.status === "revoked" ? license.status : statusByClock(license, policy, now)

/** The states that time leads through, in order. */
const stages: ReadonlyArray<LicenseStatus> = ["active", "grace_period", "expired"]

/**
 * States that time has moved a license into since it was last written, in order. Going back is none of them: an edit of the
 * expiry or of the policy's grace did that and raised the version itself, so the version never falls when time comes by again.
 */
const passed = (license: LicenseRecord, policy: PolicyRecord, now: number): ReadonlyArray<LicenseStatus> =>
  stages
    .slice(stages.indexOf(license.status) + 1, stages.indexOf(statusAt(license, policy, now)) + 1)
    .filter((stage) => stage !== "grace_period" || policy.grace_period_days > 0)

/** The published entitlement version: the license's share, the policy's, and the moves that time has made meanwhile. */
export const entitlementVersionAt = (license: LicenseRecord, policy: PolicyRecord, now: number): number =>
  license.entitlement_counter + policy.entitlement_counter + passed(license, policy, now).length

const passedEvents = { grace_period: "license.grace_period_started", expired: "license.expired" } as const

/**
 * What time has changed and nobody wrote yet. The actor applies it ahead of the commands, so rules run on a settled state,
 * every move is recorded once, and in order.
 */
export const settle = (view: LicenseView, now: number): Changes | undefined => {
  const { license, policy } = view
  const moves = passed(license, policy, now)
  const status = statusAt(license, policy, now)
  const moved = status !== license.status
  const overdue = policy.require_heartbeat
    ? Array.from(view.devices).filter((device) => isOverdue(device, policy, now))
    : []
  if (!moved && overdue.length === 0) return undefined
  return {
    license: {
      ...(moved ? { status, entitlement_counter: license.entitlement_counter + moves.length } : undefined),
      active_device_count: license.active_device_count - overdue.length
    },
    devices: overdue.map((device) => ({ ...device, status: "expired", holds_slot: false, updated_at: now })),
    leases: moved && status === "expired" ? endAll(view.liveLeases, now) : [],
    events: [
      ...moves.flatMap((to) => passedEvent(license, to)),
      ...overdue.map((device) => expiredEvent(license, device))
    ]
  }
}

const passedEvent = (license: LicenseRecord, to: LicenseStatus): ReadonlyArray<NewEvent> =>
  to === "grace_period" || to === "expired"
    ? [{ event_type: passedEvents[to], resource_type: "license", resource_id: license.id, metadata: { status: to } }]
    : []

const expiredEvent = (license: LicenseRecord, device: DeviceRecord): NewEvent => ({
  event_type: "device.expired",
  resource_type: "device",
  resource_id: device.id,
  metadata: { license_id: license.id, status: { old: device.status, new: "expired" } }
})

/** How much later than the policy's interval a heartbeat may come. */
const heartbeatSlackMillis = 30_000

/** Whether an activation has lapsed for want of a validation. Counted from the activation until the first one. */
export const isOverdue = (device: DeviceRecord, policy: PolicyRecord, now: number): boolean =>
  policy.require_heartbeat &&
  device.status === "active" &&
  device.holds_slot &&
  now >
    Math.max(device.last_validated_at ?? 0, device.activated_at ?? 0) +
      policy.validation_interval_minutes * 60_000 +
      heartbeatSlackMillis

export const endAll = (leases: LicenseView["liveLeases"], now: number) =>
  Array.from(leases, (lease) => ({ ...lease, status: "ended" as const, ended_at: now }))

/** The transitions that commands make: from each state, the next one, or why not. Anything else is refused. */
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

const move = (
  name: keyof typeof transitions,
  eventType: "license.suspended" | "license.reinstated" | "license.revoked",
  needs: Needs,
  also: (view: LicenseView, now: number) => Changes
): Rule<unknown, LicenseSnapshot, "LICENSE_STATE_CONFLICT"> => ({
  name,
  needs: () => needs,
  decide: (view, _command, now): Outcome<LicenseSnapshot, "LICENSE_STATE_CONFLICT"> => {
    const from = statusAt(view.license, view.policy, now)
    const to = transitions[name][from]
    if (to === "conflict")
      return reject("LICENSE_STATE_CONFLICT", `A license that is ${from} can not be changed by ${name}.`, {
        detail: from
      })
    if (to === "unchanged") return accept({}, snapshot)
    const status = to === "by clock" ? statusByClock(view.license, view.policy, now) : to
    const { license, ...rest } = also(view, now)
    return accept(
      {
        ...rest,
        license: { ...license, status, updated_at: now },
        entitlement: true,
        events: [
          {
            event_type: eventType,
            resource_type: "license",
            resource_id: view.license.id,
            metadata: { status: { old: from, new: status } }
          }
        ]
      },
      snapshot
    )
  }
})

/** Suspends: leases end, devices stay. */
export const suspend = move("suspend", "license.suspended", {}, ({ liveLeases }, now) => ({
  leases: endAll(liveLeases, now)
}))

/** Reinstates to what the clock says. */
export const reinstate = move("reinstate", "license.reinstated", {}, () => ({}))

/** Revokes for good: devices are deactivated, leases end. */
export const revoke = move("revoke", "license.revoked", { activeDevices: true }, ({ devices, liveLeases }, now) => ({
  license: { active_device_count: 0 },
  devices: Array.from(devices)
    .filter((device) => device.status === "active")
    .map((device) => ({ ...device, status: "deactivated" as const, holds_slot: false, updated_at: now })),
  leases: endAll(liveLeases, now)
}))
