/**
 * Deliveries are written with their events: for which endpoints, all or none, and exactly from the moment that an
 * endpoint is active.
 */
import { assert, layer } from "@effect/vitest"
import { Context, Deferred, Effect, Fiber, Latch, Layer } from "effect"
import { SqlClient } from "effect/sql"
import type { NewEvent, UsageRow } from "../../../src/ledger/events/Entry.ts"
import { EventLog } from "../../../src/ledger/events/EventLog.ts"
import { Webhooks } from "../../../src/ledger/webhooks/Webhooks.ts"
import { activate } from "../../../src/licensing/rules/Activation.ts"
import { consume } from "../../../src/licensing/rules/Consumption.ts"
import { untilBlocked } from "../../support/database/Database.ts"
import { makeNode } from "../../support/database/LicenseNodes.ts"
import { makeLicense } from "../../support/database/StoredLicenses.ts"
import { appendEvent, deliveriesOf, layerWebhooks, makeEndpoint } from "../../support/http/Webhooks.ts"
import { hardware } from "../../support/rules/Licenses.ts"

const nowhere = "http://127.0.0.1:9/"

const typesOwedTo = Effect.fnUntraced(function* (endpointId: string) {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<{ event_type: string }>`
    SELECT event_type FROM webhook_deliveries JOIN events USING (sequence) WHERE endpoint_id = ${endpointId} ORDER BY sequence`
  return rows.map(({ event_type }) => event_type)
})

const consumption: UsageRow = {
  license_id: "lic_queued",
  feature_id: "feat_queued",
  feature_code: "export",
  action: "consume",
  event_id: "queued",
  amount: 1,
  balance_after: 1,
  device_id: "dev_queued",
  actor_type: "license",
  actor_id: "lic_queued",
  request_id: "req_queued",
  occurred_at: Date.UTC(2026, 0, 1)
}

const appendTypes = (...types: ReadonlyArray<NewEvent["event_type"]>) =>
  Effect.forEach(types, (event_type) => appendEvent({ event_type }), { discard: true })

