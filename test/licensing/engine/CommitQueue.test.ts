/** Changes are gathered while another node commits, so that nodes that take turns commit large groups. */
import { assert, describe, it, layer } from "@effect/vitest"
import { Context, Effect, Fiber, Latch, Layer } from "effect"
import { TestClock } from "effect/testing"
import { EventLog } from "../../../src/ledger/events/EventLog.ts"
import { type Gathering, makeCommitQueue, makeGathering } from "../../../src/licensing/engine/CommitQueue.ts"
import { exits } from "../../../src/licensing/engine/CommitResult.ts"
import type { PendingChanges } from "../../../src/licensing/engine/PendingChanges.ts"
import { openSession } from "../../../src/platform/postgres/driver/Postgres.ts"
import { Database, untilBlocked } from "../../support/database/Database.ts"

describe("Gathering", () => {
  const group = (gathering: Gathering, waitedMillis: number, millis: number): number => {
    gathering.waited(waitedMillis)
    gathering.finished(millis)
    return gathering.pauseMillis()
  }

  it.effect(
    "begins when a group has waited for the event counter, and takes as long as that group without waiting",
    () =>
      Effect.gen(function* () {
        const gathering = yield* makeGathering
        assert.strictEqual(gathering.pauseMillis(), 0)
        assert.strictEqual(group(gathering, 0, 3), 0)
        assert.strictEqual(group(gathering, 0.4, 3), 0)
        assert.strictEqual(group(gathering, 5, 7), 2)
        assert.strictEqual(group(gathering, 0, 3), 3)
      })
  )

  it.effect("is short: a long group is followed by a pause of 10 ms, a very short one by none", () =>
    Effect.gen(function* () {
      const gathering = yield* makeGathering
      assert.strictEqual(group(gathering, 1, 30), 10)
      assert.strictEqual(group(gathering, 1, 1.5), 0)
    })
  )

  it.effect("ends when no group has waited for a second", () =>
    Effect.gen(function* () {
      const gathering = yield* makeGathering
      group(gathering, 1, 4)
      yield* TestClock.adjust("900 millis")
      assert.strictEqual(group(gathering, 0, 3), 3)
      yield* TestClock.adjust("100 millis")
      assert.strictEqual(group(gathering, 0, 3), 0)
    })
  )
})

/** The queue reads nothing else of it. */
const makeChange = () => ({ deadline: Number.POSITIVE_INFINITY }) as PendingChanges

/** The sizes of groups if a change arrives while the first one is committed, and another one just after the first result. */
const groupsWith = (pauseMillis: number) =>
  Effect.gen(function* () {
    const sizes: Array<number> = []
    const begun = yield* Latch.make()
    const released = yield* Latch.make()
    const commit = yield* makeCommitQueue(
      (group) =>
        Effect.gen(function* () {
          sizes.push(group.length)
          yield* begun.open
          yield* released.await
          return group.map(() => exits.committed)
        }),
      () => Effect.succeed(exits.locked),
      { waited: () => {}, finished: () => {}, pauseMillis: () => pauseMillis }
    )
    const committed = (change: PendingChanges) =>
      Effect.callback<void>((resume) => commit(change, () => resume(Effect.void)))
    const first = Effect.andThen(committed(makeChange()), Effect.yieldNow)
    const third = Effect.andThen(first, committed(makeChange()))
    const second = Effect.andThen(begun.await, committed(makeChange()))
    yield* Effect.all([third, second, Effect.andThen(Effect.andThen(begun.await, Effect.yieldNow), released.open)], {
      concurrency: "unbounded"
    })
    return sizes
  })

describe("The commit queue", () => {
  it.live("puts changes that arrive during the pause into the next group", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* groupsWith(20), [1, 2])
      assert.deepStrictEqual(yield* groupsWith(0), [1, 1, 1])
    })
  )
})

layer(Database.layer, { timeout: 60_000 })("An append to the event log", (it) => {
  it.effect("tells how long another one held the counter", () =>
    Effect.gen(function* () {
      const { appendAtOnce } = Context.get(yield* Layer.build(EventLog.layer), EventLog)
      const { values } = yield* openSession((yield* Database).url)
      const event = { event_type: "product.created", resource_type: "product", resource_id: "a", metadata: {} } as const
      const append = appendAtOnce([
        { ...event, actor_type: "system", actor_id: "system", ip_address: undefined, created_at: 0 }
      ])
      yield* values("BEGIN")
      yield* values(`
        WITH counter AS (UPDATE event_sequence SET last = last + 1 RETURNING last)
        INSERT INTO event_log (sequence, event_type, actor_type, actor_id, resource_type, metadata, created_at)
        SELECT last, 'product.created', 'system', 'other', 'product', '{}', to_timestamp(0) FROM counter`)
      const appended = yield* Effect.forkChild(append, { startImmediately: true })
      yield* untilBlocked
      // The database waits from here on at least for so long.
      yield* values("SELECT pg_sleep(0.05)")
      yield* values("COMMIT")
      assert.isAtLeast((yield* Fiber.join(appended)).waitedMillis, 50)
    })
  )
})
