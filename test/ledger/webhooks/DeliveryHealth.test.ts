/** The delivery health that operators read: for successful, failing and abandoned deliveries. */
import { assert, layer } from "@effect/vitest"
import { Clock, Effect, Layer, Schema } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import { Delivery } from "../../../src/ledger/webhooks/Delivery.ts"
import { DeliveryHealth } from "../../../src/ledger/webhooks/DeliveryHealth.ts"
import { WebhookHealth } from "../../../src/ledger/webhooks/WebhookHealth.ts"
import { Webhooks } from "../../../src/ledger/webhooks/Webhooks.ts"
import { assertAnswered, assertRefused } from "../../support/http/Http.ts"
import { TestServer } from "../../support/http/TestServer.ts"
import {
  appendEvent,
  layerService,
  layerWebhooks,
  makeEndpoint,
  makeReceiver,
  type Receiver,
  untilDeliveries,
  untilSettled
} from "../../support/http/Webhooks.ts"
import { poll } from "../../support/rules/Poll.ts"

const report = Effect.flatMap(DeliveryHealth, ({ report }) => report)

const onlyProducts = { event_types: ["product.created"] }

const deliverOne = Effect.fnUntraced(function* (receiver: Receiver, endpointId: string) {
  const sequence = yield* appendEvent()
  yield* (yield* Delivery).pass
  yield* receiver.next
  yield* untilSettled(endpointId)
  return sequence
})

const Subject = (webhookRetrySeconds: ReadonlyArray<number>) =>
  Layer.provideMerge(DeliveryHealth.layer, layerWebhooks({ webhookRetrySeconds }))

layer(Subject([5, 3_600]))("Webhook health", (it) => {
  it.effect("is good without endpoints", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* report, {
        status: "healthy",
        endpoints: { total: 0, active: 0, disabled: 0 },
        deliveries: { pending: 0, retrying: 0, delivered_24h: 0, failed_24h: 0, exhausted_24h: 0 },
        per_endpoint: []
      })
    })
  )

  it.effect("reports delivered, failed and pending deliveries, in total and for each endpoint", () =>
    Effect.gen(function* () {
      const webhooks = yield* Webhooks
      const startedAt = yield* Clock.currentTimeMillis
      const goodReceiver = yield* makeReceiver
      const { webhook } = yield* makeEndpoint(goodReceiver.url, { ...onlyProducts, name: "good" })
      yield* webhooks.create({ name: "off", url: goodReceiver.url, is_active: false })
      yield* deliverOne(goodReceiver, webhook.id)
      const healthy = yield* report
      const none = { pending: 0, retrying: 0, delivered_24h: 0, failed_24h: 0, exhausted_24h: 0 }
      const counts = { ...none, delivered_24h: 1 }
      const { per_endpoint, ...summary } = healthy
      assert.deepStrictEqual(summary, {
        status: "healthy",
        endpoints: { total: 2, active: 1, disabled: 1 },
        deliveries: counts,
        success_rate_24h: 1,
        last_success_at: startedAt
      })
      assert.deepInclude(per_endpoint, {
        webhook_id: webhook.id,
        name: "good",
        is_active: true,
        ...counts,
        success_rate_24h: 1,
        last_success_at: startedAt
      })
      assert.notInclude(JSON.stringify(healthy), goodReceiver.url)

      goodReceiver.answer(() => ({ status: 500 }))
      yield* TestClock.adjust("1 minutes")
      yield* deliverOne(goodReceiver, webhook.id)
      yield* TestClock.adjust("4 seconds")
      const retrying = yield* report
      assert.deepStrictEqual(retrying.deliveries, { ...counts, pending: 1, retrying: 1, failed_24h: 1 })
      assert.deepStrictEqual(
        [retrying.status, retrying.success_rate_24h, retrying.oldest_pending_at, retrying.oldest_pending_age_seconds],
        ["degraded", 0.5, startedAt + 60_000, 4]
      )
      const failed = retrying.per_endpoint.find(({ name }) => name === "good")!
      assert.strictEqual(failed.last_failure_reason, "status_500")
      assert.isAbove(failed.next_attempt_at!, startedAt + 60_000)

      yield* TestClock.adjust("1 hours")
      assert.strictEqual((yield* report).status, "failing")
      goodReceiver.answer(() => ({ status: 200 }))
      yield* (yield* Delivery).pass
      yield* goodReceiver.next
      yield* untilSettled(webhook.id)
      assert.deepStrictEqual((yield* report).deliveries, { ...counts, delivered_24h: 2, failed_24h: 1 })
      assert.strictEqual((yield* report).status, "healthy")

      yield* TestClock.adjust("25 hours")
      const later = yield* report
      assert.deepStrictEqual([later.deliveries, later.status], [none, "healthy"])
      assert.notProperty(later, "success_rate_24h")
      assert.strictEqual(later.last_failure_at, startedAt + 60_000)
    })
  )

  it.effect("names no next attempt of an endpoint that is inactive", () =>
    Effect.gen(function* () {
      const { webhook } = yield* makeEndpoint("http://127.0.0.1:9/", onlyProducts)
      yield* appendEvent()
      const own = Effect.map(report, ({ per_endpoint }) =>
        per_endpoint.find(({ webhook_id }) => webhook_id === webhook.id)
      )
      assert.property(yield* own, "next_attempt_at")
      yield* (yield* Webhooks).update(webhook.id, { is_active: false })
      assert.strictEqual((yield* own)?.pending, 1)
      assert.notProperty(yield* own, "next_attempt_at")
    })
  )
})