layer(layerWebhooks())("Deliveries", (it) => {
  it.effect("are queued for all events, the listed ones, or all of a noun", () =>
    Effect.gen(function* () {
      const endpoint = (...event_types: ReadonlyArray<string>) => makeEndpoint(nowhere, { event_types })
      const all = yield* endpoint()
      const listed = yield* endpoint("license.activated", "product.deleted")
      const noun = yield* endpoint("license.*", "license.expired")
      const other = yield* endpoint("product_version.*")
      const inactive = yield* makeEndpoint(nowhere, { is_active: false })
      const types = [
        "license.activated",
        "license.expired",
        "product.created",
        "product.deleted",
        "product_version.created"
      ] as const
      // The endpoints created after the first one are events for it too.
      yield* (yield* SqlClient.SqlClient)`DELETE FROM webhook_deliveries`
      yield* appendTypes(...types)
      assert.deepStrictEqual(yield* typesOwedTo(all.webhook.id), [...types])
      assert.deepStrictEqual(yield* typesOwedTo(listed.webhook.id), ["license.activated", "product.deleted"])
      assert.deepStrictEqual(yield* typesOwedTo(noun.webhook.id), ["license.activated", "license.expired"])
      assert.deepStrictEqual(yield* typesOwedTo(other.webhook.id), ["product_version.created"])
      assert.deepStrictEqual(yield* typesOwedTo(inactive.webhook.id), [])
    })
  )

  it.effect("start with the endpoint's own creation and end with its deletion", () =>
    Effect.gen(function* () {
      const webhooks = yield* Webhooks
      const { webhook } = yield* webhooks.create({ name: "own", url: nowhere, event_types: ["webhook.*"] })
      yield* webhooks.update(webhook.id, { name: "renamed" })
      yield* webhooks.update(webhook.id, { is_active: false })
      yield* webhooks.update(webhook.id, { name: "silent" })
      yield* webhooks.update(webhook.id, { is_active: true })
      const owed = ["webhook.created", "webhook.updated", "webhook.updated"]
      assert.deepStrictEqual(yield* typesOwedTo(webhook.id), owed)
      yield* webhooks.delete(webhook.id)
      assert.deepStrictEqual(yield* typesOwedTo(webhook.id), owed)
    })
  )

  it.effect("are rolled back with their event", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const log = yield* EventLog
      const { webhook } = yield* makeEndpoint(nowhere)
      const failing = Effect.andThen(
        log.append({ event_type: "product.created", resource_type: "product", resource_id: "prod_1", metadata: {} }),
        Effect.fail("no")
      )
      yield* log.deliveriesQueued.close
      assert.strictEqual(yield* Effect.flip(sql.withTransaction(failing)), "no")
      assert.deepStrictEqual(yield* deliveriesOf(webhook.id), [])
      assert.isFalse(log.deliveriesQueued.isOpen())
      yield* appendEvent()
      assert.isTrue(log.deliveriesQueued.isOpen())
    })
  )

  it.effect("are queued from the commit of the endpoint on, also for a writer that began before it and waited", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const webhooks = yield* Webhooks
      const release = yield* Latch.make()
      const created = yield* Deferred.make<string>()
      const creating = yield* Effect.forkChild(
        sql.withTransaction(
          Effect.gen(function* () {
            const { webhook } = yield* webhooks.create({
              name: "slow",
              url: nowhere,
              event_types: ["usage.*", "product.*"]
            })
            yield* Deferred.succeed(created, webhook.id)
            yield* release.await
          })
        )
      )
      const id = yield* Deferred.await(created)
      // An event of each table.
      const both = Effect.gen(function* () {
        yield* (yield* EventLog).appendRows([consumption])
        return yield* appendEvent()
      })
      const waiting = yield* Effect.forkChild(sql.withTransaction(both))
      // The other transaction has begun its statement and waits for the counter that this one locks.
      yield* untilBlocked
      yield* release.open
      yield* Fiber.join(creating)
      const sequence = yield* Fiber.join(waiting)
      assert.deepStrictEqual(
        (yield* deliveriesOf(id)).map((row) => row.sequence),
        [sequence - 1, sequence]
      )
    })
  )

  it.effect("are queued exactly for later events while three nodes write", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const webhooks = yield* Webhooks
      const nodes = yield* Effect.replicateEffect(makeNode, 3)
      const licenses = yield* Effect.replicateEffect(makeLicense({ max_activations: 0 }), 3)
      const work = Effect.fnUntraced(function* (node: number) {
        const { keyHash, license } = licenses[node]!
        const activation = (index: number) => {
          const name = `n${node}m${index}`
          return nodes[node]!.ask(license, activate, { keyHash, binding: hardware(name), newDeviceId: `dev_${name}` })
        }
        const usage = { keyHash, binding: hardware(`n${node}m0`), feature_code: "export", amount: 1 }
        yield* activation(0)
        yield* Effect.forEach(
          Array.from({ length: 100 }, (_, index) => 1 + index),
          (index): Effect.Effect<unknown, unknown> =>
            index % 2 === 0
              ? activation(index)
              : nodes[node]!.ask(license, consume, { ...usage, event_id: `e${index}` }),
          { concurrency: 8 }
        )
      })
      const endpoints = Effect.forEach(
        Array.from({ length: 20 }),
        (_, index) =>
          webhooks.create({
            name: `e${index}`,
            url: nowhere,
            event_types: ["license.activated", "usage.*", "webhook.created"]
          }),
        { concurrency: 4 }
      )
      const [, endpointIds] = yield* Effect.all([Effect.forEach([0, 1, 2], work, { concurrency: 3 }), endpoints], {
        concurrency: 2
      })
      for (const { webhook } of endpointIds) {
        const [row] = yield* sql<{ owed: number; wrong: number; expected: number }>`
          WITH created AS (SELECT sequence FROM events WHERE event_type = 'webhook.created' AND resource_id = ${webhook.id})
          SELECT (SELECT count(*) FROM webhook_deliveries WHERE endpoint_id = ${webhook.id}) AS owed,
            (SELECT count(*) FROM webhook_deliveries d, created WHERE endpoint_id = ${webhook.id} AND d.sequence < created.sequence) AS wrong,
            (SELECT count(*) FROM events e, created WHERE e.sequence >= created.sequence
              AND event_type IN ('license.activated', 'usage.consumed', 'webhook.created')) AS expected`
        assert.strictEqual(row!.wrong, 0)
        assert.strictEqual(row!.owed, row!.expected)
        assert.isAbove(row!.owed, 0)
      }
    })
  )

  it.effect("open the latch of the node that wrote them, and no other", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      yield* makeEndpoint(nowhere)
      const other = Context.get(yield* Layer.build(Layer.fresh(EventLog.layer)), EventLog)
      const own = yield* EventLog
      yield* own.deliveriesQueued.close
      yield* sql.withTransaction(
        other.append({ event_type: "product.created", resource_type: "product", resource_id: "prod_1", metadata: {} })
      )
      assert.isFalse(own.deliveriesQueued.isOpen())
      assert.isTrue(other.deliveriesQueued.isOpen())
    })
  )
})
