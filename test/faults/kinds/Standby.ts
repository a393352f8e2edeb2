/** The primary dies, and its synchronous standby is promoted. */
import { rmSync } from "node:fs"
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { Effect, Scope } from "effect"
import { copyCluster, until } from "../../support/database/Replication.ts"
import type { Installation } from "../installation/Installation.ts"
import { execute, makePostgresServer } from "../installation/PostgresServer.ts"
import { type Fault, nothingWrong } from "./Fault.ts"

/** A copy of the running primary that each commit waits for. */
const makeStandby = Effect.fnUntraced(function* ({ folder, postgres, scope }: Installation) {
  const cluster = yield* copyCluster(folder, postgres)
  const conninfo = `host=127.0.0.1 port=${postgres.port} user=postgres password=${postgres.password} application_name=standby`
  const standby = yield* Scope.provide(makePostgresServer(folder, cluster, { primary_conninfo: conninfo }), scope)
  yield* until(postgres.url, "SELECT count(*) = 1 FROM pg_stat_replication WHERE state = 'streaming'")
  yield* execute(postgres.url, "ALTER SYSTEM SET synchronous_standby_names = 'standby'", "SELECT pg_reload_conf()")
  yield* until(postgres.url, "SELECT count(*) = 1 FROM pg_stat_replication WHERE sync_state = 'sync'")
  return standby
})

/** The old primary is off before; the links lead to the new one, as an address that moves. */
const failOver: Fault = {
  name: "fail over to a synchronous standby",
  lasts: [300, 1_500],
  begin: ({ installation }) =>
    Effect.gen(function* () {
      const { nodes, postgres: old } = installation
      const standby = yield* makeStandby(installation)
      return Effect.gen(function* () {
        yield* old.signal("SIGKILL", "all")
        yield* execute(standby.url, "SELECT pg_promote(true, 60)")
        installation.postgres = standby
        yield* Effect.forEach(nodes, ({ database }) => database.lead(standby.port))
        yield* Effect.sync(() => rmSync(old.cluster, { recursive: true, force: true }))
        return nothingWrong
      }).pipe(Effect.orDie)
    }).pipe(Effect.orDie, Effect.provide(NodeFileSystem.layer))
}

export const standbyFaults: ReadonlyArray<Fault> = [failOver]
