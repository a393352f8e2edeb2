/** The log of a process whose database cannot be reached. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { DatabaseProxy } from "../../support/database/Database.ts"
import { startService } from "../../support/processes/Processes.ts"

/** A record for each would be three times as long as what is allowed. */
const requests = 1_000
const bytesMax = 100_000

layer(DatabaseProxy.layer, { excludeTestServices: true, timeout: 120_000 })("A process without its database", (it) => {
  it.effect("counts the requests that fail instead of logging each", () =>
    Effect.gen(function* () {
      const { manage, stop, written } = yield* startService()
      const ready = written.out.length
      yield* (yield* DatabaseProxy).disconnect
      const statuses = yield* Effect.forEach(
        Array.from({ length: requests }, (_, index) => `/products/prod_${index}`),
        (path) => Effect.map(manage("GET", path), ({ status }) => status),
        { concurrency: 16 }
      )
      assert.deepStrictEqual(new Set(statuses), new Set([503]))
      yield* stop
      // Each management request has a record of its own, whatever its status, at the level info.
      const failures = written.out
        .slice(ready)
        .split("\n")
        .filter((line) => line !== "" && !line.includes('"level":"info"'))
      assert.isBelow(failures.join("\n").length, bytesMax)
      const counted = failures
        .filter((line) => line.includes('"A request was turned away."'))
        .map((line) => (JSON.parse(line) as { readonly repeated?: number }).repeated ?? 1)
      assert.strictEqual(
        counted.reduce((total, count) => total + count, 0),
        requests
      )
    }).pipe(Effect.scoped)
  )
})
