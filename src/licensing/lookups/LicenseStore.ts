/**
 * Loads licenses for their actors, and batches the reads of all actors of the node. `revisions` is the cheap check of
 * cached state: a command without changes is answered only after the database has confirmed the revisions of its
 * decision, in a read after the command arrived. So results are correct with any number of nodes, and after changes
 * without the actors.
 */
import { Context, Effect, Layer } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { makeBatcher, type SubmitToBatch } from "../../platform/postgres/driver/Batcher.ts"
import { columns } from "../../platform/postgres/driver/Parameters.ts"
import { Postgres } from "../../platform/postgres/driver/Postgres.ts"
import { mayTakeLong } from "../../platform/postgres/driver/Transactions.ts"
import type { Nullable } from "../../platform/postgres/queries/Sql.ts"
import type { LeaseRecord, Revisions } from "../model/LicenseRecords.ts"
import { type AssignmentRow, assignmentColumns } from "../rows/AssignmentRows.ts"
import {
  committedStateOf,
  type DeviceRow,
  deviceColumns,
  endsAfter,
  hasManyDevices,
  type LicenseOwned,
  type LoadedLicense,
  leaseColumns,
  licenseDependencies,
  sharedOf as readShared,
  revisionColumns,
  type Shared,
  type SharedRow,
  sharedColumns
} from "../rows/LicenseRows.ts"
import { licenseColumns } from "../rows/LicenseTable.ts"
import type { CommittedState } from "../state/CommittedState.ts"

/** Licenses in one statement. */
const batchMax = 256

export class LicenseStore extends Context.Service<
  LicenseStore,
  {
    load(licenseId: string): Effect.Effect<CommittedState | undefined>
    /** Like `load`, within the running transaction, which has locked the license. */
    loadInTransaction(licenseId: string): Effect.Effect<CommittedState | undefined>
    /** Many licenses, in the order of the ids, within the running transaction. */
    loadManyInTransaction(ids: ReadonlyArray<string>): Effect.Effect<ReadonlyArray<CommittedState | undefined>>
    /** The same without their features, devices and leases: for decisions that need none of them and are not committed. */
    loadBareInTransaction(ids: ReadonlyArray<string>): Effect.Effect<ReadonlyArray<CommittedState | undefined>>
    readonly revisions: SubmitToBatch<string, Revisions | undefined>
    revisionsInTransaction(licenseId: string): Effect.Effect<Revisions | undefined>
    /** The license that has the key with this hash (SHA-256 as hex). */
    licenseIdOf(keyHash: string): Effect.Effect<string | undefined>
  }
>()("licensing/licensing/lookups/LicenseStore") {
  static readonly layer = Layer.effect(
    LicenseStore,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { pipelined } = yield* Postgres
      const sharedOf = makeSharing()
      const concurrency = 1
      const load = yield* makeBatcher({
        name: "licenses.load",
        concurrency,
        batchMax,
        run: (ids: ReadonlyArray<string>) => Effect.orDie(inOneSnapshot(pipelined(loadAll(sql, sharedOf, ids))))
      })
      const loadManyInTransaction = (ids: ReadonlyArray<string>) => Effect.orDie(loadAll(sql, sharedOf, ids))
      const loadBareInTransaction = (ids: ReadonlyArray<string>) => Effect.orDie(loadBare(sql, sharedOf, ids))
      const loadInTransaction = (licenseId: string) =>
        Effect.map(loadManyInTransaction([licenseId]), ([state]) => state)
      const revisionsInTransaction = (licenseId: string) =>
        Effect.map(revisionsOf(sql)([licenseId]), ([revisions]) => revisions)
      const { submit: revisions } = yield* makeBatcher({
        name: "licenses.revisions",
        concurrency,
        batchMax,
        run: revisionsOf(sql)
      })
      const licenseIdOf = yield* makeBatcher({ name: "licenses.find", concurrency, batchMax, run: licenseIdsOf(sql) })
      return LicenseStore.of({
        load: load.request,
        loadInTransaction,
        loadManyInTransaction,
        loadBareInTransaction,
        revisions,
        revisionsInTransaction,
        licenseIdOf: licenseIdOf.request
      })
    })
  )
}

type SharedOf = (row: SharedRow) => Shared

/** Policies whose records are kept for licenses that are loaded later. */
const sharedMax = 1_000

/** A policy's record takes as much memory as a license's: licenses that are loaded at the same revisions share it. */
const makeSharing = (): SharedOf => {
  const known = new Map<string, Shared>()
  return (row) => {
    const last = known.get(row.policy_id)
    if (last?.policy.revision === row.policy_revision && last.catalogRevision === row.catalog_revision) return last
    if (known.size >= sharedMax) known.clear()
    const shared = readShared(row)
    known.set(row.policy_id, shared)
    return shared
  }
}

/** Reads everything in one snapshot, so that a newly loaded state needs no check of its revisions. */
export const inOneSnapshot = Effect.provideService(SqlClient.BeginTransaction, "BEGIN ISOLATION LEVEL REPEATABLE READ")

