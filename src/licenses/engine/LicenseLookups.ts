/**
 * Looks up what commands may need beyond the cached state: one device or lease among very many, an event id counted
 * before, a feature, a version. A look-up always follows the load of the state that it completes: a change in between
 * raises a revision, which the fence detects.
 */
import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { makeBatcher } from "../../postgres/Batcher.ts"
import { columns, instant } from "../../postgres/Parameters.ts"
import { withoutNulls } from "../../postgres/Sql.ts"
import type {
  BindingName,
  CountedUsage,
  DeviceRecord,
  FeatureRecord,
  LinkKind,
  LinkRecord,
  Revisions
} from "../model/LicenseRecords.ts"
import type { CachedDevice } from "./CommittedState.ts"
import {
  type CachedDeviceRow,
  cachedDeviceColumns,
  cachedDeviceOf,
  type DeviceRow,
  deviceColumns,
  deviceOf,
  endsAfter,
  holdsSlot,
  joinDeviceLease,
  type LicenseOwned,
  licenseDependencies,
  listStatusOf,
  type Nullable,
  resettableListStatuses,
  revisionColumns
} from "./LicenseRows.ts"

interface DeviceRequest {
  readonly licenseId: string
  readonly binding: BindingName
}

interface UsageRequest {
  readonly licenseId: string
  readonly eventId: string
}

interface LeaseRequest {
  readonly licenseId: string
  readonly tokenHash: string
}

/** Devices with their leases, and the license's revisions at which they were read. */
interface VersionedDevices {
  readonly devices: ReadonlyArray<CachedDevice>
  readonly revisions: Revisions
}

/** The requested devices with their live leases, and when the first of the others is due. */
interface DueDevices {
  readonly devices: ReadonlyArray<CachedDevice>
  readonly nextDueAt: number
}

export interface Lookups {
  /** The device with this binding. */
  device(requested: DeviceRequest): Effect.Effect<VersionedDevices | undefined>
  countedUsage(requested: UsageRequest): Effect.Effect<CountedUsage | undefined>
  deviceById(licenseId: string, id: string): Effect.Effect<CachedDevice | undefined>
  /** All active devices, without their leases. */
  activeDevices(licenseId: string): Effect.Effect<ReadonlyArray<DeviceRecord>>
  /** Containers that hold a slot. */
  activeContainerCount(licenseId: string): Effect.Effect<number>
  /**
   * The devices with a slot that were promised it until before `lapsedBefore`, and when the next promise from `from` on
   * ends.
   */
  silentDevices(licenseId: string, lapsedBefore: number, from: number): Effect.Effect<DueDevices>
  /** The device of a lease, with that lease in any state and the device's current live lease. */
  leaseByToken(requested: LeaseRequest): Effect.Effect<VersionedDevices | undefined>
  /** Live leases that end before an instant, and when the next one ends; all live leases if no instant is given. */
  endingLeases(licenseId: string, before: number | undefined): Effect.Effect<DueDevices>
  liveLeaseCount(licenseId: string): Effect.Effect<number>
  /** The number of devices in a state that a reset changes. */
  resettableCount(licenseId: string): Effect.Effect<number>
  feature(featureId: string): Effect.Effect<FeatureRecord | undefined>
  link(kind: LinkKind, id: string): Effect.Effect<LinkRecord | undefined>
  /** Release instants by version, read at the given catalog revision or a newer one. */
  versions(productId: string, catalogRevision: number): Effect.Effect<ReadonlyMap<string, number>>
}

export class LicenseLookups extends Context.Service<
  LicenseLookups,
  Lookups & {
    /** The same look-ups within the running transaction, which has locked the license. They use its connection. */
    readonly inTransaction: Lookups
  }
