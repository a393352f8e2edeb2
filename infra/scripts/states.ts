/**
 * The page of states: what every command makes of every state of a license, a device and a lease. No rule is repeated here.
 * Each cell was decided by the rules themselves on records made for it, so the page says what the service does.
 */
import { statuses } from "../../src/api/ErrorCode.ts"
import { isUsage } from "../../src/events/EventLog.ts"
import type { LicenseStatus } from "../../src/licenses/model/License.ts"
import type { DeviceRecord } from "../../src/licenses/model/LicenseRecords.ts"
import * as Activation from "../../src/licenses/rules/Activation.ts"
import * as DeviceActions from "../../src/licenses/rules/DeviceActions.ts"
import * as Floating from "../../src/licenses/rules/Floating.ts"
import { rotateKey } from "../../src/licenses/rules/KeyRotation.ts"
import * as Lifecycle from "../../src/licenses/rules/Lifecycle.ts"
import { renew } from "../../src/licenses/rules/Renewal.ts"
import { transfer } from "../../src/licenses/rules/Transfer.ts"
import { update } from "../../src/licenses/rules/Update.ts"
import { page, type Table } from "./states/Page.ts"
import {
  type Asked,
  bindingOf,
  type Decided,
  day,
  decide,
  deviceOf,
  type Given,
  graceDays,
  keyHash,
  leaseOf,
  license,
  minute,
  noon,
  tokenHash
} from "./states/Records.ts"

type Commands = Readonly<Record<string, Asked>>

/** The state that follows, `–` where nothing was changed, or the refusal. */
const cellOf = (to: string | undefined, { after, refused }: Decided): string => {
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
  transfer: { rule: transfer, command: { customer_name: "Ada" } },
  edit: { rule: update, command: { customer_name: "Ada" } },
  "rotate-key": { rule: rotateKey, command: rotation }
}

const inGrace = { expires_at: noon - day }
const past = { expires_at: noon - 2 * graceDays * day }

const licenses: ReadonlyArray<readonly [name: string, from: LicenseStatus, Given]> = [
  ["active", "active", {}],
  ["grace_period", "grace_period", { license: { status: "grace_period", ...inGrace } }],
  ["expired", "expired", { license: { status: "expired", ...past } }],
  ["suspended", "suspended", { license: { status: "suspended" } }],
  ["suspended, in grace", "suspended", { license: { status: "suspended", ...inGrace } }],
  ["suspended, past its grace", "suspended", { license: { status: "suspended", ...past } }],
  ["revoked", "revoked", { license: { status: "revoked" } }]
]

const licenseTable: Table = {
  commands: Object.keys(licenseCommands),
  rows: licenses.map(([name, from, given]) => ({
    name,
    from,
    cells: Object.values(licenseCommands).map((asked) => {
      const decided = decide(given, asked)
      return cellOf(decided.after.license.status, decided)
    })
  }))
}

const ends = license.expires_at
const accessEnds = ends + graceDays * day

const passing: ReadonlyArray<readonly [name: string, from: LicenseStatus, when: string, at: number, Given]> = [
  ["active", "active", "expires_at passes", ends, {}],
  ["active, no grace", "active", "expires_at passes", ends, { policy: { grace_period_days: 0 } }],
  ["grace_period", "grace_period", "the grace passes", accessEnds, { license: { status: "grace_period" } }],
  ["suspended", "suspended", "both pass", accessEnds, { license: { status: "suspended" } }],
  ["revoked", "revoked", "both pass", accessEnds, { license: { status: "revoked" } }]
]

/** What only happened is there without a decision, so the state alone tells whether anything did. */
const happened = (from: string, to: string | undefined): string => (to === from ? "–" : (to ?? "–"))

const clock = passing.map(([name, from, when, at, given]) => {
  const to = decide(given, { at }).after.license.status
  return { name, from, when, to: happened(from, to) }
})

const slot = deviceOf("slot", "active", true)
const seat = deviceOf("seat", "active", false)

const whole: Commands = {
  ...licenseCommands,
  "transfer with reset_devices": { rule: transfer, command: { reset_devices: true } },
  "access ends": { at: accessEnds }
}

/** What goes with a change of a license whose one device holds a slot and whose other device holds a seat. */
const effects = Object.entries(whole)
  .filter(([name]) => name !== "reinstate")
  .map(([name, asked]) => {
    const lease = leaseOf("live", accessEnds)
    const { after } = decide({ devices: [slot, seat], lease }, asked)
    const raised = after.license.entitlement_counter - license.entitlement_counter
    return {
      name,
      cells: [
        after.entries.flatMap((entry) => (isUsage(entry) ? [] : entry.event_type)).join(", "),
        happened("active", after.deviceById(slot.id)?.status),
        happened("active", after.deviceById(seat.id)?.status),
        happened("live", after.leaseByToken(tokenHash)?.status),
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

/** What happens to a device by itself, or with its license or seat. */
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

const givenDevice = (device: DeviceRecord | undefined): Given => ({
  devices: device === undefined ? [] : [device],
  ...(device === seat && { lease: leaseOf("live", noon + 90 * minute) })
})

const deviceTable: Table = {
  commands: Object.keys(deviceCommands("")),
  rows: devices.map(([name, device]) => {
    const { binding_key = "unknown", status: from = "unknown" } = device ?? {}
    const cells = Object.values(deviceCommands(binding_key)).map((asked) => {
      const decided = decide(givenDevice(device), asked)
      return cellOf(decided.after.device(bindingOf(binding_key))?.status, decided)
    })
    return { name, from, cells }
  })
}

const fateTable: Table = {
  commands: Object.keys(deviceFates),
  rows: devices.flatMap(([name, device]) => {
    if (device === undefined) return []
    const cells = Object.entries(deviceFates).map(([fate, asked]) => {
      if (fate.startsWith("lease") && device !== seat) return "–"
      const { after } = decide({ ...givenDevice(device), policy: { require_heartbeat: true } }, asked)
      return happened(device.status, after.deviceById(device.id)?.status)
    })
    return [{ name, from: device.status, cells }]
  })
}

/** Access that ends before the lease would. */
const shortAccess: Given = { license: { expires_at: noon + 10 * minute }, policy: { grace_period_days: 0 } }

const leaseFates: Readonly<Record<string, Asked & { readonly given?: Given }>> = {
  heartbeat: { rule: Floating.heartbeat, command: token },
  checkin: { rule: Floating.checkin, command: token },
  "checkout by the same device": { rule: Floating.checkout, command: checkoutOf("seat") },
  "its time passes": { at: noon + 30 * minute },
  "device reset": { rule: DeviceActions.reset, command: { device_id: seat.id } },
  "device blacklisted": { rule: DeviceActions.blacklist, command: { device_id: seat.id } },
  "license suspended": { rule: Lifecycle.suspend },
  "license revoked": { rule: Lifecycle.revoke },
  "transfer with reset_devices": { rule: transfer, command: { reset_devices: true } },
  "access ends": { at: noon + 10 * minute, given: shortAccess }
}

const leaseTable: Table = {
  commands: Object.keys(leaseFates),
  rows: (["live", "checked_in", "superseded", "expired", "ended", "blacklisted"] as const).map((from) => {
    const holder = from === "live" ? seat : deviceOf("seat", "reset", false)
    const cells = Object.values(leaseFates).map(({ given, ...asked }) => {
      const lease = leaseOf(from)
      const decided = decide({ ...given, devices: [holder], lease }, asked)
      const found = decided.after.leaseByToken(tokenHash)
      return decided.refused === undefined && found === lease ? "–" : cellOf(found?.status, decided)
    })
    return { name: from, from, cells }
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
