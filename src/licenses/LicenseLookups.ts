/**
 * What commands may need beyond the loaded state: a device among very many, an event id used before, a feature, a version.
 * A look-up always follows the load of the state it adds to: what changes in between raises a revision, and the fence sees it.
 */
import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { resettableStatuses } from "../devices/Transitions.ts"
import { gather } from "../postgres/Gather.ts"
import { columns, instant } from "../postgres/Parameters.ts"
import { present } from "../postgres/Sql.ts"
import { deviceColumns, deviceOf, heardAt, leaseColumns, leaseOf, type Nullable, type Owned } from "./LicenseRows.ts"
import type {
  BindingName,
  CountedUsage,
  DeviceRecord,
  FeatureRecord,
  LeaseRecord,
  LinkKind,
  LinkRecord,
  PolicyRecord
} from "./LicenseState.ts"
import { silenceMillisMax } from "./Lifecycle.ts"

interface WantedDevice {
  readonly licenseId: string
  readonly binding: BindingName
}

interface WantedUsage {
  readonly licenseId: string
  readonly eventId: string
}

interface HeldLease {
  readonly lease: LeaseRecord
  readonly device: DeviceRecord
}

export class LicenseLookups extends Context.Service<
  LicenseLookups,
  {
    device(wanted: WantedDevice): Effect.Effect<DeviceRecord | undefined>
    counted(wanted: WantedUsage): Effect.Effect<CountedUsage | undefined>
    deviceById(licenseId: string, id: string): Effect.Effect<DeviceRecord | undefined>
    devicesById(licenseId: string, ids: ReadonlyArray<string>): Effect.Effect<ReadonlyArray<DeviceRecord>>
    activeDevices(licenseId: string): Effect.Effect<ReadonlyArray<DeviceRecord>>
    /** Containers that hold a slot. */
    activeContainers(licenseId: string): Effect.Effect<number>
    /** The devices whose activation lapses before an instant unless it is validated, and when the next one after them does. */
    silent(
      licenseId: string,
      policy: PolicyRecord,
      before: number
    ): Effect.Effect<{ readonly devices: ReadonlyArray<DeviceRecord>; readonly next: number }>
    /** A lease in whatever state, with the device that holds or held it. */
    leaseByToken(licenseId: string, tokenHash: string): Effect.Effect<HeldLease | undefined>
    /** How many devices of the license are in a state that a reset moves. */
    resettable(licenseId: string): Effect.Effect<number>
    feature(featureId: string): Effect.Effect<FeatureRecord | undefined>
    link(kind: LinkKind, id: string): Effect.Effect<LinkRecord | undefined>
    /** Release instants by version: those of the given catalog revision or newer. */
    versions(productId: string, catalogRevision: number): Effect.Effect<ReadonlyMap<string, number>>
  }
