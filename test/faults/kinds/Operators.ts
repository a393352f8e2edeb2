/** What operators and other users of the database do to it, and what receivers of webhooks do. */
import { Effect, Exit, Scope } from "effect"
import { openConnection } from "../../../src/platform/postgres/driver/Postgres.ts"
import { execute, type PostgresServer } from "../installation/PostgresServer.ts"
import { honest, type Receiver } from "../installation/Receiver.ts"
import { type Fault, nothingWrong, type Struck } from "./Fault.ts"

/** Opens connections in a scope of their own, and returns the effect that closes it. */
const holding = Effect.fnUntraced(function* (acquire: Effect.Effect<unknown, unknown, Scope.Scope>) {
  const scope = yield* Scope.make()
  yield* Effect.ignore(Scope.provide(acquire, scope))
  return Effect.as(Scope.close(scope, Exit.void), nothingWrong)
})

/** A transaction that locks a row and stays open. */
const lock = ({ url }: PostgresServer, query: string, values: ReadonlyArray<unknown> = []) =>
  holding(
    Effect.gen(function* () {
      const connection = yield* openConnection(url)
      yield* connection.queryValues("BEGIN", [], false)
      yield* connection.queryValues(query, values)
    })
  )

const lockLicense: Fault = {
  name: "a license's row is locked",
  lasts: [500, 7_000],
  begin: ({ installation: { postgres }, licenses, random }) =>
    lock(postgres, "SELECT id FROM licenses WHERE id = $1 FOR UPDATE", [random.pick(licenses).id])
}

const lockCounter: Fault = {
  name: "the event counter is locked",
  lasts: [300, 6_000],
  begin: ({ installation: { postgres } }) => lock(postgres, "SELECT last FROM event_sequence FOR UPDATE")
}

/** Ends the connections of all nodes. */
const endAll = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
  WHERE application_name LIKE 'licensing%' AND pid <> pg_backend_pid()`

/** More than the server has. */
const connectionsMax = 150

/** Takes every connection that is left, and those that nodes lose meanwhile. */
const takeConnections = ({ postgres }: Struck["installation"]) =>
  holding(
    Effect.gen(function* () {
      const first = yield* openConnection(postgres.url)
      yield* first.queryValues(endAll)
      for (let opened = 0; opened < connectionsMax; opened++) yield* openConnection(postgres.url)
    })
  )

const exhaustConnections: Fault = {
  name: "no connection to PostgreSQL is left",
  lasts: [500, 4_000],
  begin: ({ installation }) => takeConnections(installation)
}

const endConnections: Fault = {
  name: "all connections are ended by the server",
  lasts: [200, 1_000],
  begin: ({ installation: { postgres } }) =>
    holding(Effect.flatMap(openConnection(postgres.url), (connection) => connection.queryValues(endAll)))
}

const readOnly: Fault = {
  name: "PostgreSQL takes no writes",
  lasts: [300, 3_000],
  begin: ({ installation: { postgres } }) => {
    const set = (value: string) =>
      execute(postgres.url, `ALTER SYSTEM SET default_transaction_read_only = ${value}`, "SELECT pg_reload_conf()")
    return Effect.as(set("on"), Effect.as(set("off"), nothingWrong))
  }
}

const lies: ReadonlyArray<Receiver["answer"]> = [
  (response) => void response.writeHead(500).end(),
  (response) => void response.socket?.resetAndDestroy(),
  (response) => void response.writeHead(200).write("never ends"),
  () => {}
]

const lyingReceiver: Fault = {
  name: "a webhook receiver fails",
  lasts: [1_000, 3_000],
  begin: ({ installation: { receivers }, random }) =>
    Effect.sync(() => {
      receivers.lying.answer = (response) => random.pick(lies)(response)
      return Effect.sync(() => {
        receivers.lying.answer = honest
        return nothingWrong
      })
    })
}

export const operatorFaults: ReadonlyArray<Fault> = [
  lockLicense,
  lockCounter,
  exhaustConnections,
  endConnections,
  readOnly,
  lyingReceiver
]
