/** The operator is told once that the node's clock differs from the database server's, and once that it agrees again. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { ClockCheck } from "../../../src/edge/system/ClockCheck.ts"
import { Settings } from "../../../src/platform/config/Config.ts"
import * as RehearsalClock from "../../../src/platform/telemetry/RehearsalClock.ts"
import { Database } from "../../support/database/Database.ts"
import { captureLogs, logged } from "../../support/http/FastPath.ts"

/** The messages of passes with a clock that is ahead by so many milliseconds each. */
const messagesAt = (clockOffsetSeconds: number, ahead: ReadonlyArray<number>) =>
  Effect.gen(function* () {
    const { pass } = yield* ClockCheck
    const before = logged.length
    for (const millis of ahead)
      yield* Effect.provide(
        pass,
        RehearsalClock.layer(() => clockOffsetSeconds * 1000 + millis)
      )
    return logged.slice(before).map(({ level, text }) => `${level} ${text}`)
  }).pipe(
    Effect.provide(Layer.fresh(ClockCheck.layer).pipe(Layer.provide(Settings.layerTest({ clockOffsetSeconds })))),
    Effect.provide(captureLogs)
  )

layer(Database.layer, { excludeTestServices: true })("The clock check", (it) => {
  it.effect.each([0, 86_400])("tells once of a clock that is off, with %i s ahead on purpose", (offset) =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* messagesAt(offset, [0, 3000, -3000]), [])
      const [off, agrees, ...more] = yield* messagesAt(offset, [20_000, 21_000, -20_000, 0, 0])
      assert.match(off!, /^Warn .*differs from the database server's.*"seconds_ahead":(19|20)\b/)
      assert.match(agrees!, /^Info .*agrees/)
      assert.deepStrictEqual(more, [])
      assert.match((yield* messagesAt(offset, [-20_000]))[0]!, /"seconds_ahead":-(19|20|21)\b/)
    })
  )
})
