/** Trouble at one endpoint does not affect the others. */
import { assert, layer } from "@effect/vitest"
import { Context, Effect } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import { EventLog } from "../../../src/ledger/events/EventLog.ts"
import { Delivery } from "../../../src/ledger/webhooks/Delivery.ts"
import { holdLock } from "../../support/database/Database.ts"
import {
  deliveriesOf,
  layerWebhooks,
  makeDeliveryNode,
  makeEndpoint,
  makeReceiver,
  untilDeliveries
} from "../../support/http/Webhooks.ts"

const count = 1_000

/** Appends many events, a hundred in a transaction. */
const appendMany = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const log = yield* EventLog
  const event = {
    event_type: "product.created",
    resource_type: "product",
    resource_id: "prod_1",
    metadata: {}
  } as const
  yield* Effect.replicateEffect(
    sql.withTransaction(log.append(...Array.from({ length: 100 }, () => event))),
    count / 100,
    {
      discard: true
    }
  )
})

/** Runs passes while an effect runs. */
const whilePassing = <A, E, R>(pass: Effect.Effect<void>, self: Effect.Effect<A, E, R>) =>
  Effect.raceFirst(Effect.forever(pass), self)

const delivered = (endpointId: string) =>
  untilDeliveries(endpointId, (rows) => rows.length === count && rows.every(({ status }) => status === "delivered"))

// Time does not advance in these tests, so a hanging request never times out.
layer(layerWebhooks(), { timeout: 60_000 })("An endpoint", (it) => {
  it.effect("that hangs or fails does not delay the others and uses few connections", () =>
    Effect.gen(function* () {
      const [hanging, failing, fast] = [yield* makeReceiver, yield* makeReceiver, yield* makeReceiver]
      hanging.answer(() => "hang")
      failing.answer(() => ({ status: 500 }))
      const types = { event_types: ["product.created"] }
      const hangingEndpoint = yield* makeEndpoint(hanging.url, types)
      yield* makeEndpoint(failing.url, types)
      const { webhook } = yield* makeEndpoint(fast.url, types)
      yield* appendMany
      yield* whilePassing((yield* Delivery).pass, delivered(webhook.id))
      const sequences = new Set(fast.received.map(({ headers }) => headers["x-service-event-sequence"]))
      assert.strictEqual(sequences.size, count)
      assert.strictEqual(fast.received.length, count)
      assert.isTrue((yield* deliveriesOf(hangingEndpoint.webhook.id)).every(({ attempts }) => attempts === 0))
      assert.isAtMost(hanging.received.length, 8)
      assert.isAtMost(new Set(fast.received.map(({ connection }) => connection)).size, 40)
    })
  )

  it.effect("is served by several nodes, each event by one of them", () =>
    Effect.gen(function* () {
      const receiver = yield* makeReceiver
      const { webhook } = yield* makeEndpoint(receiver.url, { event_types: ["product.created"] })
      const nodes = yield* Effect.replicateEffect(makeDeliveryNode, 3)
      yield* appendMany
      const passes = nodes.map((node) => Effect.forever(Context.get(node, Delivery).pass))
      yield* Effect.raceFirst(Effect.all(passes, { concurrency: "unbounded" }), delivered(webhook.id))
      const ids = receiver.received.map(({ headers }) => headers["x-service-delivery-id"])
      assert.strictEqual(new Set(ids).size, count)
      assert.strictEqual(ids.length, count)
    })
  )

  it.effect("is sent no more deliveries than can be recorded while the database is slow", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      // Endpoints of the previous tests, whose receivers have stopped.
      yield* sql`DELETE FROM webhook_endpoints`
      const receiver = yield* makeReceiver
      const { webhook } = yield* makeEndpoint(receiver.url, { event_types: ["product.created"] })
      yield* Effect.replicateEffect(appendMany, 3)
      const node = yield* makeDeliveryNode
      const { pass } = Context.get(node, Delivery)
      // Outcomes cannot be written until this lock is released.
      const { release } = yield* holdLock(
        (sql) => sql`SELECT id FROM webhook_endpoints WHERE id = ${webhook.id} FOR UPDATE`
      )
      const countReceived = Effect.andThen(
        sql`SELECT 1`,
        Effect.sync(() => receiver.received.length)
      )
      const passAndCount = Effect.andThen(pass, countReceived)
      yield* Effect.repeat(passAndCount, { until: (received) => received >= 2_048 })
      const sentWhileLocked = (yield* Effect.replicateEffect(passAndCount, 200)).at(-1)!
      yield* release
      assert.isBelow(sentWhileLocked, 2_048 + 512)
      const all = (rows: ReadonlyArray<{ readonly status: string }>) =>
        rows.every(({ status }) => status === "delivered")
      // An outcome that waited too long for the lock is written again a second later.
      const later = Effect.andThen(pass, TestClock.adjust("20 millis"))
      yield* whilePassing(later, untilDeliveries(webhook.id, all))
      assert.strictEqual(receiver.received.length, 3 * count)
    })
  )
})
