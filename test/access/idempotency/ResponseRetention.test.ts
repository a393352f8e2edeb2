import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import { ResponseRetention } from "../../../src/access/idempotency/ResponseRetention.ts"
import { Database } from "../../support/database/Database.ts"

layer(Layer.provideMerge(ResponseRetention.layer, Database.layer))("Stored responses", (it) => {
  it.effect("are removed after their retention, in batches; renewals' are kept permanently", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      yield* TestClock.setTime(1_000_000)
      const insertResponses = (first: number, count: number, expiresSeconds: number | null) => sql`
        INSERT INTO idempotent_answers (scope, body_hash, status, body, sealed, expires_at, created_at)
        SELECT convert_to((${first} + n)::text, 'UTF8'), '', 200, '', false, to_timestamp(${expiresSeconds}::int8), to_timestamp(0)
        FROM generate_series(1, ${count}::int4) AS n`
      yield* insertResponses(0, 12_000, 999)
      yield* insertResponses(20_000, 1, 1_000)
      yield* insertResponses(30_000, 2, 1_001)
      yield* insertResponses(40_000, 3, null)
      yield* (yield* ResponseRetention).pass
      const remaining = yield* sql<{ scope: string }>`
        SELECT convert_from(scope, 'UTF8') AS scope FROM idempotent_answers ORDER BY scope`
      assert.deepStrictEqual(
        remaining.map(({ scope }) => scope),
        ["30001", "30002", "40001", "40002", "40003"]
      )
    })
  )
})
