/** Looking at who asks happens in the listener itself: what is thrown there would end the process. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { captureLogs, logged, operationPath, serveFastPath } from "../../support/http/FastPath.ts"
import { assertRefused, send } from "../../support/http/Http.ts"

layer(captureLogs, { excludeTestServices: true })("An operation", (it) => {
  it.effect("that throws when it looks at who asks gives one 500 with a record in the log", () =>
    Effect.gen(function* () {
      const { port, thrown } = yield* serveFastPath({
        admit: () => {
          throw new Error("boom")
        }
      })
      logged.length = 0
      const answer = yield* Effect.exit(send(port, { method: "POST", path: operationPath, body: "{}" }))
      assert.deepStrictEqual(thrown, [])
      assertRefused(yield* answer, 500, "INTERNAL_ERROR")
      assert.strictEqual(logged.length, 1)
    }).pipe(Effect.scoped)
  )
})
