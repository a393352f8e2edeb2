/** Looking at who asks happens in the listener itself: what is thrown there would end the process. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { capturing, path, serving, told } from "../support/Directing.ts"
import { assertRefused } from "../support/Envelopes.ts"
import { send } from "../support/RawHttp.ts"

layer(capturing, { excludeTestServices: true })("An operation", (it) => {
  it.effect("that throws when it looks at who asks gives one 500 with a record in the log", () =>
    Effect.gen(function* () {
      const { port, thrown } = yield* serving({
        admit: () => {
          throw new Error("boom")
        }
      })
      told.length = 0
      const answer = yield* Effect.exit(send(port, { method: "POST", path, body: "{}" }))
      assert.deepStrictEqual(thrown, [])
      assertRefused(yield* answer, 500, "INTERNAL_ERROR")
      assert.strictEqual(told.length, 1)
    }).pipe(Effect.scoped)
  )
})