const loadAll = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, sharedOf: SharedOf, ids: ReadonlyArray<string>) {
  const idList = columns.text(ids)
  // The devices of one license after another: a plan for small tables would compare each device with all licenses.
  const few = sql`(SELECT id FROM unnest(${idList}) AS l (id) WHERE NOT ${sql.literal(hasManyDevices)} OFFSET 0) AS l`
  const [_, licenses, sharedBy, assignments, devices, leases] = yield* Effect.all(
    [
      mayTakeLong(sql),
      licenseRows(
        sql,
        ids,
        `${hasManyDevices} AS has_many_devices,
          (SELECT min(${endsAfter}) FROM leases e WHERE e.license_id = l.id AND e.status = 'live') AS lapsing_from`
      ),
      sharedByPolicy(sql, sharedOf, ids),
      sql<AssignmentRow>`
            SELECT ${sql.literal(assignmentColumns)}
            FROM license_features a JOIN features f ON f.id = a.feature_id WHERE a.license_id = ANY(${idList})`,
      sql<DeviceRow & LicenseOwned>`
            SELECT ${sql.literal(deviceColumns)} FROM ${few} CROSS JOIN LATERAL (
              SELECT * FROM devices WHERE license_id = l.id OFFSET 0) AS d`,
      sql<Nullable<LeaseRecord> & LicenseOwned>`
            SELECT ${sql.literal(leaseColumns)} FROM ${few} CROSS JOIN LATERAL (
              SELECT * FROM leases WHERE license_id = l.id AND status = 'live' OFFSET 0) AS e`
    ],
    { concurrency: "unbounded" }
  )
  const byLicense = <Row extends LicenseOwned>(rows: ReadonlyArray<Row>) => Map.groupBy(rows, (row) => row.license_id)
  const [assignmentsOf, devicesOf, leasesOf] = [byLicense(assignments), byLicense(devices), byLicense(leases)]
  return inOrder(ids, licenses, (row) =>
    committedStateOf(
      row,
      sharedBy.get(row.policy_id)!,
      assignmentsOf.get(row.id) ?? [],
      devicesOf.get(row.id) ?? [],
      leasesOf.get(row.id) ?? []
    )
  )
})

const loadBare = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  sharedOf: SharedOf,
  ids: ReadonlyArray<string>
) {
  const rows = licenseRows(sql, ids, "FALSE AS has_many_devices, NULL::timestamptz AS lapsing_from")
  const [, licenses, sharedBy] = yield* Effect.all([mayTakeLong(sql), rows, sharedByPolicy(sql, sharedOf, ids)], {
    concurrency: "unbounded"
  })
  return inOrder(ids, licenses, (row) => committedStateOf(row, sharedBy.get(row.policy_id)!, [], [], []))
})

/** Licenses with columns about what belongs to them. */
const licenseRows = (sql: SqlClient.SqlClient, ids: ReadonlyArray<string>, belongings: string) => sql<LoadedLicense>`
  SELECT ${sql.literal(`${licenseColumns}, ${belongings}`)} FROM licenses l WHERE l.id = ANY(${columns.text(ids)})`

/** The policies and products of licenses. They are half of the columns, and the same for most licenses that are read together. */
const sharedByPolicy = (
  sql: SqlClient.SqlClient,
  sharedOf: SharedOf,
  ids: ReadonlyArray<string>
): Effect.Effect<ReadonlyMap<string, Shared>, SqlError.SqlError> =>
  Effect.map(
    sql<SharedRow>`
      SELECT ${sql.literal(sharedColumns)} FROM policies p JOIN products ON products.id = p.product_id
      WHERE p.id IN (SELECT policy_id FROM licenses WHERE id = ANY(${columns.text(ids)}))`,
    (rows) => new Map(rows.map((row) => [row.policy_id, sharedOf(row)]))
  )

/** What belongs to the ids, in their order. */
const inOrder = <Row extends { readonly id: string }, A>(
  ids: ReadonlyArray<string>,
  rows: ReadonlyArray<Row>,
  of: (row: Row) => A
): ReadonlyArray<A | undefined> => {
  const rowsById = new Map(rows.map((row) => [row.id, row]))
  return ids.map((id) => {
    const row = rowsById.get(id)
    return row && of(row)
  })
}

export const revisionsOf = (sql: SqlClient.SqlClient) =>
  Effect.fnUntraced(function* (ids: ReadonlyArray<string>) {
    const rows = yield* sql<Revisions & { readonly id: string }>`
      SELECT l.id, ${sql.literal(revisionColumns)} FROM licenses l ${sql.literal(licenseDependencies)}
      WHERE l.id = ANY(${columns.text(ids)})`
    return inOrder(ids, rows, (row) => row)
  }, Effect.orDie)

const licenseIdsOf = (sql: SqlClient.SqlClient) =>
  Effect.fnUntraced(function* (hashes: ReadonlyArray<string>) {
    const rows = yield* sql<{ readonly hash: string; readonly id: string }>`
      SELECT encode(key_hash, 'hex') AS hash, id FROM licenses
      WHERE key_hash = ANY(${columns.bytea(hashes.map((hash) => Buffer.from(hash, "hex")))})`
    const idsByHash = new Map(rows.map((row) => [row.hash, row.id]))
    return hashes.map((hash) => idsByHash.get(hash))
  }, Effect.orDie)
