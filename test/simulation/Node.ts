/**
 * A node of the service as far as licenses, catalog edits and sweeps go: the production services over a pool of its own, each
 * of whose statements and transactions goes through the gate.
 */
import { Clock, Context, Effect, Exit, Layer, Scope } from "effect"
import { SqlClient, type SqlConnection, type SqlError } from "effect/sql"
import { Identifiers } from "../../src/api/Identifier.ts"
import { Features } from "../../src/catalog/features/Features.ts"
import { Policies } from "../../src/catalog/policies/Policies.ts"
import { Products } from "../../src/catalog/products/Products.ts"
import { Versions } from "../../src/catalog/versions/Versions.ts"
import { EventLog } from "../../src/events/EventLog.ts"
import { UnlockedAttempts } from "../../src/licenses/engine/CommandBatch.ts"
import { LicenseActors } from "../../src/licenses/engine/LicenseActors.ts"
import { LicenseLookups } from "../../src/licenses/engine/LicenseLookups.ts"
import { LicenseStore } from "../../src/licenses/engine/LicenseStore.ts"
import { ExpirySweep } from "../../src/licenses/sweeps/ExpirySweep.ts"
import { HeartbeatSweep } from "../../src/licenses/sweeps/HeartbeatSweep.ts"
import { LeaseSweep } from "../../src/licenses/sweeps/LeaseSweep.ts"
import { Postgres } from "../../src/postgres/Postgres.ts"
import type { Gate } from "./Gate.ts"
import * as LockedJournal from "./LockedJournal.ts"
import { Locking, Passing } from "./LockedJournal.ts"

/** A pool of connections, which outlives the nodes that use it one after the other. */
export interface Place {
  readonly name: string
  readonly sql: SqlClient.SqlClient
  readonly postgres: Postgres["Service"]
}

export type Services = LicenseActors | Policies | Features | Versions | ExpirySweep | HeartbeatSweep | LeaseSweep

export interface Node {
  readonly name: string
  readonly place: Place
  /** Runs what is asked of the node, as its own. */
  readonly within: <A, E>(effect: Effect.Effect<A, E, Services>) => Effect.Effect<A, E>
  /** Stops it: whatever it was doing is interrupted. */
  readonly close: Effect.Effect<void>
}

/** What the gate needs beside the pool of a node. */
interface Environment {
  readonly gate: Gate
  /** Ends the connection of a process of the database. */
  readonly terminate: (pid: number) => Effect.Effect<void>
}

type Run = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>

/** `sql.withTransaction` or `pipelined`, through the gate. */
const gated =
  ({ gate, terminate }: Environment, { name, sql }: Place, what: string, isRetried: boolean, base: Run) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>) => {
    // Runs in the transaction whose connection it breaks.
    const cut = Effect.flatMap(Effect.orDie(sql<{ readonly pid: number }>`SELECT pg_backend_pid() AS pid`), ([row]) =>
      terminate(row!.pid)
    )
    // A machine that stood still must not end a transaction that is held, or one that waits for its locks.
    const patient = sql`
      SELECT set_config(name, '0', true) FROM unnest(ARRAY['idle_in_transaction_session_timeout', 'lock_timeout']) AS name`
    const from = { node: name, what, isRetried, cut }
    return Effect.flatMap(Locking, (isLocking) =>
      gate.transaction(isLocking && what === journal ? { ...from, what: "locked license", isLocking } : from, (pass) =>
        Effect.updateContext(
          base(Effect.andThen(patient, Effect.provideService(Effect.tap(effect, pass("commit")), Passing, pass))),
          // The gate's own connection stands in for one where there is no transaction: here begins a real one.
          (context: Context.Context<R>) => Context.omit(sql.transactionService)(context) as Context.Context<R>
        )
      )
    )
  }

const journal = "journal"

