/**
 * A node of the service, limited to licenses, catalog edits and sweeps: the production services over the node's pool. Every
 * statement and transaction goes through the scheduler.
 */
import { Clock, Context, Effect, Exit, Layer, Scope } from "effect"
import { SqlClient, type SqlConnection, type SqlError } from "effect/sql"
import { Identifiers } from "../../../src/contract/api/Identifier.ts"
import { EventLog } from "../../../src/ledger/events/EventLog.ts"
import { CounterPatience } from "../../../src/ledger/events/Numbering.ts"
import { UnlockedAttempts } from "../../../src/licensing/engine/CommandBatch.ts"
import { LicenseActors } from "../../../src/licensing/engine/LicenseActors.ts"
import { LicenseLookups } from "../../../src/licensing/lookups/LicenseLookups.ts"
import { LicenseStore } from "../../../src/licensing/lookups/LicenseStore.ts"
import { ExpirySweep } from "../../../src/licensing/sweeps/ExpirySweep.ts"
import { FeatureExpirySweep } from "../../../src/licensing/sweeps/FeatureExpirySweep.ts"
import { HeartbeatSweep } from "../../../src/licensing/sweeps/HeartbeatSweep.ts"
import { LeaseSweep } from "../../../src/licensing/sweeps/LeaseSweep.ts"
import { PeriodSweep } from "../../../src/licensing/sweeps/PeriodSweep.ts"
import { RequestTimeout } from "../../../src/platform/postgres/driver/Deadline.ts"
import { Postgres } from "../../../src/platform/postgres/driver/Postgres.ts"
import { Subscriptions } from "../../../src/vendor/commerce/Subscriptions.ts"
import { Features } from "../../../src/vendor/features/Features.ts"
import { Policies } from "../../../src/vendor/policies/Policies.ts"
import { PolicyFeatures } from "../../../src/vendor/policies/PolicyFeatures.ts"
import { Products } from "../../../src/vendor/products/Products.ts"
import { Versions } from "../../../src/vendor/versions/Versions.ts"
import { mailOff } from "../../support/database/MailOff.ts"
import * as LockedJournal from "./LockedJournal.ts"
import { Locking, Passing } from "./LockedJournal.ts"
import type { Scheduler } from "./Scheduler.ts"

/** A connection pool. It outlives the nodes that use it in turn. */
export interface NodePool {
  readonly name: string
  readonly sql: SqlClient.SqlClient
  readonly postgres: Postgres["Service"]
}

export type Services =
  | LicenseActors
  | Policies
  | PolicyFeatures
  | Features
  | Versions
  | ExpirySweep
  | FeatureExpirySweep
  | HeartbeatSweep
  | LeaseSweep
  | PeriodSweep
  | Subscriptions

export interface Node {
  readonly name: string
  readonly pool: NodePool
  /** Runs an effect with the node's services. */
  readonly within: <A, E>(effect: Effect.Effect<A, E, Services>) => Effect.Effect<A, E>
  /** Stops the node and interrupts its work. */
  readonly close: Effect.Effect<void>
}

/** What scheduled statements need beside the node's pool. */
interface Environment {
  readonly scheduler: Scheduler
  /** Ends the connection of a backend process. */
  readonly terminate: (pid: number) => Effect.Effect<void>
}

type Run = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>

/** `sql.withTransaction` or `pipelined`, through the scheduler. */
const scheduled =
  ({ scheduler, terminate }: Environment, { name, sql }: NodePool, what: string, isRetried: boolean, base: Run) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>) => {
    // Runs inside the transaction whose connection it ends.
    const cut = Effect.flatMap(Effect.orDie(sql<{ readonly pid: number }>`SELECT pg_backend_pid() AS pid`), ([row]) =>
      terminate(row!.pid)
    )
    // A stalled machine must not end a held transaction or one that waits for its locks.
    const patient = sql`
      SELECT set_config(name, '0', true) FROM unnest(ARRAY['idle_in_transaction_session_timeout', 'lock_timeout']) AS name`
    const from = { node: name, what, isRetried, cut }
    return Effect.flatMap(Locking, (isLocking) =>
      scheduler.transaction(
        isLocking && what === journal ? { ...from, what: "locked license", isLocking } : from,
        (pass) =>
          Effect.updateContext(
            base(Effect.andThen(patient, Effect.provideService(Effect.tap(effect, pass("commit")), Passing, pass))),
            // Outside a transaction the scheduled connection stands in; here a real transaction begins.
            (context: Context.Context<R>) => Context.omit(sql.transactionService)(context) as Context.Context<R>
          )
      )
    )
  }

