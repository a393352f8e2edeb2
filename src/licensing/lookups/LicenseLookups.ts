/**
 * Looks up data that commands need beyond the cached state: one device or lease among very many, a used event id, a
 * feature, a version. A look-up follows the load of the state, and reads the license's revisions in the same snapshot.
 * A result at other revisions is not used, because a failover could restore the state's revisions.
 */
import { Context, Effect, Layer } from "effect"
import { SqlClient, type Statement } from "effect/sql"
import { makeRecencyCache } from "../../access/rateLimits/RecencyCache.ts"
import { makeBatcher } from "../../platform/postgres/driver/Batcher.ts"
import { columns, instant } from "../../platform/postgres/driver/Parameters.ts"
import { Postgres } from "../../platform/postgres/driver/Postgres.ts"
import { mayTakeLong } from "../../platform/postgres/driver/Transactions.ts"
import { type Nullable, withoutNulls } from "../../platform/postgres/queries/Sql.ts"
import type {
  DeviceRecord,
  FeatureRecord,
  LinkKind,
  LinkRecord,
  Revisions,
  TargetPolicy
} from "../model/LicenseRecords.ts"
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
  listStatusOf,
  resettableListStatuses
} from "../rows/LicenseRows.ts"
import { type FeatureMark, type ReversalRequest, readReversalMark } from "../rows/ReversalMarks.ts"
import { readTargetPolicy } from "../rows/TargetPolicies.ts"
import type { CachedDevice } from "../state/CommittedState.ts"
import {
  type DeviceRequest,
  type LeaseRequest,
  readCountedUsage,
  readDevices,
  readLeases,
  type UsageRequest,
  type VersionedDevices,
  type VersionedUsage
} from "./BatchedLookups.ts"
import { inOneSnapshot, revisionsOf } from "./LicenseStore.ts"

/** The requested devices with their live leases, and when the first of the others is due. */
interface DueDevices {
  readonly devices: ReadonlyArray<CachedDevice>
  readonly nextDueAt: number
}

/** The versions of a product's catalog at one revision. */
interface CatalogVersions {
  readonly revision: number
  /** Release instants by version. */
  readonly versions: ReadonlyMap<string, number>
}

export interface Lookups {
  /** The device with this binding. */
  device(requested: DeviceRequest): Effect.Effect<VersionedDevices | undefined>
  countedUsage(requested: UsageRequest): Effect.Effect<VersionedUsage | undefined>
  deviceById(licenseId: string, id: string): Effect.Effect<CachedDevice | undefined>
  /** All active devices, without their leases. */
  activeDevices(licenseId: string): Effect.Effect<ReadonlyArray<DeviceRecord>>
  /** The devices whose slots are held after an instant. */
  heldSlots(licenseId: string, after: number): Effect.Effect<ReadonlyArray<CachedDevice>>
  /** Containers that hold a slot. */
  activeContainerCount(licenseId: string): Effect.Effect<number>
  /** The devices with a slot that are due before `lapsedBefore`, and the first due instant from `from` on. */
  silentDevices(licenseId: string, lapsedBefore: number, from: number): Effect.Effect<DueDevices>
  /** The device of a lease, with that lease in any state and the device's current live lease. */
  leaseByToken(requested: LeaseRequest): Effect.Effect<VersionedDevices | undefined>
  /** Live leases that end before an instant, and when the next one ends; without an instant, all live leases. */
  endingLeases(licenseId: string, before: number | undefined): Effect.Effect<DueDevices>
  liveLeaseCount(licenseId: string): Effect.Effect<number>
  resettableCount(licenseId: string): Effect.Effect<number>
  /** The newest ledger row of a feature, assigned or not, that is this consumption, its reversal, or a reset of the feature's count. */
  reversalMark(requested: ReversalRequest): Effect.Effect<FeatureMark | undefined>
  feature(featureId: string): Effect.Effect<FeatureRecord | undefined>
  targetPolicy(policyId: string): Effect.Effect<TargetPolicy | undefined>
  link(kind: LinkKind, id: string): Effect.Effect<LinkRecord | undefined>
  /** The catalog at this revision, otherwise the current one. */
  catalog(productId: string, revision: number): Effect.Effect<CatalogVersions>
  /** Runs look-ups without revisions on one snapshot of the database, and returns the license's revisions in it. */
  inOneSnapshot(licenseId: string, lookups: ReadonlyArray<Effect.Effect<unknown>>): Effect.Effect<Revisions | undefined>
}

export class LicenseLookups extends Context.Service<
  LicenseLookups,
  Lookups & {
    /** The same look-ups within the running transaction, which has locked the license. */
    readonly inTransaction: Lookups
  }
