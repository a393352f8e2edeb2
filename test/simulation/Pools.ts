/** The pools over which simulations run, one after the other, on one database. */
import { Context, Effect, Layer, type Redacted } from "effect"
import { SqlClient } from "effect/sql"
import { Postgres } from "../../src/postgres/Postgres.ts"
import type { Pools } from "./Cluster.ts"
import { installChangeTriggers } from "./InitialData.ts"

const nodesMax = 3

/** A transaction that is held at the gate keeps its connection, and nodes that were taken for dead hold some as well. */
const connectionsMax = 48

/** Nothing here goes by the machine's time: it may stand still for as long as it likes. */
const statementTimeoutMillis = 0

const open = (url: Redacted.Redacted<string>, applicationName: string) =>
  Layer.build(
    Layer.fresh(Postgres.layer({ url, applicationName, maxConnections: connectionsMax, statementTimeoutMillis }))
  )

export const openPools = Effect.fnUntraced(function* (url: Redacted.Redacted<string>) {
  const observer = Context.get(yield* open(url, "simulator"), SqlClient.SqlClient)
  yield* Effect.provideService(installChangeTriggers, SqlClient.SqlClient, observer)
  const names = Array.from({ length: nodesMax }, (_, index) => `node${index}`)
  const nodes = yield* Effect.forEach(names, (name) =>
    Effect.map(open(url, name), (pool) => ({
      name,
      sql: Context.get(pool, SqlClient.SqlClient),
      postgres: Context.get(pool, Postgres)
    }))
  )
  return { nodes, observer } satisfies Pools as Pools
})
