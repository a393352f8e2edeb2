/** What disables an endpoint, and what it gets when it is enabled again. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import { Delivery } from "../../../src/ledger/webhooks/Delivery.ts"
import { Webhooks } from "../../../src/ledger/webhooks/Webhooks.ts"
import { eventsOf } from "../../support/database/Services.ts"
import {
  appendEvent,
  deliveriesOf,
  layerWebhooks,
  makeEndpoint,
  makeReceiver,
  runPass,
  untilDeliveries,
  untilSettled
} from "../../support/http/Webhooks.ts"
import { poll } from "../../support/rules/Poll.ts"

const pass = Effect.flatMap(Delivery, ({ pass }) => pass)
const onlyProducts = { event_types: ["product.created"] }

const isActive = Effect.fnUntraced(function* (id: string) {
  return (yield* (yield* Webhooks).get(id)).is_active
})

layer(layerWebhooks({ webhookRetrySeconds: [60] }))("An endpoint with retries", (it) => {
  it.effect("that answers 410 is disabled, and gets the same delivery after it is enabled at another address", () =>
    Effect.gen(function* () {
      const [gone, receiver] = [yield* makeReceiver, yield* makeReceiver]
      gone.answer(() => ({ status: 410 }))
      const { webhook } = yield* makeEndpoint(gone.url, onlyProducts)
      yield* appendEvent()
      yield* runPass(gone, webhook.id)
      yield* poll(isActive(webhook.id), (active) => !active)
      assert.strictEqual((yield* deliveriesOf(webhook.id))[0]!.status, "pending")
      yield* TestClock.adjust("2 minutes")
      yield* pass
      yield* (yield* Webhooks).update(webhook.id, { url: receiver.url, is_active: true })
      yield* runPass(receiver, webhook.id)
      const deliveries = yield* deliveriesOf(webhook.id)
      assert.deepStrictEqual(
        deliveries.map(({ attempts, status }) => [attempts, status]),
        [[2, "delivered"]]
      )
      assert.strictEqual(gone.received.length, 1)
    })
  )
})

layer(layerWebhooks({ webhookRetrySeconds: [] }))("An endpoint", (it) => {
  const disabledEvents = Effect.fnUntraced(function* (id: string) {
    return (yield* eventsOf(id))
      .filter(({ event_type }) => event_type === "webhook.disabled")
      .map(({ actor_id, actor_type, metadata }) => [actor_type, actor_id, metadata["reason"]])
  })

  it.effect("that answers 410 is disabled immediately; after it is enabled again it gets the events it missed", () =>
    Effect.gen(function* () {
      const receiver = yield* makeReceiver
      receiver.answer(() => ({ status: 410 }))
      const { webhook } = yield* makeEndpoint(receiver.url, onlyProducts)
      yield* appendEvent()
      yield* runPass(receiver, webhook.id)
      yield* poll(isActive(webhook.id), (active) => !active)
      assert.deepStrictEqual(yield* disabledEvents(webhook.id), [["system", "webhook-delivery", "gone"]])
      assert.strictEqual((yield* deliveriesOf(webhook.id))[0]!.status, "exhausted")
      yield* appendEvent()
      assert.strictEqual((yield* deliveriesOf(webhook.id)).length, 1)

      receiver.answer(() => ({ status: 204 }))
      yield* (yield* Webhooks).update(webhook.id, { is_active: true })
      yield* appendEvent()
      yield* runPass(receiver, webhook.id)
      assert.deepStrictEqual(
        (yield* deliveriesOf(webhook.id)).map(({ status }) => status),
        ["exhausted", "delivered"]
      )
    })
  )

  it.effect("is disabled when ten deliveries in a row were abandoned, and one success resets the count", () =>
    Effect.gen(function* () {
      const receiver = yield* makeReceiver
      const { webhook } = yield* makeEndpoint(receiver.url, onlyProducts)
      const failing = Effect.fnUntraced(function* (count: number) {
        receiver.answer(() => ({ status: 500 }))
        for (let index = 0; index < count; index++) {
          yield* appendEvent()
          yield* runPass(receiver, webhook.id)
        }
      })
      yield* failing(9)
      receiver.answer(() => ({ status: 200 }))
      yield* appendEvent()
      yield* runPass(receiver, webhook.id)
      yield* failing(9)
      assert.isTrue(yield* isActive(webhook.id))
      assert.deepStrictEqual(yield* disabledEvents(webhook.id), [])
      yield* failing(1)
      yield* poll(isActive(webhook.id), (active) => !active)
      assert.deepStrictEqual(yield* disabledEvents(webhook.id), [["system", "webhook-delivery", "exhausted"]])
      yield* (yield* Webhooks).update(webhook.id, { is_active: true })
      yield* failing(9)
      assert.isTrue(yield* isActive(webhook.id))
    })
  )

  it.effect("that is disabled keeps its pending deliveries", () =>
    Effect.gen(function* () {
      const [goneReceiver, receiver] = [yield* makeReceiver, yield* makeReceiver]
      const { webhook } = yield* makeEndpoint(receiver.url, onlyProducts)
      const sql = yield* SqlClient.SqlClient
      goneReceiver.answer(() => ({ status: 410 }))
      yield* appendEvent()
      yield* sql`UPDATE webhook_deliveries SET due_at = due_at + interval '1 hour' WHERE endpoint_id = ${webhook.id}`
      yield* (yield* Webhooks).update(webhook.id, { url: goneReceiver.url })
      yield* appendEvent()
      yield* runPass(goneReceiver, webhook.id)
      yield* untilDeliveries(webhook.id, (rows) => rows.map(({ status }) => status).join() === "pending,exhausted")
      yield* TestClock.adjust("2 hours")
      yield* pass
      assert.strictEqual(goneReceiver.received.length, 1)
      yield* (yield* Webhooks).update(webhook.id, { url: receiver.url, is_active: true })
      yield* runPass(receiver, webhook.id)
      assert.strictEqual((yield* deliveriesOf(webhook.id))[0]!.status, "delivered")
    })
  )

  it.effect("whose secret is rotated begins to count again", () =>
    Effect.gen(function* () {
      const receiver = yield* makeReceiver
      receiver.answer(() => ({ status: 401 }))
      const { webhook } = yield* makeEndpoint(receiver.url, onlyProducts)
      for (let failures = 0; failures < 9; failures++) {
        yield* appendEvent()
        yield* runPass(receiver, webhook.id)
      }
      yield* (yield* Webhooks).update(webhook.id, { rotate_secret: true })
      yield* appendEvent()
      yield* runPass(receiver, webhook.id)
      assert.isTrue(yield* isActive(webhook.id))
    })
  )

  it.effect("that was moved to another address is not disabled by what the old one still answers", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const [old, receiver] = [yield* makeReceiver, yield* makeReceiver]
      const responses: Array<(status: number) => void> = []
      old.answer(() => ({ respond: (response) => void responses.push((status) => response.writeHead(status).end()) }))
      const { webhook } = yield* makeEndpoint(old.url, onlyProducts)
      yield* Effect.replicateEffect(appendEvent(), 2)
      yield* pass
      yield* Effect.replicateEffect(old.next, 2)
      yield* (yield* Webhooks).update(webhook.id, { url: receiver.url })
      responses[0]!(410)
      responses[1]!(500)
      yield* untilSettled(webhook.id)
      const counted = sql`SELECT is_active, exhausted_in_a_row AS given_up FROM webhook_endpoints WHERE id = ${webhook.id}`
      assert.deepStrictEqual(yield* counted, [{ is_active: true, given_up: 0 }])
      yield* appendEvent()
      yield* runPass(receiver, webhook.id)
      assert.strictEqual((yield* deliveriesOf(webhook.id))[2]!.status, "delivered")
    })
  )
})
