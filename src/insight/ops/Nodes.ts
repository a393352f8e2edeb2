/**
 * The nodes of this database. Each writes its row every few seconds, and removes it when it stops. The rows decide nothing: owners of
 * licenses are chosen by the cluster's own rows.
 */
import { Clock, Context, Effect, Layer, Schema } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { Identifiers } from "../../contract/api/Identifier.ts"
import { Timestamp } from "../../contract/api/Timestamp.ts"
import { version } from "../../contract/Version.ts"
import { Journal } from "../../licensing/engine/Journal.ts"
import { Settings } from "../../platform/config/Config.ts"
import { instant } from "../../platform/postgres/driver/Parameters.ts"
import { decodeRows } from "../../platform/postgres/queries/Sql.ts"
import type { OpsNodes } from "./Ops.ts"

/** Three signs of life, and some time for a slow database. */
const silentMillis = 20_000
/** A node that crashed is shown for this long. */
const keptMillis = 3_600_000
/** Far more nodes than one database can serve. */
const nodesMax = 100

const NodeRow = Schema.Struct({
  id: Schema.String,
  epoch: Schema.String,
  version: Schema.String,
  address: Schema.optionalKey(Schema.String),
  started_at: Timestamp,
  heard_at: Timestamp
})

const decodeNodes = decodeRows(NodeRow)

/** Reads the nodes, also where no node runs. */
export const readNodes = Effect.fn("Nodes.read")(function* (
  sql: SqlClient.SqlClient
): Effect.fn.Return<OpsNodes, SqlError.SqlError> {
  const now = yield* Clock.currentTimeMillis
  const rows = yield* decodeNodes(sql`
    SELECT id, epoch, version, address, started_at, heard_at FROM nodes WHERE heard_at > ${instant(now - keptMillis)}
    ORDER BY started_at, id LIMIT ${nodesMax}`)
  const isRunning = ({ heard_at }: typeof NodeRow.Type) => now - heard_at <= silentMillis
  const owned = yield* shardsOf(rows.filter(isRunning).flatMap(({ address }) => address ?? []))
  return {
    nodes: rows.map((row) => {
      const { address, heard_at, ...node } = row
      const status = isRunning(row) ? ("running" as const) : ("silent" as const)
      // Another node may run at the address of one that crashed.
      const owned_shards = isRunning(row) ? (owned.get(address ?? "") ?? 0) : 0
      const place = address === undefined ? {} : { address, owned_shards }
      return { ...node, status, last_heard_at: heard_at, ...place }
    })
  }
})

/** The number of shards of each address. The cluster's code is loaded only where licenses have owners. */
const shardsOf = Effect.fnUntraced(function* (addresses: ReadonlyArray<string>) {
  const owned = new Map<string, number>()
  if (addresses.length === 0) return owned
  const { countShards } = yield* Effect.promise(() => import("../../licensing/cluster/Membership.ts"))
  return countShards(addresses)
})

export class Nodes extends Context.Service<
  Nodes,
  {
    readonly list: Effect.Effect<OpsNodes>
    /** The worker's pass: a sign of life, and the removal of rows that are no longer shown. */
    readonly pass: Effect.Effect<void, SqlError.SqlError>
  }
>()("licensing/insight/ops/Nodes") {
  static readonly layer = Layer.effect(
    Nodes,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { epoch } = yield* Journal
      const { cluster, clusterAddress } = yield* Settings
      const id = yield* (yield* Identifiers).make("node")
      const address = cluster && clusterAddress !== undefined ? `${clusterAddress.host}:${clusterAddress.port}` : null
      const started = yield* Clock.currentTimeMillis

      const pass = Effect.gen(function* () {
        const now = yield* Clock.currentTimeMillis
        yield* sql`
          INSERT INTO nodes (id, epoch, version, address, started_at, heard_at)
          VALUES (${id}, ${epoch.current}, ${version}, ${address}, ${instant(started)}, ${instant(now)})
          ON CONFLICT (id) DO UPDATE SET epoch = excluded.epoch, heard_at = excluded.heard_at`
        yield* sql`DELETE FROM nodes WHERE heard_at <= ${instant(now - keptMillis)}`
      })
      yield* Effect.addFinalizer(() => Effect.ignore(sql`DELETE FROM nodes WHERE id = ${id}`))
      return Nodes.of({ list: Effect.orDie(readNodes(sql)), pass: Effect.withSpan(pass, "Nodes.pass") })
    })
  )
}
