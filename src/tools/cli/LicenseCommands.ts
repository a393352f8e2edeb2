/**
 * Commands for support without an API token: find, suspend and reinstate licenses, free a device's slot. A change is a
 * command to the license's actor in this process, with the same fence and events as on any node.
 * No command prints a license key, a fingerprint or a container's ids.
 */
import { Console, Effect, Layer, Option, Schema } from "effect"
import { Argument, Flag } from "effect/cli"
import { limitMax } from "../../contract/api/Paging.ts"
import { formatTimestamp } from "../../contract/api/Timestamp.ts"
import { EventLog } from "../../ledger/events/EventLog.ts"
import { Mail } from "../../ledger/mail/Mail.ts"
import { Devices } from "../../licensing/devices/Devices.ts"
import { Journal } from "../../licensing/engine/Journal.ts"
import { LicenseActors } from "../../licensing/engine/LicenseActors.ts"
import { LicenseLookups } from "../../licensing/lookups/LicenseLookups.ts"
import { LicenseStore } from "../../licensing/lookups/LicenseStore.ts"
import { LicenseList } from "../../licensing/management/LicenseList.ts"
import { Licenses } from "../../licensing/management/Licenses.ts"
import { Device } from "../../licensing/model/Device.ts"
import { License } from "../../licensing/model/License.ts"
import { LicenseFeature } from "../../licensing/model/LicenseFeature.ts"
import * as LicenseKey from "../../licensing/model/LicenseKey.ts"
import { quotaOf } from "../../licensing/rules/Quota.ts"
import { aligned, CommandEnded, flag, jsonFlag, print } from "./Output.ts"

const services = Layer.mergeAll(Licenses.layer, Devices.layer).pipe(
  Layer.provide([LicenseActors.layer, LicenseList.layer]),
  Layer.provide([Journal.layer, LicenseStore.layer, LicenseLookups.layer]),
  Layer.provide([EventLog.layer, Mail.layer])
)

const licenseId = Argument.String("license-id").pipe(
  Argument.withDescription("The license's id, as `licenses find` shows it.")
)

export const findFlags = {
  text: Argument.String("text").pipe(
    Argument.withDescription("An id, the last four characters of a key, or a part of a customer's name or email."),
    Argument.withSchema(Schema.NonEmptyString)
  ),
  limit: Flag.Int("limit").pipe(
    Flag.withDescription(`The most licenses to print, up to ${limitMax}.`),
    Flag.withDefault(20),
    Flag.withSchema(Schema.Number.check(Schema.isBetween({ minimum: 1, maximum: limitMax })))
  ),
  ...jsonFlag
}
export const licenseFlags = { licenseId, ...jsonFlag }
export const resetDeviceFlags = {
  licenseId,
  deviceId: Argument.String("device-id").pipe(
    Argument.withDescription("The device's id, as `licenses show` shows it.")
  ),
  releaseBorrowed: flag(
    "release-borrowed",
    "Also free a borrowed seat, which the device may still use without a connection."
  ),
  ...jsonFlag
}

const encodeLicense = Schema.encodeSync(License)
const encodeFeature = Schema.encodeSync(LicenseFeature)
const encodeDevice = Schema.encodeSync(Device)

const isId = (text: string) => text.startsWith("lic_")
/** Any other text may be a license key, so no message repeats it. */
const getLicense = Effect.fnUntraced(function* (id: string) {
  if (isId(id)) return yield* (yield* Licenses).get(id)
  return yield* new CommandEnded({
    exitCode: 2,
    message: "Give the id of the license, lic_…, as `licenses find` shows it."
  })
})

const isLast4 = (text: string) => /^[\x21-\x7e]{2,4}$/.test(text)

interface FindFlags {
  readonly text: string
  readonly limit: number
  readonly json: boolean
}

export const findLicenses = Effect.fnUntraced(function* ({ json, limit, text }: FindFlags) {
  if (Option.isSome(LicenseKey.parse(text))) {
    return yield* new CommandEnded({
      exitCode: 2,
      message: "This is a whole license key: give only its last four characters, because others can read command lines."
    })
  }
  const licenses = yield* Licenses
  // Generated keys have capitals only; the case of a vendor key matters.
  const endings = isLast4(text) ? [...new Set([text, text.toUpperCase()])] : []
  const byLast4 = yield* Effect.forEach(endings, (license_key_last4) => licenses.list({ license_key_last4, limit }))
  const others = isId(text)
    ? yield* Effect.orElseSucceed(
        Effect.map(licenses.get(text), (license) => [license]),
        () => []
      )
    : (yield* licenses.list({ q: text, limit })).items
  const found = [
    ...new Map([...byLast4.flatMap(({ items }) => items), ...others].map((license) => [license.id, license])).values()
  ].slice(0, limit)
  yield* print(
    json,
    found.map((license) => encodeLicense(license)),
    aligned(found.map(rowOf))
  )
  if (found.length === 0) {
    return yield* new CommandEnded({ exitCode: 1, message: "No license matches: try a part of the name or email." })
  }
  if (found.length === limit)
    yield* Console.error(`Only the first ${limit} are shown: give a longer text, or raise --limit.`)
}, Effect.provide(services))

