/** Licenses of Keygen with their keys, and machines as devices. */
import { Option, Result, Schema } from "effect"
import { Metadata } from "../../../contract/api/Metadata.ts"
import { Text } from "../../../contract/api/Text.ts"
import { latest } from "../../../contract/api/Timestamp.ts"
import * as LicenseKey from "../../../licensing/model/LicenseKey.ts"
import { heartbeatDueAt } from "../../../vendor/policies/Policy.ts"
import { decodeFields, licenseUnit } from "../LicenseUnits.ts"
import type { Entry, Unit } from "../Units.ts"
import { entryOf, instantOf, type KeygenPolicy, nameOf, numberOf, textOf } from "./Catalog.ts"
import { idOf, type Notes } from "./Notes.ts"
import { type Resource, related } from "./Resources.ts"

const decodeMetadata = decodeFields(Metadata)
const decodeMachine = decodeFields(
  Schema.Struct({
    fingerprint: Text(512),
    hostname: Schema.optionalKey(Text(255)),
    os: Schema.optionalKey(Text(255)),
    ip_address: Schema.optionalKey(Text(64)),
    metadata: Metadata
  })
)

export interface LicenseContext {
  readonly policies: ReadonlyMap<string, KeygenPolicy>
  readonly customers: ReadonlyMap<
    string,
    { readonly id: string; readonly name: string; readonly email?: string | undefined }
  >
  readonly machines: ReadonlyMap<string, ReadonlyArray<Resource>>
  readonly notes: Notes
  readonly now: number
}

/** The license of a resource with its devices; undefined if it cannot be mapped, which the notes say. */
export const keygenLicense = (
  source: Resource,
  { customers, machines, notes, now, policies }: LicenseContext
): { readonly unit: Unit; readonly keyHash: string; readonly isVendorKey: boolean } | undefined => {
  const { attributes, id } = source
  const note = (message: string) => notes.add(message, `license ${id}`)
  const skip = (reason: string) => void note(`licenses were skipped: ${reason}`)
  const policy = policies.get(related(source, "policy") ?? "")
  if (policy === undefined) return skip("their policy is missing")
  const key = LicenseKey.read(textOf(attributes["key"]) ?? "")
  if (Option.isNone(key))
    return skip("their key is missing, has spaces, or has not 8 to 255 printable ASCII characters")
  const created_at = instantOf(attributes["created"]) ?? now
  const customer = customers.get(related(source, "owner", "user") ?? "")
  noteUse(source, note)
  const limit = numberOf(attributes["maxMachines"])
  const seats = numberOf(attributes["maxFloatingUsers"])
  const status = statusOf(source)
  const devices = distinct(
    (machines.get(id) ?? []).flatMap((machine) => deviceOf(machine, policy, status === "revoked", notes, now) ?? []),
    note
  )
  const unit = licenseUnit(
    0,
    {
      id: idOf("lic", id),
      license_key: key.value,
      ...{ product_id: policy.productId, policy_id: policy.id, created_at },
      first_used_at: instantOf(devices.map(({ row }) => row["activated_at"]).toSorted()[0]),
      ...{ customer_id: customer?.id, customer_name: customer?.name, customer_email: customer?.email },
      status,
      starts_at: startOf(source, devices.length > 0, note, now),
      maintenance_expires_at: maintenanceOf(source, policy, note),
      ...datesOf(source, policy, note),
      ...(limit !== undefined && limit !== policy.policy.max_activations && attributes["floating"] === true
        ? { max_activations: limit }
        : undefined),
      ...(seats === undefined ? undefined : { max_floating_users: seats }),
      metadata: metadataOf(source, note)
    },
    policy,
    now
  )
  if (typeof unit === "string") return skip(unit)
  const slots = devices.filter(({ row }) => row["holds_slot"] === true).length
  const row = { ...unit.root.row, active_device_count: slots, times_activated: devices.length }
  return {
    unit: {
      root: { ...unit.root, source: nameOf({ ...source, attributes: {} }), row },
      parts: [...unit.parts, ...devices]
    },
    keyHash: LicenseKey.hashHex(key.value),
    isVendorKey: LicenseKey.isVendorKey(key.value)
  }
}

const statusOf = ({ attributes }: Resource) => {
  const status = textOf(attributes["status"])
  if (status === "REVOKED") return "revoked"
  return attributes["suspended"] === true || status === "BANNED" ? "suspended" : "active"
}

const noteUse = ({ attributes }: Resource, note: (message: string) => void) => {
  if ((numberOf(attributes["uses"]) ?? 0) > 0) note("licenses' uses are not imported: assign a feature with a quota")
  if (attributes["suspended"] !== true && textOf(attributes["status"]) === "BANNED") {
    note("licenses of banned users are imported as suspended")
  }
}

