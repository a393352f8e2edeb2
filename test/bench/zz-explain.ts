import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { EmbeddedPostgres } from "../../src/postgres/EmbeddedPostgres.ts"
import { run } from "../../src/postgres/Migrations.ts"
import { Postgres } from "../../src/postgres/Postgres.ts"
import { mkdtempSync, chmodSync, readFileSync } from "node:fs"
import * as NFS from "@effect/platform-node/NodeFileSystem"
const dir = mkdtempSync("/tmp/licensing-measure-"); chmodSync(dir, 0o711)
const program = Effect.gen(function* () {
  const url = Context.get(yield* Layer.build(EmbeddedPostgres.layer({ directory: dir, settings: { fsync: "off", synchronous_commit: "off" } as any })), EmbeddedPostgres).url
  yield* run({ url })
  const db = yield* Layer.build(Postgres.layer({ url, maxConnections: 1 }))
  yield* Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    for (const text of readFileSync(process.argv[2]!, "utf8").split(";;")) {
      const out = yield* sql.unsafe(text)
      for (const row of out as any) if (row["QUERY PLAN"]) console.log(row["QUERY PLAN"])
      if (text.includes("EXPLAIN")) console.log("--------")
    }
  }).pipe(Effect.provide(db))
})
await Effect.runPromise(Effect.scoped(program).pipe(Effect.provide(NFS.layer)) as any)
