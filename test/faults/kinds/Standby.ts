/** The primary dies, and its standby is promoted. */
import { rmSync } from "node:fs"
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { Clock, Effect, Scope } from "effect"
import { copyCluster, until } from "../../support/database/Replication.ts"
import { poll } from "../../support/rules/Poll.ts"
import type { Loss } from "../checks/Losses.ts"
import { query, readSequences, type Sequences } from "../checks/Rows.ts"
import type { Installation } from "../installation/Installation.ts"
import { makeLink } from "../installation/Link.ts"
import { execute, makePostgresServer, type PostgresServer } from "../installation/PostgresServer.ts"
import { type Fault, nothingWrong } from "./Fault.ts"

const streaming = "SELECT count(*) = 1 FROM pg_stat_replication WHERE state = 'streaming'"

/** A copy of the running primary that follows it through a port. */
const makeStandby = Effect.fnUntraced(function* ({ folder, postgres, scope }: Installation, port: number) {
  const cluster = yield* copyCluster(folder, postgres)
  const conninfo = `host=127.0.0.1 port=${port} user=postgres password=${postgres.password} application_name=standby`
  const standby = yield* Scope.provide(makePostgresServer(folder, cluster, { primary_conninfo: conninfo }), scope)
  yield* until(postgres.url, streaming)
  return standby
})

/** The old primary is off before; the links lead to the new one, as an address that moves. */
const promote = Effect.fnUntraced(function* (installation: Installation, standby: PostgresServer) {
  const { nodes, postgres: old } = installation
  yield* old.signal("SIGKILL", "all")
  yield* execute(standby.url, "SELECT pg_promote(true, 60)")
  installation.postgres = standby
  yield* Effect.forEach(nodes, ({ database }) => database.lead(standby.port))
  yield* Effect.sync(() => rmSync(old.cluster, { recursive: true, force: true }))
})

const failOver: Fault = {
  name: "fail over to a synchronous standby",
  lasts: [300, 1_500],
  begin: ({ installation }) =>
    Effect.gen(function* () {
      const { postgres } = installation
      const standby = yield* makeStandby(installation, postgres.port)
      yield* execute(postgres.url, "ALTER SYSTEM SET synchronous_standby_names = 'standby'", "SELECT pg_reload_conf()")
      yield* until(postgres.url, "SELECT count(*) = 1 FROM pg_stat_replication WHERE sync_state = 'sync'")
      return Effect.as(promote(installation, standby), nothingWrong)
    }).pipe(Effect.orDie, Effect.provide(NodeFileSystem.layer))
}

/** The standby waits for more of the log: of the last record it may have received a part. */
const hasReplayed = `
  SELECT count(*) = 1 FROM pg_stat_activity WHERE backend_type = 'startup' AND wait_event = 'RecoveryWalStream'`

/** All events and ledger rows up to the given numbers. */
const digestOf = (postgres: PostgresServer, { events, ledger }: Sequences) =>
  query(
    postgres,
    `SELECT jsonb_build_array(
      (SELECT md5(string_agg(e::text, '' ORDER BY sequence)) FROM events e WHERE sequence <= $1),
      (SELECT md5(string_agg(l::text, '' ORDER BY sequence)) FROM usage_ledger l WHERE sequence <= $2))::text`,
    [events, ledger]
  )

/**
 * Commits do not wait for the standby. First it has all that was acknowledged, then nothing more reaches it until the primary dies.
 * What was acknowledged meanwhile may be lost; what the standby has received may not.
 */
const failOverLosing: Fault = {
  name: "fail over to a standby that lags",
  lasts: [300, 1_500],
  begin: ({ installation }) =>
    Effect.gen(function* () {
      const { losses, postgres: old, scope } = installation
      const link = yield* Scope.provide(makeLink(old.port), scope)
      const standby = yield* makeStandby(installation, link.port)
      const never = Number.POSITIVE_INFINITY
      const loss: Loss = { from: yield* Clock.currentTimeMillis, until: never, events: never }
      losses.push(loss)
      const flushed = yield* query(old, "SELECT to_jsonb(pg_current_wal_flush_lsn()::text)::text", [])
      yield* until(standby.url, `SELECT pg_last_wal_replay_lsn() >= '${flushed}'`)
      yield* link.stall("responses")
      return Effect.gen(function* () {
        yield* until(standby.url, hasReplayed)
        const received = yield* readSequences(standby)
        loss.events = received.events
        yield* poll(readSequences(old), ({ events }) => events > received.events)
        const before = yield* digestOf(old, received)
        yield* promote(installation, standby)
        loss.until = yield* Clock.currentTimeMillis
        yield* link.reset
        const after = yield* digestOf(standby, received)
        return JSON.stringify(after) === JSON.stringify(before)
          ? nothingWrong
          : [`the events or the ledger up to ${JSON.stringify(received)} are not those that the standby had received`]
      }).pipe(Effect.orDie)
    }).pipe(Effect.orDie, Effect.provide(NodeFileSystem.layer))
}

export const standbyFaults: ReadonlyArray<Fault> = [failOver, failOverLosing]