/** A connection of which every statement goes through the gate and runs on whichever the pool lends. */
const gatedConnection = ({ gate }: Environment, { name, sql }: Place): SqlConnection.Connection => {
  const read = <A>(use: (connection: SqlConnection.Connection) => Effect.Effect<A, SqlError.SqlError>) =>
    gate.read(name, "look-up", Effect.scoped(Effect.flatMap(sql.reserve, use)))
  return {
    execute: (text, parameters, transform) => read((one) => one.execute(text, parameters, transform)),
    executeRaw: (text, parameters) => read((one) => one.executeRaw(text, parameters)),
    executeValues: (text, parameters) => read((one) => one.executeValues(text, parameters)),
    executeValuesUnprepared: (text, parameters) => read((one) => one.executeValuesUnprepared(text, parameters)),
    executeUnprepared: (text, parameters, transform) =>
      read((one) => one.executeUnprepared(text, parameters, transform)),
    executeStream: () => {
      throw new Error("no statement of a license is a stream")
    }
  }
}

/** Ids in the order in which a node asks for them. */
const identifiersOf = (node: string) =>
  Layer.sync(Identifiers, () => {
    let made = 0
    return Identifiers.of({ make: (kind) => Effect.sync(() => `${kind}_${node}_${++made}`) })
  })

const layerOf = (environment: Environment, place: Place) => {
  const { postgres, sql } = place
  const gatedSql = Object.assign(
    ((...all: Parameters<SqlClient.SqlClient>) => sql(...all)) as SqlClient.SqlClient,
    sql,
    {
      withTransaction: gated(environment, place, "transaction", true, sql.withTransaction as Run)
    }
  )
  const client = Layer.succeed(SqlClient.SqlClient, gatedSql)
  // Every member by its name: one that is new must be led through the gate before anything may use it here.
  const { listen, notify, customPlanned, pools, url } = postgres
  const pipelining = (what: string, isRetried: boolean) => {
    const pipelined = gated(environment, place, what, isRetried, postgres.pipelined as Run)
    // To the server and to the caller the same as one transaction whose statements travel with its COMMIT.
    const inOneWrite = (statements: ReadonlyArray<Effect.Effect<unknown, SqlError.SqlError>>) =>
      pipelined(Effect.all(statements, { concurrency: "unbounded", discard: true }))
    return Layer.succeed(Postgres, Postgres.of({ pipelined, inOneWrite, listen, notify, customPlanned, pools, url }))
  }
  const actors = LicenseActors.layer.pipe(
    Layer.provide(LockedJournal.layer(environment.gate).pipe(Layer.provide(pipelining(journal, true)))),
    Layer.provide([LicenseStore.layer.pipe(Layer.provide(pipelining("load", false))), LicenseLookups.layer])
  )
  const catalog = Layer.mergeAll(Policies.layer, Features.layer, Versions.layer).pipe(
    Layer.provide(Products.layer),
    Layer.provide(identifiersOf(place.name))
  )
  const sweeps = Layer.mergeAll(ExpirySweep.layer, HeartbeatSweep.layer, LeaseSweep.layer).pipe(
    Layer.provide(pipelining("sweep", true))
  )
  return Layer.mergeAll(actors, catalog, sweeps).pipe(Layer.provide(EventLog.layer), Layer.provide(client))
}

/** `attemptsFree` is how often a round is decided before its license is locked for it, `ahead` how many milliseconds its clock is. */
export const makeNode = Effect.fnUntraced(function* (
  environment: Environment,
  place: Place,
  name: string,
  attemptsFree: number,
  ahead: number
) {
  const own = { ...place, name }
  const scope = yield* Scope.make()
  const outside = Context.make(Clock.Clock, environment.gate.clockOf(ahead)).pipe(
    Context.add(UnlockedAttempts, attemptsFree),
    Context.add(place.sql.transactionService, [gatedConnection(environment, own), 0])
  )
  const services = yield* Layer.buildWithScope(Layer.fresh(layerOf(environment, own)), scope).pipe(
    Effect.provideContext(outside)
  )
  const node: Node = {
    name,
    place,
    within: (effect) => Effect.provideContext(effect, Context.merge(outside, services)),
    close: Scope.close(scope, Exit.void)
  }
  return node
})
