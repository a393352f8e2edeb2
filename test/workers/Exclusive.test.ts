/** Batches of background work and the rests between them. */
import { assert, layer } from "@effect/vitest"
import { Clock, Duration, Effect, Option } from "effect"
import { SqlClient } from "effect/sql"
import { exclusively } from "../../src/workers/Exclusive.ts"
import { Database } from "../support/Database.ts"

layer(Database.layer, { timeout: 60_000 })("a batch", (it) => {
  it.effect("is followed by a rest as long as it took", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      let nanos = 0n
      const rests: Array<number> = []
      const clock: Clock.Clock = Object.assign(Object.create(yield* Clock.Clock), {
        monotonicTimeNanosUnsafe: () => nanos,
        sleep: (duration: Duration.Duration) => Effect.sync(() => void rests.push(Duration.toMillis(duration)))
      })
      const batch = Effect.sync(() => {
        nanos += 30_000_000n
        return "done"
      })
      const result = yield* exclusively(sql, "a-batch")(batch).pipe(Effect.provideService(Clock.Clock, clock))
      assert.deepStrictEqual(result, Option.some("done"))
      assert.deepStrictEqual(rests, [30])
    })
  )
})
