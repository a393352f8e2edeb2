/** Which deliveries are removed after the retention period, and which are kept. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import { DeliveryRetention } from "../../../src/ledger/webhooks/DeliveryRetention.ts"
import { Webhooks } from "../../../src/ledger/webhooks/Webhooks.ts"
import { layerWebhooks, makeEndpoint } from "../../support/http/Webhooks.ts"

const day = 86_400

/** Rows of an endpoint: `count` of them in each state, created `age` days before the 40th day. */
const insertDeliveries = Effect.fnUntraced(function* (
  endpoint_id: string,
  first: number,
  count: number,
  age: number,
  status: string
) {
  const sql = yield* SqlClient.SqlClient
  yield* sql`
    INSERT INTO webhook_deliveries (endpoint_id, sequence, status, due_at, created_at)
    SELECT ${endpoint_id}, ${first} + n, ${status}, to_timestamp(${(40 - age) * day}::int8), to_timestamp(${(40 - age) * day}::int8)
    FROM generate_series(1, ${count}::int4) AS n`
})

const remaining = Effect.fnUntraced(function* (endpoint_id: string) {
  const sql = yield* SqlClient.SqlClient
  return yield* sql<{ status: string; count: number }>`
    SELECT status, count(*) AS count FROM webhook_deliveries WHERE endpoint_id = ${endpoint_id} GROUP BY status ORDER BY status`
})

layer(Layer.provideMerge(DeliveryRetention.layer, layerWebhooks()))("Retention", (it) => {
  it.effect(
    "removes deliveries after 30 days, in batches, and pending ones only of disabled or deleted endpoints",
    () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const webhooks = yield* Webhooks
        const [active, disabled, deleted, other] = yield* Effect.replicateEffect(makeEndpoint("http://127.0.0.1:9/"), 4)
        yield* webhooks.update(disabled!.webhook.id, { is_active: false })
        yield* webhooks.delete(deleted!.webhook.id)
        yield* sql`DELETE FROM webhook_deliveries`
        yield* TestClock.setTime(40 * day * 1_000 + 1)
        for (const { webhook } of [active!, disabled!]) {
          yield* insertDeliveries(webhook.id, 0, 2_500, 30, "delivered")
          yield* insertDeliveries(webhook.id, 3_000, 20, 31, "exhausted")
          yield* insertDeliveries(webhook.id, 4_000, 5, 35, "pending")
          yield* insertDeliveries(webhook.id, 5_000, 7, 29, "delivered")
          yield* insertDeliveries(webhook.id, 6_000, 3, 1, "pending")
        }
        yield* insertDeliveries(deleted!.webhook.id, 0, 1_200, 1, "pending")
        yield* insertDeliveries(other!.webhook.id, 0, 10, 29, "delivered")
        yield* sql`
        INSERT INTO webhook_delivery_counts (endpoint_id, period, delivered, failed, exhausted)
        SELECT id, to_timestamp(${37 * day}::int8), 1, 0, 0 FROM webhook_endpoints
        UNION ALL SELECT id, to_timestamp(${39 * day}::int8), 1, 0, 0 FROM webhook_endpoints
        UNION ALL SELECT ${deleted!.webhook.id}, to_timestamp(${39 * day}::int8), 1, 0, 0`
        yield* (yield* DeliveryRetention).pass
        assert.deepStrictEqual(yield* remaining(active!.webhook.id), [
          { status: "delivered", count: 7 },
          { status: "pending", count: 8 }
        ])
        assert.deepStrictEqual(yield* remaining(disabled!.webhook.id), [
          { status: "delivered", count: 7 },
          { status: "pending", count: 3 }
        ])
        assert.deepStrictEqual(yield* remaining(deleted!.webhook.id), [])
        assert.deepStrictEqual(yield* remaining(other!.webhook.id), [{ status: "delivered", count: 10 }])
        const counts = yield* sql<{
          endpoint_id: string
          period: number
        }>`SELECT endpoint_id, period FROM webhook_delivery_counts`
        assert.sameDeepMembers(
          [...counts],
          [active, disabled, other].map((made) => ({ endpoint_id: made!.webhook.id, period: 39 * day * 1_000 }))
        )
        yield* (yield* DeliveryRetention).pass
      })
  )
})