>()("licensing/licenses/engine/LicenseLookups") {
  static readonly layer = Layer.effect(
    LicenseLookups,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const limits = { concurrency: 2, batchMax: 256 }
      const { request: device } = yield* makeBatcher({ ...limits, run: readDevices(sql) })
      const { request: leaseByToken } = yield* makeBatcher({ ...limits, run: readLeases(sql) })
      const { request: countedUsage } = yield* makeBatcher({ ...limits, run: readCountedUsage(sql) })

      const deviceById = Effect.fnUntraced(function* (licenseId: string, id: string) {
        const [row] = yield* sql<CachedDeviceRow>`
          SELECT ${sql.literal(cachedDeviceColumns)} FROM devices d ${sql.literal(joinDeviceLease)}
          WHERE d.id = ${id} AND d.license_id = ${licenseId}`
        return row && cachedDeviceOf(row)
      }, Effect.orDie)

      const activeDevices = Effect.fnUntraced(function* (licenseId: string) {
        const rows = yield* sql<DeviceRow & LicenseOwned>`
          SELECT ${sql.literal(deviceColumns)} FROM devices d WHERE d.license_id = ${licenseId}
            AND d.listed_as = ${listStatusOf("active")} AND d.status = 'active'`
        return rows.map(deviceOf)
      }, Effect.orDie)

      const activeContainerCount = Effect.fnUntraced(function* (licenseId: string) {
        const [row] = yield* sql<{ readonly count: number }>`
          SELECT count(*) AS count FROM devices d
          WHERE d.license_id = ${licenseId} AND ${sql.literal(holdsSlot)} AND d.binding_kind = 'container'`
        return row!.count
      }, Effect.orDie)

      const silentDevices = Effect.fnUntraced(function* (licenseId: string, lapsedBefore: number, from: number) {
        const ofLicense = sql`FROM devices d WHERE d.license_id = ${licenseId} AND ${sql.literal(holdsSlot)}`
        // A device without a promise is due as soon as the license and its policy permit.
        const lapses = sql`coalesce(d.due_at, '-infinity') < ${instant(lapsedBefore)}`
        const [row] = yield* sql<{ readonly found: number; readonly next: number | null }>`
          SELECT count(*) FILTER (WHERE ${lapses}) AS found, min(d.due_at) FILTER (WHERE d.due_at >= ${instant(from)}) AS next ${ofLicense}`
        const { found, next } = row!
        const rows =
          found === 0
            ? []
            : yield* sql<CachedDeviceRow>`
                SELECT ${sql.literal(cachedDeviceColumns)}
                FROM (SELECT d.* ${ofLicense} AND ${lapses}) AS d ${sql.literal(joinDeviceLease)}`
        return { devices: rows.map(cachedDeviceOf), nextDueAt: next ?? Number.POSITIVE_INFINITY }
      }, Effect.orDie)

      const endingLeases = Effect.fnUntraced(function* (licenseId: string, before: number | undefined) {
        const live = sql`FROM leases e WHERE e.license_id = ${licenseId} AND e.status = 'live'`
        const end = before === undefined ? undefined : instant(before)
        const due = sql.literal(endsAfter)
        const rows = yield* sql<CachedDeviceRow>`
          SELECT ${sql.literal(cachedDeviceColumns)}
          FROM (SELECT * ${live} ${end === undefined ? sql`` : sql`AND ${due} < ${end} AND e.expires_at < ${end}`}) AS e
          JOIN devices d ON d.id = e.device_id`
        const [later] =
          end === undefined
            ? []
            : yield* sql<{
                readonly next: number | null
              }>`
                SELECT least((SELECT min(e.expires_at) ${live} AND ${due} < ${end} AND e.expires_at >= ${end}),
                  (SELECT min(${due}) ${live} AND ${due} >= ${end})) AS next`
        return { devices: rows.map(cachedDeviceOf), nextDueAt: later?.next ?? Number.POSITIVE_INFINITY }
      }, Effect.orDie)

      const liveLeaseCount = Effect.fnUntraced(function* (licenseId: string) {
        const [row] = yield* sql<{ readonly count: number }>`
          SELECT count(*) AS count FROM leases WHERE license_id = ${licenseId} AND status = 'live'`
        return row!.count
      }, Effect.orDie)

      const feature = Effect.fnUntraced(function* (featureId: string) {
        const [row] = yield* sql<FeatureRecord>`SELECT id, product_id, code, name FROM features WHERE id = ${featureId}`
        return row
      }, Effect.orDie)

      const resettableCount = Effect.fnUntraced(function* (licenseId: string) {
        const [row] = yield* sql<{ readonly count: number }>`
          SELECT count(*) AS count FROM devices
          WHERE license_id = ${licenseId} AND listed_as = ANY(${columns.text(resettableListStatuses)})`
        return row!.count
      }, Effect.orDie)

      const link = Effect.fnUntraced(function* (kind: LinkKind, id: string) {
        const [row] = yield* sql<Nullable<LinkRecord>>`SELECT ${sql.literal(linkColumns[kind])} WHERE id = ${id}`
        return row === undefined ? undefined : withoutNulls<LinkRecord>({ ...row, kind })
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

      const lookups: Lookups = {
        device,
        countedUsage,
        deviceById,
        activeDevices,
        activeContainerCount,
        silentDevices,
        leaseByToken,
        endingLeases,
        liveLeaseCount,
        resettableCount,
        feature,
        link,
        versions
      }
      const inTransaction: Lookups = {
        ...lookups,
        device: unbatched(readDevices(sql)),
        countedUsage: unbatched(readCountedUsage(sql)),
        leaseByToken: unbatched(readLeases(sql))
      }
      return LicenseLookups.of({ ...lookups, inTransaction })
    })
  )
}