const rowOf = (license: License) => [
  license.id,
  license.status,
  `…${license.license_key_last4}`,
  license.expires_at === undefined ? "no expiry" : `expires ${formatTimestamp(license.expires_at)}`,
  customerOf(license)
]

const customerOf = ({ customer_email, customer_name }: License): string =>
  [customer_name, customer_email === undefined ? undefined : `<${customer_email}>`]
    .filter((part) => part !== undefined)
    .join(" ")

interface LicenseFlags {
  readonly licenseId: string
  readonly json: boolean
}

export const showLicense = Effect.fnUntraced(function* ({ json, licenseId }: LicenseFlags) {
  const licenses = yield* Licenses
  const license = yield* getLicense(licenseId)
  const features = (yield* licenses.features(licenseId, { limit: limitMax })).items
  const { items: devices, next } = yield* (yield* Devices).list(licenseId, { limit: limitMax })
  const shown = {
    license: encodeLicense(license),
    features: features.map((feature) => encodeFeature(feature)),
    devices: devices.map(withoutBinding)
  }
  yield* print(json, shown, [
    ...aligned(
      Object.entries(shown.license)
        .filter(([, value]) => typeof value !== "object")
        .map(asText)
    ),
    ...section("features", aligned(features.map(featureRow))),
    ...section("devices", aligned(devices.map(deviceRow)))
  ])
  if (next !== undefined) yield* Console.error(`Only the newest ${limitMax} devices are shown: the API lists all.`)
}, Effect.provide(services))

const asText = ([name, value]: readonly [string, unknown]) => [name, String(value)]

const section = (title: string, lines: ReadonlyArray<string>) =>
  lines.length === 0 ? [] : ["", title, ...lines.map((line) => `  ${line}`)]

const featureRow = (feature: LicenseFeature) => [
  feature.feature_code,
  feature.enabled ? "enabled" : "disabled",
  feature.max_consumptions === undefined
    ? `${feature.total_consumptions} used`
    : `${feature.total_consumptions} of ${quotaOf(feature)} used`,
  feature.expires_at === undefined ? "" : `expires ${formatTimestamp(feature.expires_at)}`,
  feature.expires_with_license === true ? "with the license" : ""
]

const deviceRow = (device: Device) => [
  device.id,
  device.status,
  device.binding_kind,
  device.hostname ?? "",
  `seen ${formatTimestamp(device.last_seen_at)}`
]

/** Without the data that identifies the machine: support needs the id. */
const withoutBinding = (device: Device) => {
  const { binding_key: _, fingerprint: __, container_id: ___, ip_address: ____, ...shown } = encodeDevice(device)
  const { cluster_id: _____, namespace: ______, pod_name: _______, ...rest } = shown
  return rest
}

const printStatus = (json: boolean, license: License) =>
  print(json, encodeLicense(license), [`${license.id} ${license.status}`])

export const suspendLicense = Effect.fnUntraced(function* ({ json, licenseId }: LicenseFlags) {
  yield* getLicense(licenseId)
  yield* printStatus(json, yield* (yield* Licenses).suspend(licenseId))
}, Effect.provide(services))

export const reinstateLicense = Effect.fnUntraced(function* ({ json, licenseId }: LicenseFlags) {
  yield* getLicense(licenseId)
  yield* printStatus(json, yield* (yield* Licenses).reinstate(licenseId))
}, Effect.provide(services))

interface ResetDeviceFlags extends LicenseFlags {
  readonly deviceId: string
  readonly releaseBorrowed: boolean
}

export const resetDevice = Effect.fnUntraced(function* ({
  deviceId,
  json,
  licenseId,
  releaseBorrowed
}: ResetDeviceFlags) {
  yield* getLicense(licenseId)
  const device = yield* (yield* Devices).reset(licenseId, deviceId, { release_borrowed: releaseBorrowed })
  yield* print(json, withoutBinding(device), [`${device.id} ${device.status}`])
}, Effect.provide(services))
