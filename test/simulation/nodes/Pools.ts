/** The connection pools of simulations, which run in turn on one database. */
import { Context, Effect, Layer, type Redacted } from "effect"
import { SqlClient } from "effect/sql"
import { Postgres } from "../../../src/platform/postgres/driver/Postgres.ts"
import { installChangeTriggers } from "../requests/InitialData.ts"
import type { Pools } from "./Cluster.ts"
import { installStandby } from "./Standby.ts"

const nodesMax = 3

/** A held transaction keeps its connection, and so do nodes presumed dead. */
const connectionsMax = 48

/** No timeout by the machine's clock: it may pause for any time. */
const noTimeouts = { statementTimeoutMillis: 0, idleInTransactionMillis: 0 }

const open = (url: Redacted.Redacted<string>, applicationName: string) =>
  Layer.build(Layer.fresh(Postgres.layer({ url, applicationName, maxConnections: connectionsMax, ...noTimeouts })))

export const openPools = Effect.fnUntraced(function* (url: Redacted.Redacted<string>) {
  const observer = Context.get(yield* open(url, "simulator"), SqlClient.SqlClient)
  yield* Effect.provideService(Effect.andThen(installChangeTriggers, installStandby), SqlClient.SqlClient, observer)
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
