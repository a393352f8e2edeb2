/** Deliveries that fail: when they are retried. */
import type { ServerResponse } from "node:http"
import { assert, layer } from "@effect/vitest"
import { Clock, Effect } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import { Delivery } from "../../../src/ledger/webhooks/Delivery.ts"
import { Webhooks } from "../../../src/ledger/webhooks/Webhooks.ts"
import {
  appendEvent,
  deliveriesOf,
  layerWebhooks,
  makeEndpoint,
  makeReceiver,
  runPass,
  untilSettled
} from "../../support/http/Webhooks.ts"

const pass = Effect.flatMap(Delivery, ({ pass }) => pass)
const second = 1_000

const failureOf = Effect.fnUntraced(function* (endpointId: string) {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<{
    last_failure: string | null
  }>`SELECT last_failure FROM webhook_endpoints WHERE id = ${endpointId}`
  return row!.last_failure
})

const onlyProducts = { event_types: ["product.created"] }

layer(layerWebhooks())("A delivery that fails", (it) => {
  it.effect("is tried ten times on the schedule, identical each time except for its timestamp", () =>
    Effect.gen(function* () {
      const receiver = yield* makeReceiver
      receiver.answer(() => ({ status: 500 }))
      const { webhook } = yield* makeEndpoint(receiver.url, onlyProducts)
      yield* appendEvent()
      const delays = [5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400]
      for (const [index, delay] of delays.entries()) {
        yield* runPass(receiver, webhook.id)
        const now = yield* Clock.currentTimeMillis
        const [row] = yield* deliveriesOf(webhook.id)
        assert.deepStrictEqual([row!.status, row!.attempts], ["pending", index + 1])
        assert.isAtLeast(row!.due_at - now, delay * second * 0.9)
        assert.isAtMost(row!.due_at - now, delay * second * 1.1)
        yield* TestClock.adjust(row!.due_at - now - 1)
        yield* pass
        assert.isNull((yield* deliveriesOf(webhook.id))[0]!.leased_until)
        yield* TestClock.adjust(1)
      }
      yield* runPass(receiver, webhook.id)
      const [row] = yield* deliveriesOf(webhook.id)
      assert.deepStrictEqual([row!.status, row!.attempts], ["exhausted", 10])
      yield* TestClock.adjust("2 days")
      yield* pass
      assert.strictEqual(receiver.received.length, 10)
      const [first, ...others] = receiver.received
      for (const { body, headers } of others) {
        assert.isTrue(body.equals(first!.body))
        assert.strictEqual(headers["x-service-delivery-id"], first!.headers["x-service-delivery-id"])
        assert.notStrictEqual(headers["webhook-timestamp"], first!.headers["webhook-timestamp"])
      }
    })
  )

  it.effect("stops after success, and only 2xx is success: no redirect is followed", () =>
    Effect.gen(function* () {
      const receiver = yield* makeReceiver
      const elsewhere = yield* makeReceiver
      for (const status of [200, 201, 202, 204, 299, 300, 301, 302, 304, 307, 308, 400, 401, 404, 429, 500, 503]) {
        receiver.answer(() => ({ status, headers: { location: elsewhere.url } }))
        const { webhook } = yield* makeEndpoint(receiver.url, onlyProducts)
        yield* appendEvent()
        yield* runPass(receiver, webhook.id)
        const [row] = yield* deliveriesOf(webhook.id)
        assert.strictEqual(row!.status, status < 300 ? "delivered" : "pending", String(status))
        assert.strictEqual(yield* failureOf(webhook.id), status < 300 ? null : `status_${status}`)
        yield* (yield* Webhooks).delete(webhook.id)
      }
      assert.deepStrictEqual(elsewhere.received, [])
    })
  )

  it.effect("waits as long as the receiver asks with 429 or 503, up to a day, and never less than the schedule", () =>
    Effect.gen(function* () {
      const receiver = yield* makeReceiver
      const inHours = (hours: number, now: number) => new Date(now + hours * 3_600 * second).toUTCString()
      const cases: ReadonlyArray<readonly [number, (now: number) => string, number, number]> = [
        [429, () => "120", 120, 120],
        [503, () => "3600", 3_600, 3_600],
        [503, (now) => inHours(2, now), 7_199, 7_200],
        [429, () => "999999", 86_400, 86_400],
        [429, () => "1", 4.5, 5.5],
        [429, () => "soon", 4.5, 5.5],
        [500, () => "3600", 4.5, 5.5]
      ]
      for (const [status, header, least, most] of cases) {
        const now = yield* Clock.currentTimeMillis
        receiver.answer(() => ({ status, headers: { "retry-after": header(now) } }))
        const { webhook } = yield* makeEndpoint(receiver.url, onlyProducts)
        yield* appendEvent()
        yield* runPass(receiver, webhook.id)
        const [row] = yield* deliveriesOf(webhook.id)
        const waits = (row!.due_at - now) / second
        assert.isTrue(waits >= least && waits <= most, `${status} ${header(now)}: ${waits}`)
        yield* (yield* Webhooks).delete(webhook.id)
      }
    })
  )

  it.effect("is not attempted while its endpoint's secret cannot be decrypted, and stays due as before", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const webhooks = yield* Webhooks
      const receiver = yield* makeReceiver
      const { webhook } = yield* makeEndpoint(receiver.url, onlyProducts)
      yield* sql`UPDATE webhook_endpoints SET secret_sealed = 'lost with its key' WHERE id = ${webhook.id}`
      yield* Effect.replicateEffect(appendEvent(), 3)
      const states = Effect.map(deliveriesOf(webhook.id), (rows) =>
        rows.map(({ attempts, due_at, status }) => ({ attempts, due_at, status }))
      )
      const queued = yield* states
      for (let attempt = 0; attempt < 12; attempt++) {
        yield* pass
        yield* TestClock.adjust("1 day")
      }
      assert.deepStrictEqual(yield* states, queued)
      assert.strictEqual(yield* failureOf(webhook.id), "secret_unreadable")
      yield* pass
      yield* webhooks.update(webhook.id, { rotate_secret: true })
      // Until the leases of the last pass end.
      yield* pass
      assert.deepStrictEqual(yield* states, queued)
      yield* TestClock.adjust("30 seconds")
      yield* runPass(receiver, webhook.id, 3)
      assert.deepStrictEqual(
        (yield* states).map(({ attempts, status }) => [attempts, status]),
        Array.from(queued, () => [1, "delivered"])
      )
    })
  )

  it.effect("has failed when the complete response did not arrive within 15 seconds", () =>
    Effect.gen(function* () {
      const receiver = yield* makeReceiver
      const replies = [
        "hang" as const,
        { respond: (response: ServerResponse) => void response.writeHead(200).write("beginning") }
      ]
      for (const reply of replies) {
        receiver.answer(() => reply)
        const { webhook } = yield* makeEndpoint(receiver.url, onlyProducts)
        yield* appendEvent()
        yield* pass
        yield* receiver.next
        yield* TestClock.adjust("14 seconds")
        assert.isNotNull((yield* deliveriesOf(webhook.id))[0]!.leased_until)
        yield* TestClock.adjust("1 seconds")
        yield* untilSettled(webhook.id)
        assert.strictEqual((yield* deliveriesOf(webhook.id))[0]!.attempts, 1)
        assert.strictEqual(yield* failureOf(webhook.id), "timeout")
        yield* (yield* Webhooks).delete(webhook.id)
      }
    })
  )

  it.effect("has failed when the receiver dies during its response, and is retried with the same id", () =>
    Effect.gen(function* () {
      const receiver = yield* makeReceiver
      receiver.answer(() => ({
        respond: (response) => {
          response.writeHead(200, { "content-length": "1000" })
          response.write("half of", () => response.socket?.destroy())
        }
      }))
      const { webhook } = yield* makeEndpoint(receiver.url, onlyProducts)
      yield* appendEvent()
      const [first] = yield* runPass(receiver, webhook.id)
      assert.strictEqual((yield* deliveriesOf(webhook.id))[0]!.status, "pending")
      assert.strictEqual(yield* failureOf(webhook.id), "connection_failed")
      receiver.answer(() => ({ status: 200 }))
      yield* TestClock.adjust("6 seconds")
      const [second] = yield* runPass(receiver, webhook.id)
      assert.strictEqual((yield* deliveriesOf(webhook.id))[0]!.status, "delivered")
      assert.strictEqual(second!.headers["x-service-delivery-id"], first!.headers["x-service-delivery-id"])
      assert.isTrue(second!.body.equals(first!.body))
    })
  )

  it.effect("does not fail because the response is longer than the read limit", () =>
    Effect.gen(function* () {
      const receiver = yield* makeReceiver
      receiver.answer(() => ({
        respond: (response) => {
          response.writeHead(200)
          const more = () => {
            if (!response.destroyed) response.write(Buffer.alloc(16_384), more)
          }
          more()
        }
      }))
      const { webhook } = yield* makeEndpoint(receiver.url, onlyProducts)
      yield* appendEvent()
      yield* runPass(receiver, webhook.id)
      assert.strictEqual((yield* deliveriesOf(webhook.id))[0]!.status, "delivered")
    })
  )
})