const unbatched =
  <Request, Result>(run: (requested: ReadonlyArray<Request>) => Effect.Effect<ReadonlyArray<Result>>) =>
  (requested: Request): Effect.Effect<Result> =>
    Effect.map(run([requested]), ([result]) => result!)

const linkColumns: { readonly [K in LinkKind]: string } = {
  customer: "id, NULL AS product_id, NULL AS subscription_id, name, email FROM customers",
  order: "id, product_id, subscription_id, NULL AS name, NULL AS email FROM orders",
  subscription: "id, product_id, NULL AS subscription_id, NULL AS name, NULL AS email FROM subscriptions"
}

const readDevices = (sql: SqlClient.SqlClient) =>
  Effect.fnUntraced(function* (requested: ReadonlyArray<DeviceRequest>) {
    const rows = yield* sql<VersionedDeviceRow>`
      SELECT requested.ordinal, ${sql.literal(revisionColumns)}, ${sql.literal(cachedDeviceColumns)}
      FROM unnest(${columns.text(requested.map(({ licenseId }) => licenseId))}, ${columns.text(requested.map(({ binding }) => binding.kind))},
        ${columns.text(requested.map(({ binding }) => binding.key))}) WITH ORDINALITY AS requested (license_id, kind, key, ordinal)
      JOIN devices d ON d.license_id = requested.license_id AND d.binding_kind = requested.kind AND d.binding_key = requested.key
      JOIN licenses l ON l.id = requested.license_id ${sql.literal(licenseDependencies)} ${sql.literal(joinDeviceLease)}`
    return versionedDevicesByRequest(requested, rows)
  }, Effect.orDie)

const readLeases = (sql: SqlClient.SqlClient) =>
  Effect.fnUntraced(function* (requested: ReadonlyArray<LeaseRequest>) {
    const rows = yield* sql<VersionedDeviceRow>`
      SELECT requested.ordinal, ${sql.literal(revisionColumns)}, ${sql.literal(cachedDeviceColumns)}
      FROM unnest(${columns.text(requested.map(({ licenseId }) => licenseId))},
        ${columns.bytea(requested.map(({ tokenHash }) => Buffer.from(tokenHash, "hex")))}) WITH ORDINALITY AS requested (license_id, token_hash, ordinal)
      JOIN leases named ON named.token_hash = requested.token_hash AND named.license_id = requested.license_id
      JOIN devices d ON d.id = named.device_id
      JOIN licenses l ON l.id = requested.license_id ${sql.literal(licenseDependencies)}
      CROSS JOIN LATERAL (
        SELECT named.* UNION ALL
        SELECT * FROM leases WHERE device_id = d.id AND status = 'live' AND id <> named.id
      ) AS e`
    return versionedDevicesByRequest(requested, rows)
  }, Effect.orDie)

type VersionedDeviceRow = CachedDeviceRow & Revisions & { readonly ordinal: number }

/** The devices of each request, in the order of the requests. No revisions are read for a device that was not found. */
const versionedDevicesByRequest = (
  requested: ReadonlyArray<unknown>,
  rows: ReadonlyArray<VersionedDeviceRow>
): ReadonlyArray<VersionedDevices | undefined> => {
  const rowsByOrdinal = Map.groupBy(rows, ({ ordinal }) => ordinal)
  return requested.map((_, index) => {
    const deviceRows = rowsByOrdinal.get(index + 1)
    if (deviceRows === undefined) return undefined
    const { license, policy, catalog } = deviceRows[0]!
    return { devices: deviceRows.map(cachedDeviceOf), revisions: { license, policy, catalog } }
  })
}

/** An event id stays used when its feature is deleted: the empty code then matches no request. */
const readCountedUsage = (sql: SqlClient.SqlClient) =>
  Effect.fnUntraced(function* (requested: ReadonlyArray<UsageRequest>) {
    const rows = yield* sql<CountedUsage & { readonly ordinal: number }>`
      SELECT requested.ordinal, coalesce(f.code, '') AS feature_code, u.amount
      FROM unnest(${columns.text(requested.map(({ licenseId }) => licenseId))}, ${columns.text(requested.map(({ eventId }) => eventId))})
        WITH ORDINALITY AS requested (license_id, event_id, ordinal)
      JOIN usage_ledger u ON u.license_id = requested.license_id AND u.event_id = requested.event_id
      LEFT JOIN features f ON f.id = u.feature_id`
    const rowsByOrdinal = new Map(rows.map(({ ordinal, ...row }) => [ordinal, row]))
    return requested.map((_, index) => rowsByOrdinal.get(index + 1))
  }, Effect.orDie)