/** What the expiry of a license means depends on the policy. A license without one in a policy with a term never ends. */
const datesOf = ({ attributes }: Resource, { expiry, policy }: KeygenPolicy, note: (message: string) => void) => {
  const at = instantOf(attributes["expiry"])
  if (expiry === "updates") return { maintenance_expires_at: at }
  if (expiry === "nothing") {
    if (at !== undefined) note("the expiry of licenses whose policy allows access for ever is not imported")
    return {}
  }
  if (at !== undefined || policy.license_type === "perpetual" || policy.duration_starts === "first_activation") {
    return { expires_at: at }
  }
  note("licenses without an expiry in a policy with expiries end with the year 9999")
  return { expires_at: latest }
}

/** A start that is still ahead. Where licenses come from, devices that are activated already do not wait for it. */
const startOf = ({ attributes }: Resource, hasDevices: boolean, note: (message: string) => void, now: number) => {
  const at = instantOf(attributes["starts"])
  if (at === undefined || at <= now) return undefined
  return hasDevices ? void note("the start of licenses is not imported if they have devices") : at
}

/** A license that expires has no other end for its versions. */
const maintenanceOf = ({ attributes }: Resource, { policy }: KeygenPolicy, note: (message: string) => void) => {
  const at = instantOf(attributes["maintenanceExpiry"])
  if (at === undefined || policy.license_type === "perpetual") return at
  return void note("the end of maintenance is not imported of licenses that expire")
}

const metadataOf = ({ attributes }: Resource, note: (message: string) => void): object => {
  const name = textOf(attributes["name"])
  const metadata = decodeMetadata({ ...(name && { name }), ...(attributes["metadata"] as object | undefined) })
  if (Result.isSuccess(metadata)) return metadata.success
  note(`the metadata of licenses is not imported where it is too large: ${metadata.failure}`)
  return {}
}

/** Of the devices with one fingerprint: a blacklisted one, else an active one, else the first. */
const distinct = (devices: ReadonlyArray<Entry>, note: (message: string) => void): ReadonlyArray<Entry> => {
  const byFingerprint = new Map<unknown, Entry>()
  for (const device of devices) {
    const other = byFingerprint.get(device.row["binding_key"])
    if (other !== undefined) note("machines were skipped: another machine of their license has their fingerprint")
    if (other === undefined || precedence(device) > precedence(other))
      byFingerprint.set(device.row["binding_key"], device)
  }
  return [...byFingerprint.values()]
}

const precedence = ({ row: { status } }: Entry): number => ["active", "blacklisted"].indexOf(status as string)

/** A revoked license has no active device. */
const deviceOf = (
  source: Resource,
  policy: KeygenPolicy,
  isRevoked: boolean,
  notes: Notes,
  now: number
): Entry | undefined => {
  const { attributes, id } = source
  const [hostname, os, ip] = [textOf(attributes["hostname"]), textOf(attributes["platform"]), textOf(attributes["ip"])]
  const machine = decodeMachine({
    fingerprint: attributes["fingerprint"],
    ...(hostname && { hostname }),
    ...(os && { os }),
    ...(ip && { ip_address: ip }),
    metadata: attributes["metadata"] ?? {}
  })
  if (Result.isFailure(machine)) return void notes.add(`machines were skipped: ${machine.failure}`, `machine ${id}`)
  if (numberOf(attributes["cores"]) !== undefined) notes.add("machines' cores are not imported", `machine ${id}`)
  const isAlive = textOf(attributes["heartbeatStatus"]) !== "DEAD"
  // Keygen has no such member; other services do.
  const status = textOf(attributes["deviceStatus"]) ?? (isAlive ? (isRevoked ? "deactivated" : "active") : "expired")
  const created = instantOf(attributes["created"]) ?? now
  return entryOf("device", source, {
    id: idOf("dev", id),
    license_id: idOf("lic", related(source, "license") ?? ""),
    ...{ binding_kind: "hardware", binding_key: machine.success.fingerprint, is_vm: false, is_container: false },
    ...machine.success,
    ...{ status, holds_slot: status === "active" },
    ...{
      activated_at: created,
      first_seen_at: created,
      last_seen_at: instantOf(attributes["lastHeartbeat"]) ?? created
    },
    // The application calls Keygen until it is switched: its heartbeats begin with the first contact here.
    due_at: policy.requireHeartbeat ? latest : heartbeatDueAt(policy.policy, now),
    ...{ created_at: created, updated_at: now }
  })
}
