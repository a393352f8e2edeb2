/** One endpoint's trouble is its own. */
import { assert, layer } from "@effect/vitest"
import { Context, Deferred, Effect, Fiber } from "effect"
import { SqlClient } from "effect/sql"
import { EventLog } from "../../src/events/EventLog.ts"
import { Delivery } from "../../src/webhooks/Delivery.ts"
import {
  deliveriesOf,
  layerWebhooks,
  makeDeliveryNode,
  makeEndpoint,
  makeReceiver,
  untilDeliveries
} from "../support/Webhooks.ts"

const count = 1_000

/** Appends many events, a hundred in a transaction. */
const appendMany = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const log = yield* EventLog
  const event = { event_type: "product.created", resource_type: "product", metadata: {} } as const
  yield* Effect.replicateEffect(
    sql.withTransaction(log.append(...Array.from({ length: 100 }, () => event))),
    count / 100,
    {
      discard: true
    }
  )
})

/** Makes passes for as long as an effect runs. */
const working = <A, E, R>(pass: Effect.Effect<void>, self: Effect.Effect<A, E, R>) =>
  Effect.raceFirst(Effect.forever(pass), self)

const delivered = (endpointId: string) =>
  untilDeliveries(endpointId, (rows) => rows.length === count && rows.every(({ status }) => status === "delivered"))

// Time stands still in these tests, so what hangs never comes to its end.
layer(layerWebhooks(), { timeout: 60_000 })("An endpoint", (it) => {
  it.effect("that hangs, and one that fails, hold up no other and keep few connections", () =>
    Effect.gen(function* () {
      const [hanging, failing, fast] = [yield* makeReceiver, yield* makeReceiver, yield* makeReceiver]
      hanging.answer(() => "hang")
      failing.answer(() => ({ status: 500 }))
      const types = { event_types: ["product.created"] }
      const hung = yield* makeEndpoint(hanging.url, types)
      yield* makeEndpoint(failing.url, types)
      const { webhook } = yield* makeEndpoint(fast.url, types)
      yield* appendMany
      yield* working((yield* Delivery).pass, delivered(webhook.id))
      const sequences = new Set(fast.received.map(({ headers }) => headers["x-service-event-sequence"]))
      assert.strictEqual(sequences.size, count)
      assert.strictEqual(fast.received.length, count)
      assert.isTrue((yield* deliveriesOf(hung.webhook.id)).every(({ attempts }) => attempts === 0))
      assert.isAtMost(hanging.received.length, 8)
      assert.isAtMost(new Set(fast.received.map(({ connection }) => connection)).size, 40)
    })
  )

  it.effect("is delivered to by several nodes, each event by one of them", () =>
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

  it.effect("is sent no more than can be written down while the database is slow", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      // Those of the tests before, whose receivers are gone.
      yield* sql`DELETE FROM webhook_endpoints`
      const receiver = yield* makeReceiver
      const { webhook } = yield* makeEndpoint(receiver.url, { event_types: ["product.created"] })
      yield* Effect.replicateEffect(appendMany, 3)
      const node = yield* makeDeliveryNode
      const { pass } = Context.get(node, Delivery)
      const [held, released] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      // Outcomes can not be written while this lock is held.
      const lock = sql`SELECT id FROM webhook_endpoints WHERE id = ${webhook.id} FOR UPDATE`
      const holding = Effect.andThen(Deferred.succeed(held, undefined), Deferred.await(released))
      const holder = yield* Effect.forkChild(sql.withTransaction(Effect.andThen(lock, holding)))
      yield* Deferred.await(held)
      const look = Effect.andThen(
        sql`SELECT 1`,
        Effect.sync(() => receiver.received.length)
      )
      const sent = Effect.andThen(pass, look)
      yield* Effect.repeat(sent, { until: (received) => received >= 2_048 })
      const stopped = (yield* Effect.replicateEffect(sent, 200)).at(-1)!
      yield* Deferred.succeed(released, undefined)
      yield* Fiber.join(holder)
      assert.isBelow(stopped, 2_048 + 512)
      const all = (rows: ReadonlyArray<{ readonly status: string }>) =>
        rows.every(({ status }) => status === "delivered")
      yield* working(pass, untilDeliveries(webhook.id, all))
      assert.strictEqual(receiver.received.length, 3 * count)
    })
  )
})