const journal = "journal"

/** A connection that sends every statement through the scheduler and runs it on any connection of the pool. */
const scheduledConnection = ({ scheduler }: Environment, { name, sql }: NodePool): SqlConnection.Connection => {
  const read = <A>(use: (connection: SqlConnection.Connection) => Effect.Effect<A, SqlError.SqlError>) =>
    scheduler.read(name, "look-up", Effect.scoped(Effect.flatMap(sql.reserve, use)))
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

/** Ids numbered in the order in which a node requests them. */
const identifiersOf = (node: string) =>
  Layer.sync(Identifiers, () => {
    let made = 0
    return Identifiers.of({ make: (kind) => Effect.sync(() => `${kind}_${node}_${++made}`) })
  })

const layerOf = (environment: Environment, pool: NodePool) => {
  const { postgres, sql } = pool
  const scheduledSql = Object.assign(
    ((...all: Parameters<SqlClient.SqlClient>) => sql(...all)) as SqlClient.SqlClient,
    sql,
    {
      withTransaction: scheduled(environment, pool, "transaction", true, sql.withTransaction as Run)
    }
  )
  const client = Layer.succeed(SqlClient.SqlClient, scheduledSql)
  // Names every member: a new one must go through the scheduler before it can be used here.
  const { customPlanned, pools, url } = postgres
  const pipelining = (what: string, isRetried: boolean) => {
    const pipelined = scheduled(environment, pool, what, isRetried, postgres.pipelined as Run)
    // For the server and the caller the same as one transaction whose statements travel with its COMMIT.
    const inOneWrite = (statements: ReadonlyArray<Effect.Effect<unknown, SqlError.SqlError>>) =>
      pipelined(Effect.all(statements, { concurrency: "unbounded", discard: true }))
    return Layer.succeed(Postgres, Postgres.of({ pipelined, inOneWrite, customPlanned, pools, url }))
  }
  const actors = LicenseActors.layer.pipe(
    // Time leaps by days within a step, which no deadline survives.
    Layer.provide(Layer.succeed(RequestTimeout, Number.POSITIVE_INFINITY)),
    Layer.provide(LockedJournal.layer(environment.scheduler).pipe(Layer.provide(pipelining(journal, true)))),
    Layer.provide(Layer.merge(LicenseStore.layer, LicenseLookups.layer).pipe(Layer.provide(pipelining("load", false))))
  )
  const catalog = Layer.mergeAll(
    Policies.layer,
    PolicyFeatures.layer,
    Features.layer,
    Versions.layer,
    Subscriptions.layer
  ).pipe(Layer.provide(Products.layer), Layer.provide(identifiersOf(pool.name)))
  const sweeps = Layer.mergeAll(
    ExpirySweep.layer,
    FeatureExpirySweep.layer,
    HeartbeatSweep.layer,
    LeaseSweep.layer,
    PeriodSweep.layer
  ).pipe(Layer.provide(pipelining("sweep", true)))
  return Layer.mergeAll(actors, catalog, sweeps).pipe(Layer.provide([EventLog.layer, mailOff]), Layer.provide(client))
}

/**
 * `attemptsFree`: how often a batch is decided before its license is locked for it. `ahead`: milliseconds by which its clock is fast.
 * `isNumberedLater`: commits store their entries after any wait for the counter.
 */
export const makeNode = Effect.fnUntraced(function* (
  environment: Environment,
  pool: NodePool,
  name: string,
  {
    ahead,
    attemptsFree,
    isNumberedLater
  }: { readonly ahead: number; readonly attemptsFree: number; readonly isNumberedLater: boolean }
) {
  const own = { ...pool, name }
  const scope = yield* Scope.make()
  const outside = Context.make(Clock.Clock, environment.scheduler.clockOf(ahead)).pipe(
    Context.add(UnlockedAttempts, attemptsFree),
    Context.add(CounterPatience, isNumberedLater ? 0 : Number.POSITIVE_INFINITY),
    Context.add(pool.sql.transactionService, [scheduledConnection(environment, own), 0])
  )
  const services = yield* Layer.buildWithScope(Layer.fresh(layerOf(environment, own)), scope).pipe(
    Effect.provideContext(outside)
  )
  const node: Node = {
    name,
    pool,
    within: (effect) => Effect.provideContext(effect, Context.merge(outside, services)),
    close: Scope.close(scope, Exit.void)
  }
  return node
})
