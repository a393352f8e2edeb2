/**
 * The page of states: the result of every command in every state of a license, a device and a lease. No rule is repeated here.
 * The rules themselves decide each cell, on records made for it, so the page shows what the service does.
 */
import { statuses } from "../../src/contract/api/ErrorCode.ts"
import { isUsage } from "../../src/ledger/events/Entry.ts"
import * as DeviceActions from "../../src/licensing/changes/DeviceActions.ts"
import { rotateKey } from "../../src/licensing/changes/KeyRotation.ts"
import { renewMaintenance } from "../../src/licensing/changes/MaintenanceRenewal.ts"
import { changePolicy } from "../../src/licensing/changes/PolicyChange.ts"
import { renew } from "../../src/licensing/changes/Renewal.ts"
import { transfer } from "../../src/licensing/changes/Transfer.ts"
import { update } from "../../src/licensing/changes/Update.ts"
import type { LicenseStatus } from "../../src/licensing/model/License.ts"
import type { DeviceRecord } from "../../src/licensing/model/LicenseRecords.ts"
import * as Activation from "../../src/licensing/rules/Activation.ts"
import * as Floating from "../../src/licensing/rules/Floating.ts"
import * as Lifecycle from "../../src/licensing/rules/Lifecycle.ts"
import { page, type Table } from "./states/Page.ts"
import {
  bindingOf,
  day,
  decide,
  deviceOf,
  type Execution,
  type Fixture,
  graceDays,
  keyHash,
  leaseOf,
  license,
  minute,
  noon,
  type Outcome,
  otherPolicy,
  tokenHash
} from "./states/Records.ts"

type Commands = Readonly<Record<string, Execution>>

/** The next state, `–` if nothing changed, or the refusal. */
const cellOf = (to: string | undefined, { after, refused }: Outcome): string => {
  if (refused !== undefined) return `${statuses[refused]} ${refused}`
  return after.changed || after.entries.length > 0 ? (to ?? "–") : "–"
}

const token = { keyHash, tokenHash }
const requestOf = (name: string) => ({ keyHash, binding: bindingOf(name), newDeviceId: `dev_${name}` })
const checkoutOf = (name: string) => ({ ...requestOf(name), newLeaseId: "lse_2", leaseToken: "", tokenHash: keyHash })
const rotation = { key_hash: tokenHash, license_key_prefix: "LK-11111", license_key_last4: "1111" }

const licenseCommands: Commands = {
  suspend: { rule: Lifecycle.suspend },
  reinstate: { rule: Lifecycle.reinstate },
  revoke: { rule: Lifecycle.revoke },
  renew: { rule: renew, command: { extend_by_days: 30 } },
  "renew maintenance": { rule: renewMaintenance, command: { extend_by_days: 30 } },
  transfer: { rule: transfer, command: { customer_name: "Ada" } },
  "change policy": { rule: changePolicy, command: { policy_id: otherPolicy } },
  edit: { rule: update, command: { customer_name: "Ada" } },
  "rotate-key": { rule: rotateKey, command: rotation }
}

const inGrace = { expires_at: noon - day }
const pastGrace = { expires_at: noon - 2 * graceDays * day }

const licenses: ReadonlyArray<readonly [name: string, from: LicenseStatus, Fixture]> = [
  ["active", "active", {}],
  ["grace_period", "grace_period", { license: { status: "grace_period", ...inGrace } }],
  ["expired", "expired", { license: { status: "expired", ...pastGrace } }],
  ["suspended", "suspended", { license: { status: "suspended" } }],
  ["suspended, in grace", "suspended", { license: { status: "suspended", ...inGrace } }],
  ["suspended, past its grace", "suspended", { license: { status: "suspended", ...pastGrace } }],
  ["revoked", "revoked", { license: { status: "revoked" } }]
]

const licenseTable: Table = {
  commands: Object.keys(licenseCommands),
  rows: licenses.map(([name, from, fixture]) => ({
    name,
    from,
    cells: Object.values(licenseCommands).map((execution) => {
      const outcome = decide(fixture, execution)
      return cellOf(outcome.after.license.status, outcome)
    })
  }))
}

const ends = license.expires_at
const accessEnds = ends + graceDays * day

const timeCases: ReadonlyArray<readonly [name: string, from: LicenseStatus, when: string, at: number, Fixture]> = [
  ["active", "active", "expires_at passes", ends, {}],
  ["active, no grace", "active", "expires_at passes", ends, { policy: { grace_period_days: 0 } }],
  ["grace_period", "grace_period", "the grace passes", accessEnds, { license: { status: "grace_period" } }],
  ["suspended", "suspended", "expires_at and the grace pass", accessEnds, { license: { status: "suspended" } }],
  ["revoked", "revoked", "expires_at and the grace pass", accessEnds, { license: { status: "revoked" } }]
]

/** The next state, or `–` if it is the same. For side effects and the passing of time, which are no decisions on this record. */
const changeOf = (from: string, to: string | undefined): string => (to === from ? "–" : (to ?? "–"))

const clock = timeCases.map(([name, from, when, at, fixture]) => {
  const to = decide(fixture, { at }).after.license.status
  return { name, from, when, to: changeOf(from, to) }
})

const slot = deviceOf("slot", "active", true)
const seat = deviceOf("seat", "active", false)

const licenseChanges: Commands = {
  ...licenseCommands,
  "transfer with reset_devices": { rule: transfer, command: { reset_devices: true } },
  "access ends": { at: accessEnds }
}