>()("licensing/licenses/LicenseLookups") {
  static readonly layer = Layer.effect(
    LicenseLookups,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { ask: device } = yield* gather({ lanes: 2, batchMax: 256, run: devicesOf(sql) })
      const { ask: counted } = yield* gather({ lanes: 2, batchMax: 256, run: countedOf(sql) })

      const devicesById = Effect.fnUntraced(function* (licenseId: string, ids: ReadonlyArray<string>) {
        const rows = yield* sql<Nullable<DeviceRecord> & Owned>`
          SELECT ${sql.literal(deviceColumns)} FROM devices d
          WHERE d.id = ANY(${columns.text(ids)}) AND d.license_id = ${licenseId}`
        return rows.map(deviceOf)
      }, Effect.orDie)
      const deviceById = (licenseId: string, id: string) =>
        Effect.map(devicesById(licenseId, [id]), ([device]) => device)

      const activeDevices = Effect.fnUntraced(function* (licenseId: string) {
        const rows = yield* sql<Nullable<DeviceRecord> & Owned>`
          SELECT ${sql.literal(deviceColumns)} FROM devices d WHERE d.license_id = ${licenseId} AND d.status = 'active'`
        return rows.map(deviceOf)
      }, Effect.orDie)

      const activeContainers = Effect.fnUntraced(function* (licenseId: string) {
        const [row] = yield* sql<{ readonly count: number }>`
          SELECT count(*) AS count FROM devices
          WHERE license_id = ${licenseId} AND status = 'active' AND holds_slot AND binding_kind = 'container'`
        return row!.count
      }, Effect.orDie)

      const silent = Effect.fnUntraced(function* (licenseId: string, policy: PolicyRecord, before: number) {
        const heardBefore = instant(before - silenceMillisMax(policy))
        const [row] = yield* sql<{ readonly found: number; readonly next: number | null }>`
          SELECT count(*) FILTER (WHERE heard_at < ${heardBefore}) AS found, min(heard_at) FILTER (WHERE heard_at >= ${heardBefore}) AS next
          FROM (${heard(sql, licenseId, "")}) AS heard`
        const { found, next } = row!
        const rows =
          found === 0
            ? []
            : yield* sql<Nullable<DeviceRecord> & Owned>`
                SELECT ${sql.literal(deviceColumns)} FROM (${heard(sql, licenseId, "d.*, ")}) AS d WHERE d.heard_at < ${heardBefore}`
        return {
          devices: rows.map(deviceOf),
          next: next === null ? Number.POSITIVE_INFINITY : next + silenceMillisMax(policy)
        }
      }, Effect.orDie)

      const leaseByToken = Effect.fnUntraced(function* (licenseId: string, tokenHash: string) {
        const [row] = yield* sql<Nullable<LeaseRecord> & Owned>`
          SELECT ${sql.literal(leaseColumns)} FROM leases
          WHERE token_hash = ${Buffer.from(tokenHash, "hex")} AND license_id = ${licenseId}`
        const device = row === undefined ? undefined : yield* deviceById(licenseId, row.device_id)
        return row === undefined || device === undefined ? undefined : { lease: leaseOf(row), device }
      }, Effect.orDie)

      const feature = Effect.fnUntraced(function* (featureId: string) {
        const [row] = yield* sql<FeatureRecord>`SELECT id, product_id, code, name FROM features WHERE id = ${featureId}`
        return row
      }, Effect.orDie)

      const resettable = Effect.fnUntraced(function* (licenseId: string) {
        const [row] = yield* sql<{ readonly count: number }>`
          SELECT count(*) AS count FROM devices
          WHERE license_id = ${licenseId} AND status = ANY(${columns.text(resettableStatuses)})`
        return row!.count
      }, Effect.orDie)

      const link = Effect.fnUntraced(function* (kind: LinkKind, id: string) {
        const [row] = yield* sql<Nullable<LinkRecord>>`SELECT ${sql.literal(linkColumns[kind])} WHERE id = ${id}`
        return row === undefined ? undefined : present<LinkRecord>({ ...row, kind })
      }, Effect.orDie)

      const catalogs = new Map<string, { readonly revision: number; readonly versions: ReadonlyMap<string, number> }>()
      const versions = Effect.fnUntraced(function* (productId: string, catalogRevision: number) {
        const cached = catalogs.get(productId)
        if (cached?.revision === catalogRevision) return cached.versions
        const rows = yield* sql<{ readonly version: string; readonly released_at: number }>`
          SELECT version, released_at FROM product_versions WHERE product_id = ${productId}`
        const read = new Map(rows.map((row) => [row.version, row.released_at]))
        catalogs.set(productId, { revision: catalogRevision, versions: read })
        return read
      }, Effect.orDie)

      return LicenseLookups.of({
        device,
        counted,
        deviceById,
        devicesById,
        activeDevices,
        activeContainers,
        silent,
        leaseByToken,
        resettable,
        feature,
        link,
        versions
      })
    })
  )
}

/** When the activated devices of a license were heard of last. */
const heard = (sql: SqlClient.SqlClient, licenseId: string, columns: string) => sql`
  SELECT ${sql.literal(columns)} ${sql.literal(heardAt)} AS heard_at FROM devices d
  WHERE d.license_id = ${licenseId} AND d.status = 'active' AND d.holds_slot`

const linkColumns: { readonly [K in LinkKind]: string } = {
  customer: "id, NULL AS product_id, NULL AS subscription_id FROM customers",
  order: "id, product_id, subscription_id FROM orders",
  subscription: "id, product_id, NULL AS subscription_id FROM subscriptions"
}

const devicesOf = (sql: SqlClient.SqlClient) =>
  Effect.fnUntraced(function* (wanted: ReadonlyArray<WantedDevice>) {
    const rows = yield* sql<Nullable<DeviceRecord> & Owned & { readonly ordinal: number }>`
      SELECT wanted.ordinal, ${sql.literal(deviceColumns)}
      FROM unnest(${columns.text(wanted.map(({ licenseId }) => licenseId))}, ${columns.text(wanted.map(({ binding }) => binding.kind))},
        ${columns.text(wanted.map(({ binding }) => binding.key))}) WITH ORDINALITY AS wanted (license_id, kind, key, ordinal)
      JOIN devices d ON d.license_id = wanted.license_id AND d.binding_kind = wanted.kind AND d.binding_key = wanted.key`
    const found = new Map(rows.map(({ ordinal, ...row }) => [ordinal, deviceOf(row)]))
    return wanted.map((_, index) => found.get(index + 1))
  }, Effect.orDie)

/** An event id stays used when its feature is deleted: then no code is the one that it was used with. */
const countedOf = (sql: SqlClient.SqlClient) =>
  Effect.fnUntraced(function* (wanted: ReadonlyArray<WantedUsage>) {
    const rows = yield* sql<CountedUsage & { readonly ordinal: number }>`
      SELECT wanted.ordinal, coalesce(f.code, '') AS feature_code, u.amount
      FROM unnest(${columns.text(wanted.map(({ licenseId }) => licenseId))}, ${columns.text(wanted.map(({ eventId }) => eventId))})
        WITH ORDINALITY AS wanted (license_id, event_id, ordinal)
      JOIN usage_ledger u ON u.license_id = wanted.license_id AND u.event_id = wanted.event_id
      LEFT JOIN features f ON f.id = u.feature_id`
    const found = new Map(rows.map(({ ordinal, ...row }) => [ordinal, row]))
    return wanted.map((_, index) => found.get(index + 1))
  }, Effect.orDie)