layer(Subject([]))("Webhook health with abandoned deliveries", (it) => {
  it.effect("is degraded or failing, and reports which endpoint was disabled and why", () =>
    Effect.gen(function* () {
      const [goodReceiver, goneReceiver] = [yield* makeReceiver, yield* makeReceiver]
      const goodEndpoint = yield* makeEndpoint(goodReceiver.url, onlyProducts)
      const goneEndpoint = yield* makeEndpoint(goneReceiver.url, onlyProducts)
      yield* deliverOne(goodReceiver, goodEndpoint.webhook.id)
      yield* untilDeliveries(goneEndpoint.webhook.id, (rows) => rows.every(({ status }) => status === "delivered"))
      goneReceiver.answer(() => ({ status: 410 }))
      yield* deliverOne(goneReceiver, goneEndpoint.webhook.id)
      yield* untilSettled(goodEndpoint.webhook.id)
      yield* poll(report, ({ endpoints }) => endpoints.disabled === 1)
      const { per_endpoint, status, ...summary } = yield* report
      assert.strictEqual(status, "degraded")
      assert.deepInclude(summary, {
        endpoints: { total: 2, active: 1, disabled: 1 },
        deliveries: { pending: 0, retrying: 0, delivered_24h: 3, failed_24h: 1, exhausted_24h: 1 },
        success_rate_24h: 0.75
      })
      const disabled = per_endpoint.find(({ webhook_id }) => webhook_id === goneEndpoint.webhook.id)!
      assert.deepInclude(disabled, {
        is_active: false,
        disabled_reason: "gone",
        exhausted_24h: 1,
        last_failure_reason: "status_410"
      })
      yield* (yield* Webhooks).update(goneEndpoint.webhook.id, { is_active: true })
      const enabledAgain = (yield* report).per_endpoint.find(
        ({ webhook_id }) => webhook_id === goneEndpoint.webhook.id
      )!
      assert.notProperty(enabledAgain, "disabled_reason")
    })
  )

  it.effect("counts pending deliveries of active endpoints only", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const quiet = { event_types: ["product.deleted"] }
      const active = yield* makeEndpoint("http://127.0.0.1:9/", quiet)
      const disabled = yield* makeEndpoint("http://127.0.0.1:9/", quiet)
      const before = yield* report
      for (const { webhook } of [active, disabled]) {
        yield* sql`
          INSERT INTO webhook_deliveries (endpoint_id, sequence, status, due_at, created_at)
          SELECT ${webhook.id}, n, CASE WHEN n > 5000 THEN 'pending' ELSE 'delivered' END, to_timestamp(n), to_timestamp(n)
          FROM generate_series(1, 5010) AS n`
      }
      yield* (yield* Webhooks).update(disabled.webhook.id, { is_active: false })
      const { deliveries, oldest_pending_at, per_endpoint } = yield* report
      assert.strictEqual(deliveries.pending - before.deliveries.pending, 10)
      assert.strictEqual(oldest_pending_at, Math.min(before.oldest_pending_at ?? Number.POSITIVE_INFINITY, 5_001_000))
      assert.strictEqual(per_endpoint.find(({ webhook_id }) => webhook_id === disabled.webhook.id)!.pending, 10)
    })
  )
})

layer(Subject([]))("Webhook health of more endpoints than it lists", (it) => {
  it.effect("has totals of all of them", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const oldest = yield* makeEndpoint("http://127.0.0.1:9/", onlyProducts)
      yield* appendEvent()
      yield* sql`
        INSERT INTO webhook_endpoints
          SELECT (jsonb_populate_record(e, jsonb_build_object('id', 'wh_' || n, 'is_active', n > 3, 'event_types', '["product.deleted"]'::jsonb,
            'created_at', e.created_at + n * interval '1 second'))).*
          FROM webhook_endpoints AS e, generate_series(1, 1000) AS n`
      const { deliveries, endpoints, oldest_pending_at, per_endpoint } = yield* report
      assert.deepStrictEqual(endpoints, { total: 1_001, active: 998, disabled: 3 })
      assert.strictEqual(deliveries.pending, 1)
      assert.isDefined(oldest_pending_at)
      assert.strictEqual(per_endpoint.length, 1_000)
      assert.isFalse(per_endpoint.some(({ webhook_id }) => webhook_id === oldest.webhook.id))
    })
  )
})

layer(layerService())("Webhook health over HTTP", (it) => {
  it.effect("is returned to ops:read only, in the contract's shape", () =>
    Effect.gen(function* () {
      const { client, send } = yield* TestServer
      const path = "/api/v1/ops/webhook-health"
      yield* client.webhooks.create({ payload: { name: "w", url: "https://8.8.8.8/" } })
      const data = assertAnswered(yield* send({ path }), 200)
      yield* Schema.decodeUnknownEffect(WebhookHealth)(data, { onExcessProperty: "error" })
      const { token } = yield* client["api-keys"].create({ payload: { name: "k", scopes: ["webhook:write"] } })
      const headers = { authorization: `Bearer ${token}` }
      assertRefused(yield* send({ path, headers }), 403, "TOKEN_SCOPE_DENIED", "ops:read")
    })
  )
})