/** The side effects of a change of a license with one device that holds a slot and one device that holds a seat. */
const effects = Object.entries(licenseChanges)
  .filter(([name]) => name !== "reinstate")
  .map(([name, execution]) => {
    const lease = leaseOf("live", accessEnds)
    const { after } = decide({ devices: [slot, seat], lease }, execution)
    const raised = after.license.entitlement_counter - license.entitlement_counter
    return {
      name,
      cells: [
        after.entries.flatMap((entry) => (isUsage(entry) ? [] : entry.event_type)).join(", "),
        changeOf("active", after.deviceById(slot.id)?.status),
        changeOf("active", after.deviceById(seat.id)?.status),
        changeOf("live", after.leaseByToken(tokenHash)?.status),
        raised === 0 ? "–" : `+${raised}`
      ]
    }
  })

const deviceCommands = (name: string): Commands => ({
  activate: { rule: Activation.activate, command: requestOf(name) },
  validate: { rule: Activation.validate, command: requestOf(name) },
  deactivate: { rule: Activation.deactivate, command: requestOf(name) },
  checkout: { rule: Floating.checkout, command: checkoutOf(name) },
  reset: { rule: DeviceActions.reset, command: { device_id: `dev_${name}` } },
  blacklist: { rule: DeviceActions.blacklist, command: { device_id: `dev_${name}` } },
  unblacklist: { rule: DeviceActions.unblacklist, command: { device_id: `dev_${name}` } }
})

/** Changes of a device by time, or by a change of its license or lease. */
const deviceFates: Commands = {
  "heartbeat overdue": { at: noon + 61 * minute },
  "lease lapses": { at: noon + 90 * minute },
  "lease checked in": { rule: Floating.checkin, command: token },
  "license suspended": { rule: Lifecycle.suspend },
  "license revoked": { rule: Lifecycle.revoke },
  "transfer with reset_devices": { rule: transfer, command: { reset_devices: true } }
}

const devices: ReadonlyArray<readonly [name: string, device: DeviceRecord | undefined]> = [
  ["unknown", undefined],
  ["active", slot],
  ["active on a seat alone", seat],
  ...(["deactivated", "expired", "reset", "blacklisted"] as const).map(
    (status) => [status, deviceOf(status, status, false)] as const
  )
]

const fixtureOf = (device: DeviceRecord | undefined): Fixture => ({
  devices: device === undefined ? [] : [device],
  ...(device === seat && { lease: leaseOf("live", noon + 90 * minute) })
})

const deviceTable: Table = {
  commands: Object.keys(deviceCommands("")),
  rows: devices.map(([name, device]) => {
    const { binding_key = "unknown", status: from = "unknown" } = device ?? {}
    const cells = Object.values(deviceCommands(binding_key)).map((execution) => {
      const outcome = decide(fixtureOf(device), execution)
      return cellOf(outcome.after.device(bindingOf(binding_key))?.status, outcome)
    })
    return { name, from, cells }
  })
}

const fateTable: Table = {
  commands: Object.keys(deviceFates),
  rows: devices.flatMap(([name, device]) => {
    if (device === undefined) return []
    const cells = Object.entries(deviceFates).map(([fate, execution]) => {
      if (fate.startsWith("lease") && device !== seat) return "–"
      const { after } = decide({ ...fixtureOf(device), policy: { require_heartbeat: true } }, execution)
      return changeOf(device.status, after.deviceById(device.id)?.status)
    })
    return [{ name, from: device.status, cells }]
  })
}

/** Access that ends before the lease would. */
const shortAccess: Fixture = { license: { expires_at: noon + 10 * minute }, policy: { grace_period_days: 0 } }

const leaseFates: Readonly<Record<string, Execution & { readonly fixture?: Fixture }>> = {
  heartbeat: { rule: Floating.heartbeat, command: token },
  checkin: { rule: Floating.checkin, command: token },
  "checkout by the same device": { rule: Floating.checkout, command: checkoutOf("seat") },
  "its time passes": { at: noon + 30 * minute },
  "device reset": { rule: DeviceActions.reset, command: { device_id: seat.id } },
  "device reset with release_borrowed": {
    rule: DeviceActions.reset,
    command: { device_id: seat.id, release_borrowed: true }
  },
  "device blacklisted": { rule: DeviceActions.blacklist, command: { device_id: seat.id } },
  "license suspended": { rule: Lifecycle.suspend },
  "license revoked": { rule: Lifecycle.revoke },
  "transfer with reset_devices": { rule: transfer, command: { reset_devices: true } },
  "access ends": { at: noon + 10 * minute, fixture: shortAccess }
}

const leaseStates = [
  ["live", "live"],
  ["live, borrowed", "live"],
  ...(["checked_in", "superseded", "expired", "ended", "blacklisted"] as const).map(
    (status) => [status, status] as const
  )
] as const

const borrowed = { ...leaseOf("live"), borrowed_until: leaseOf("live").expires_at }

const leaseTable: Table = {
  commands: Object.keys(leaseFates),
  rows: leaseStates.map(([name, from]) => {
    const holder = from === "live" ? seat : deviceOf("seat", from === "expired" ? "expired" : "reset", false)
    const cells = Object.values(leaseFates).map(({ fixture, ...execution }) => {
      const lease = name === "live, borrowed" ? borrowed : leaseOf(from)
      const outcome = decide({ ...fixture, devices: [holder], lease }, execution)
      const leaseAfter = outcome.after.leaseByToken(tokenHash)
      return outcome.refused === undefined && leaseAfter === lease ? "–" : cellOf(leaseAfter?.status, outcome)
    })
    return { name, from, cells }
  })
}

/** Path from the project's folder → content. */
export const stateFiles = (): Readonly<Record<string, string>> => ({
  "docs/STATES.md": page({
    licenses: licenseTable,
    clock,
    effects,
    devices: deviceTable,
    fates: fateTable,
    leases: leaseTable
  })
})
