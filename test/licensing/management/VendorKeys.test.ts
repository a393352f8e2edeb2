/** When a node looks up text that is no generated key. */
import { assert, layer } from "@effect/vitest"
import { Clock, Context, Effect, Fiber, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import { VendorKeys } from "../../../src/licensing/management/VendorKeys.ts"
import { holdLock, untilBlocked } from "../../support/database/Database.ts"
import { Foundations } from "../../support/database/Services.ts"

/** A node of its own. */
const makeNode = Effect.map(Layer.build(Layer.fresh(VendorKeys.layer)), (context) => Context.get(context, VendorKeys))

/** Runs until the condition holds, while statements of the node arrive. */
const until = (condition: () => boolean) =>
  Effect.flatMap(SqlClient.SqlClient, (sql) => Effect.repeat(sql`SELECT 1`, { until: condition }))

const blockReads = holdLock((sql) => sql`LOCK TABLE vendor_key_use IN ACCESS EXCLUSIVE MODE`)

layer(Foundations, { timeout: 60_000 })("A node", (it) => {
  it.effect(
    "looks nothing up for a second after it read that there are no vendor keys, and until the next such read",
    () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const node = yield* makeNode
        assert.isFalse(node.mayExist())
        const { release } = yield* blockReads
        yield* TestClock.adjust("500 millis")
        yield* untilBlocked
        yield* TestClock.adjust("499 millis")
        assert.isFalse(node.mayExist())
        yield* TestClock.adjust("1 millis")
        assert.isTrue(node.mayExist())
        yield* release
        yield* Effect.repeat(Effect.andThen(TestClock.adjust("500 millis"), sql`SELECT 1`), {
          until: () => !node.mayExist()
        })
      })
  )

  it.effect("that was suspended looks up, although its clock for durations stood still", () =>
    Effect.gen(function* () {
      const clock = yield* Clock.Clock
      const suspended: Clock.Clock = {
        ...clock,
        sleep: clock.sleep.bind(clock),
        currentTimeMillisUnsafe: () => clock.currentTimeMillisUnsafe(),
        monotonicTimeNanosUnsafe: () => 0n
      }
      const node = yield* Effect.provideService(makeNode, Clock.Clock, suspended)
      const { release } = yield* blockReads
      assert.isFalse(node.mayExist())
      yield* TestClock.adjust("1 hour")
      assert.isTrue(node.mayExist())
      yield* release
    })
  )

  it.effect(
    "looks up from the announcement on; a node that has not heard of it does so before the announcement ends",
    () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const [node, other] = [yield* makeNode, yield* makeNode]
        const { release } = yield* blockReads
        const announced = yield* Effect.forkChild(node.announce, { startImmediately: true })
        yield* untilBlocked
        assert.isFalse(node.mayExist())
        yield* release
        yield* until(node.mayExist)
        assert.isFalse(other.mayExist())
        yield* TestClock.adjust("1249 millis")
        yield* until(other.mayExist)
        assert.deepStrictEqual(yield* sql`SELECT known FROM vendor_key_use`, [{ known: false }])
        yield* TestClock.adjust("1 millis")
        yield* Fiber.join(announced)
        assert.deepStrictEqual(yield* sql`SELECT known FROM vendor_key_use`, [{ known: true }])
        // Later announcements find it made, and a new node knows at once.
        yield* other.announce
        assert.isTrue((yield* makeNode).mayExist())
      })
  )
})