>()("licensing/licensing/lookups/LicenseLookups") {
  static readonly layer = Layer.effect(
    LicenseLookups,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { pipelined } = yield* Postgres
      const limits = { concurrency: 2, batchMax: 256 }
      const { request: device } = yield* makeBatcher({ name: "devices.find", ...limits, run: readDevices(sql) })
      const { request: leaseByToken } = yield* makeBatcher({ name: "leases.find", ...limits, run: readLeases(sql) })
      const usage = yield* makeBatcher({ name: "usage.find", ...limits, run: readCountedUsage(sql) })

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

      const heldSlots = Effect.fnUntraced(function* (licenseId: string, after: number) {
        const rows = yield* sql<CachedDeviceRow>`
          SELECT ${sql.literal(cachedDeviceColumns)} FROM devices d ${sql.literal(joinDeviceLease)}
          WHERE d.license_id = ${licenseId} AND d.listed_as IN ('either', 'expired') AND d.slot_held_until > ${instant(after)}`
        return rows.map(cachedDeviceOf)
      }, Effect.orDie)

      const activeContainerCount = (licenseId: string) =>
        countOf(sql`
          SELECT count(*) AS count FROM devices d
          WHERE d.license_id = ${licenseId} AND ${sql.literal(holdsSlot)} AND d.binding_kind = 'container'`)

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
            : yield* sql<{ readonly next: number | null }>`
                SELECT least((SELECT min(e.expires_at) ${live} AND ${due} < ${end} AND e.expires_at >= ${end}),
                  (SELECT min(${due}) ${live} AND ${due} >= ${end})) AS next`
        return { devices: rows.map(cachedDeviceOf), nextDueAt: later?.next ?? Number.POSITIVE_INFINITY }
      }, Effect.orDie)

      const liveLeaseCount = (licenseId: string) =>
        countOf(sql`
          SELECT count(*) AS count FROM leases WHERE license_id = ${licenseId} AND status = 'live'`)

      const feature = Effect.fnUntraced(function* (featureId: string) {
        const [row] = yield* sql<FeatureRecord>`SELECT id, product_id, code, name FROM features WHERE id = ${featureId}`
        return row
      }, Effect.orDie)

      const resettableCount = (licenseId: string) =>
        countOf(sql`
          SELECT count(*) AS count FROM devices
          WHERE license_id = ${licenseId} AND listed_as = ANY(${columns.text(resettableListStatuses)})`)

      const link = Effect.fnUntraced(function* (kind: LinkKind, id: string) {
        const [row] = yield* sql<Nullable<LinkRecord>>`SELECT ${sql.literal(linkColumns[kind])} WHERE id = ${id}`
        return row === undefined ? undefined : withoutNulls<LinkRecord>({ ...row, kind })
      }, Effect.orDie)

      const withRevisions = lookupsWithRevisions(sql)
      const lookups: Lookups = {
        device,
        countedUsage: usage.request,
        deviceById,
        activeDevices,
        heldSlots,
        activeContainerCount,
        silentDevices,
        leaseByToken,
        endingLeases,
        liveLeaseCount,
        resettableCount,
        reversalMark: readReversalMark(sql),
        feature,
        targetPolicy: (policyId) => Effect.orDie(readTargetPolicy(sql, policyId)),
        link,
        catalog: makeCatalogCache(sql),
        inOneSnapshot: (licenseId, lookups) => Effect.orDie(inOneSnapshot(pipelined(withRevisions(licenseId, lookups))))
      }
      const inTransaction: Lookups = {
        ...lookups,
        inOneSnapshot: withRevisions,
        device: unbatched(readDevices(sql)),
        countedUsage: unbatched(readCountedUsage(sql)),
        leaseByToken: unbatched(readLeases(sql))
      }
      return LicenseLookups.of({ ...lookups, inTransaction })
    })
  )
}

const countOf = (rows: Statement.Statement<{ readonly count: number }>) =>
  Effect.orDie(Effect.map(rows, ([row]) => row!.count))

const lookupsWithRevisions =
  (sql: SqlClient.SqlClient) => (licenseId: string, lookups: ReadonlyArray<Effect.Effect<unknown>>) =>
    Effect.map(
      Effect.all([Effect.orDie(mayTakeLong(sql)), revisionsOf(sql)([licenseId]), ...lookups], {
        concurrency: "unbounded"
      }),
      ([_, [revisions]]) => revisions
    )

/** Products whose versions are cached. */
const catalogsMax = 1_000

/** Caches the versions of products until the revision of their catalog changes. */
const makeCatalogCache = (sql: SqlClient.SqlClient): Lookups["catalog"] => {
  const catalogs = makeRecencyCache<CatalogVersions>(catalogsMax)
  return Effect.fnUntraced(function* (productId: string, revision: number) {
    const cached = catalogs.get(productId)
    if (cached?.revision === revision) return cached
    const rows = yield* sql<VersionRow>`
      SELECT p.catalog_revision, v.version, v.released_at
      FROM products p LEFT JOIN product_versions v ON v.product_id = p.id WHERE p.id = ${productId}`
    const read = catalogOf(rows)
    catalogs.set(productId, read)
    return read
  }, Effect.orDie)
}

interface VersionRow {
  readonly catalog_revision: number
  readonly version: string | null
  readonly released_at: number | null
}

/** A product without versions has one row without a version. */
const catalogOf = (rows: ReadonlyArray<VersionRow>): CatalogVersions => ({
  revision: rows[0]?.catalog_revision ?? 0,
  versions: new Map(rows.flatMap((row) => (row.version === null ? [] : [[row.version, row.released_at!] as const])))
})

const unbatched =
  <Request, Result>(run: (requested: ReadonlyArray<Request>) => Effect.Effect<ReadonlyArray<Result>>) =>
  (requested: Request): Effect.Effect<Result> =>
    Effect.map(run([requested]), ([result]) => result!)

const linkColumns: { readonly [K in LinkKind]: string } = {
  customer:
    "id, NULL AS product_id, NULL AS subscription_id, name, email, metadata ->> 'language' AS language, nullif(erasing, FALSE) AS erasing, erasure_revision FROM customers",
  order: `id, product_id, subscription_id, period_start, period_end FROM (
    SELECT o.id, o.product_id, o.subscription_id, s.current_period_start AS period_start, s.current_period_end AS period_end
    FROM orders o LEFT JOIN subscriptions s ON s.id = o.subscription_id) AS linked`,
  subscription:
    "id, product_id, NULL AS subscription_id, current_period_start AS period_start, current_period_end AS period_end FROM subscriptions"
}
