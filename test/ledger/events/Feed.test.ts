/** The feed under load: a reader that has seen a number never sees a lower one appear later, and none is missing. */
import { assert, layer } from "@effect/vitest"
import { Context, Effect, Layer, Ref } from "effect"
import { SqlClient } from "effect/sql"
import { EventLog } from "../../../src/ledger/events/EventLog.ts"
import { Events } from "../../../src/ledger/events/Events.ts"
import { activate } from "../../../src/licensing/rules/Activation.ts"
import { consume } from "../../../src/licensing/rules/Consumption.ts"
import { Database } from "../../support/database/Database.ts"
import { makeNode } from "../../support/database/LicenseNodes.ts"
import { makeLicense } from "../../support/database/StoredLicenses.ts"
import { hardware } from "../../support/rules/Licenses.ts"

const Subject = Layer.mergeAll(Events.layer, EventLog.layer).pipe(Layer.provideMerge(Database.layer))

const licensesPerNode = 12
const consumptions = 60

/**
 * One node's share: its own licenses, each activated and consumed from, and plain commands, some of which are rolled
 * back.
 */
const mutate = Effect.fnUntraced(function* (node: number) {
  const sql = yield* SqlClient.SqlClient
  const actors = yield* makeNode
  const log = Context.get(yield* Layer.build(Layer.fresh(EventLog.layer)), EventLog)
  const licenses = yield* Effect.replicateEffect(makeLicense(), licensesPerNode)
  const binding = hardware("m")
  const use = Effect.fnUntraced(function* ({ keyHash, license }: (typeof licenses)[number]) {
    yield* actors.ask(license, activate, { keyHash, binding, newDeviceId: `dev_${license}` })
    yield* Effect.forEach(
      Array.from({ length: consumptions }, (_, index) => `e${index}`),
      (event_id) => actors.ask(license, consume, { keyHash, binding, feature_code: "export", event_id, amount: 1 }),
      { concurrency: 8 }
    )
  })
  const event = {
    event_type: "product.created",
    resource_type: "product",
    resource_id: "prod_1",
    metadata: { node }
  } as const
  const plain = (index: number) =>
    Effect.exit(
      sql.withTransaction(
        index % 5 === 0 ? Effect.andThen(log.append(event), Effect.fail("rolled back")) : log.append(event)
      )
    )
  yield* Effect.all(
    [
      Effect.forEach(licenses, use, { concurrency: "unbounded" }),
      Effect.forEach(
        Array.from({ length: 200 }, (_, index) => index),
        plain,
        { concurrency: 4 }
      )
    ],
    { concurrency: "unbounded" }
  )
})

layer(Subject, { timeout: 60_000 })("The events feed", (it) => {
  it.effect("shows three nodes' events to a reader that follows: every number once, in order, none late", () =>
    Effect.gen(function* () {
      const events = yield* Events
      const done = yield* Ref.make(false)
      const followed: Array<number> = []
      let reads = 0
      const follow = Effect.gen(function* () {
        while (true) {
          const over = yield* Ref.get(done)
          const { items } = yield* events.list({ limit: 200 })
          const last = followed.at(-1) ?? 0
          const newSequences = items.map(({ sequence }) => sequence).filter((sequence) => sequence > last)
          // Missing numbers below the newest of a page would be a gap, so the reader must never have to come back for
          // them.
          let oldest = newSequences.at(-1) ?? last + 1
          while (oldest > last + 1) {
            const { items: older } = yield* events.list({ limit: 200, cursor: oldest })
            newSequences.push(...older.map(({ sequence }) => sequence).filter((sequence) => sequence > last))
            if (newSequences.at(-1) === oldest) break
            oldest = newSequences.at(-1)!
          }
          followed.push(...newSequences.reverse())
          if (newSequences.length > 0) reads++
          if (over && newSequences.length === 0) return
        }
      })
      const work = Effect.andThen(Effect.forEach([0, 1, 2], mutate, { concurrency: "unbounded" }), Ref.set(done, true))
      yield* Effect.all([work, follow], { concurrency: "unbounded" })
      const licenses = 3 * licensesPerNode
      const expected = licenses * (1 + consumptions) + 3 * 160
      assert.strictEqual(followed.length, expected)
      assert.isAbove(reads, 5, "the reader looked while others wrote")
      assert.deepStrictEqual(
        followed,
        Array.from({ length: expected }, (_, index) => index + 1)
      )
    })
  )
})
