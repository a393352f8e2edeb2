/** The sweeps of a node, and random licenses written past all services for them to find. */
import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import { formatTimestamp } from "../../src/api/Timestamp.ts"
import { EventLog } from "../../src/events/EventLog.ts"
import { ExpirySweep } from "../../src/licenses/sweeps/ExpirySweep.ts"
import { HeartbeatSweep } from "../../src/licenses/sweeps/HeartbeatSweep.ts"
import { LeaseSweep } from "../../src/licenses/sweeps/LeaseSweep.ts"
import { json } from "../../src/postgres/Parameters.ts"
import { sha256Hex } from "../../src/signing/Digest.ts"
import { noon, type Rows, type RowsInput, rowsOf } from "./Licenses.ts"
import { makeNode } from "./Nodes.ts"

const layerSweeps = Layer.mergeAll(ExpirySweep.layer, LeaseSweep.layer, HeartbeatSweep.layer).pipe(
  Layer.provide(EventLog.layer)
)

/** The passes of a node of its own, on the database at hand. */
export const makeSweeps = Effect.map(Layer.build(Layer.fresh(layerSweeps)), (node) => ({
  expiry: Context.get(node, ExpirySweep).pass,
  lease: Context.get(node, LeaseSweep).pass,
  heartbeat: Context.get(node, HeartbeatSweep).pass
}))

const instants = /_at$/

/** A record as JSON that the database reads a row from. */
const rowOf = (record: object) =>
  Object.fromEntries(
    Object.entries(record).map(([column, value]) => [
      column,
      typeof value === "number" && instants.test(column) ? formatTimestamp(value) : value
    ])
  )

const bytea = (hex: string) => `\\x${hex}`

const insertAll = Effect.fnUntraced(function* (table: string, records: ReadonlyArray<object>) {
  if (records.length === 0) return
  const sql = yield* SqlClient.SqlClient
  const name = sql.literal(table)
  const columns = sql.csv(Array.from(new Set(records.flatMap(Object.keys)), (column) => sql`${sql(column)}`))
  yield* sql`
    INSERT INTO ${name} (${columns})
    SELECT ${columns} FROM jsonb_populate_recordset(NULL::${name}, ${json(records.map(rowOf))})`
})

/** Writes licenses with their policies, devices and leases, each under ids of its own; the ids of the licenses. */
export const storeRows = Effect.fnUntraced(function* (name: string, worlds: ReadonlyArray<Rows>) {
  const own = (index: number, id: string) => `${id}_${name}_${index}`
  const { created_at, updated_at } = worlds[0]!.license
  yield* insertAll("products", [
    { id: `prod_${name}`, name, code: name, metadata: {}, catalog_revision: 1, created_at, updated_at }
  ])
  const each = (rowsOf: (world: Rows, index: number) => ReadonlyArray<object>) => worlds.flatMap(rowsOf)
  const policies = each(({ policy }, index) => [
    {
      ...policy,
      id: own(index, "pol"),
      product_id: `prod_${name}`,
      name,
      code: `${index}`,
      metadata: {},
      created_at,
      updated_at
    }
  ])
  yield* insertAll("policies", policies)
  const licenses = each(({ license }, index) => [
    {
      ...license,
      id: own(index, "lic"),
      product_id: `prod_${name}`,
      policy_id: own(index, "pol"),
      key_hash: bytea(sha256Hex(own(index, "key")))
    }
  ])
  yield* insertAll("licenses", licenses)
  const devices = each((world, index) =>
    world.devices.map((device) => ({ ...device, id: own(index, device.id), license_id: own(index, "lic") }))
  )
  yield* insertAll("devices", devices)
  const leases = each((world, index) =>
    world.leases.map((lease) => ({
      ...lease,
      id: own(index, lease.id),
      license_id: own(index, "lic"),
      device_id: own(index, lease.device_id),
      token_hash: bytea(sha256Hex(own(index, lease.token_hash)))
    }))
  )
  yield* insertAll("leases", leases)
  return worlds.map((_, index) => own(index, "lic"))
})

/** Two nodes: the actors and the passes of each. */
export const twoNodes = Effect.gen(function* () {
  return { nodes: [yield* makeNode, yield* makeNode], sweeps: [yield* makeSweeps, yield* makeSweeps] } as const
})

let stores = 0

/** Licenses made of plain records; what commands need to speak of each. */
export const storeMany = Effect.fnUntraced(function* (count: number, rows: RowsInput) {
  const name = `s${++stores}`
  const ids = yield* storeRows(
    name,
    Array.from({ length: count }, () => rowsOf(rows))
  )
  return ids.map((license, index) => ({ license, keyHash: sha256Hex(`key_${name}_${index}`) }))
})

export const storeOne = (rows: RowsInput) => Effect.map(storeMany(1, rows), ([license]) => license!)

/** Runs a test that begins at noon. Its clock is its own: connections that live on it would age by decades when it is set. */
export const fromNoon = <A, E, R>(test: Effect.Effect<A, E, R>) =>
  TestClock.setTime(noon).pipe(Effect.andThen(test), Effect.provide(TestClock.layer()))
