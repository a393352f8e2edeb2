/** Webhook endpoints as records: what is stored, what is returned, and what other callers see. */
import { assert, layer } from "@effect/vitest"
import { Clock, Effect, Schema } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import { WebhookEndpointCreate, WebhookEndpointUpdate } from "../../../src/ledger/webhooks/Webhook.ts"
import { Webhooks } from "../../../src/ledger/webhooks/Webhooks.ts"
import { eventsOf, recorded, refusalOf, walk } from "../../support/database/Services.ts"
import { layerWebhooks } from "../../support/http/Webhooks.ts"

const url = "https://8.8.8.8/hooks/T0KEN?key=also-a-secret"

layer(layerWebhooks({ webhookAllowLocal: false }))("Webhooks", (it) => {
  it.effect("creates an active endpoint for all events and shows its secret", () =>
    Effect.gen(function* () {
      const webhooks = yield* Webhooks
      const now = yield* Clock.currentTimeMillis
      const { answer, events } = yield* recorded(webhooks.create({ name: "billing", url }))
      const { secret, webhook } = answer
      assert.deepStrictEqual(webhook, {
        id: webhook.id,
        name: "billing",
        url,
        secret_prefix: secret.slice(0, 10),
        event_types: [],
        is_active: true,
        created_at: now,
        updated_at: now
      })
      assert.match(webhook.id, /^wh_[0-9A-Z]{26}$/)
      assert.match(secret, /^whsec_[A-Za-z0-9+/]{43}=$/)
      assert.deepStrictEqual(yield* webhooks.get(webhook.id), webhook)
      assert.deepStrictEqual(events, [
        {
          event_type: "webhook.created",
          resource_type: "webhook",
          metadata: { name: "billing", url: "https://8.8.8.8", event_types: [], is_active: true }
        }
      ])
    })
  )

  it.effect("replaces a secret that no master key decrypts, without signing with the old one", () =>
    Effect.gen(function* () {
      const webhooks = yield* Webhooks
      const sql = yield* SqlClient.SqlClient
      const { secret, webhook } = yield* webhooks.create({ name: "lost", url })
      yield* sql`UPDATE webhook_endpoints SET secret_sealed = 'lost with its key' WHERE id = ${webhook.id}`
      const rotated = yield* webhooks.update(webhook.id, { rotate_secret: true })
      assert.notStrictEqual("secret" in rotated ? rotated.secret : secret, secret)
      const [row] =
        yield* sql`SELECT previous_secret_sealed, previous_secret_until FROM webhook_endpoints WHERE id = ${webhook.id}`
      assert.deepStrictEqual(row, { previous_secret_sealed: null, previous_secret_until: null })
    })
  )

  it.effect("keeps the caller's values, with each event type once", () =>
    Effect.gen(function* () {
      const webhooks = yield* Webhooks
      const { secret, webhook } = yield* webhooks.create({
        name: "own",
        url,
        secret: "a secret of my own",
        event_types: ["license.*", "product.created", "license.*"],
        is_active: false
      })
      assert.strictEqual(secret, "a secret of my own")
      assert.deepStrictEqual(
        [webhook.secret_prefix, webhook.event_types, webhook.is_active],
        ["a se", ["license.*", "product.created"], false]
      )
    })
  )

  it.effect("stores secrets sealed, and never reveals them or the receiver's address", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const webhooks = yield* Webhooks
      const created = yield* webhooks.create({ name: "sealed", url })
      const rotated = yield* webhooks.update(created.webhook.id, { rotate_secret: true, url: `${url}-2` })
      yield* webhooks.update(created.webhook.id, { secret: "one more secret of my own" })
      const secrets = [created.secret, "secret" in rotated ? rotated.secret : "", "one more secret of my own"]
      const [row] = yield* sql<{ secret_sealed: Uint8Array; previous_secret_sealed: Uint8Array; text: string }>`
        SELECT secret_sealed, previous_secret_sealed, webhook_endpoints::text AS text FROM webhook_endpoints
        WHERE id = ${created.webhook.id}`
      const stored = [
        row!.text,
        ...[row!.secret_sealed, row!.previous_secret_sealed].map((sealed) => Buffer.from(sealed).toString("latin1"))
      ].join()
      const eventsText = JSON.stringify(yield* eventsOf(created.webhook.id))
      for (const secret of secrets) {
        assert.notInclude(stored, secret)
        assert.notInclude(eventsText, secret)
        assert.notInclude(eventsText, secret.slice(6, 20))
      }
      assert.notInclude(eventsText, "T0KEN")
      assert.notInclude(eventsText, "also-a-secret")
    })
  )

  it.effect("updates the given fields and records the changes", () =>
    Effect.gen(function* () {
      const webhooks = yield* Webhooks
      const { webhook } = yield* webhooks.create({ name: "old", url, event_types: ["license.*"] })
      yield* TestClock.adjust(5)
      const now = yield* Clock.currentTimeMillis
      const input = { name: "new", url: "https://1.1.1.1/", event_types: [], is_active: false }
      const { answer, events } = yield* recorded(webhooks.update(webhook.id, input))
      assert.deepStrictEqual(answer, { ...webhook, ...input, updated_at: now })
      assert.deepStrictEqual(yield* webhooks.get(webhook.id), answer)
      assert.deepStrictEqual(events, [
        {
          event_type: "webhook.updated",
          resource_type: "webhook",
          metadata: {
            changes: {
              name: { old: "old", new: "new" },
              url: { old: "https://8.8.8.8", new: "https://1.1.1.1" },
              event_types: { old: ["license.*"], new: [] },
              is_active: { old: true, new: false }
            }
          }
        }
      ])
    })
  )

  it.effect("writes and records nothing when nothing changes", () =>
    Effect.gen(function* () {
      const webhooks = yield* Webhooks
      const { secret, webhook } = yield* webhooks.create({ name: "same", url, event_types: ["license.*"] })
      yield* TestClock.adjust(5)
      for (const input of [
        {},
        { name: "same", url, is_active: true },
        { event_types: ["license.*", "license.*"] },
        { rotate_secret: false },
        { secret }
      ]) {
        const { answer, events } = yield* recorded(webhooks.update(webhook.id, input))
        assert.deepStrictEqual([answer, events], [webhook, []])
      }
    })
  )

  it.effect("rotates: returns a new secret if it generated one, and none if the caller chose it", () =>
    Effect.gen(function* () {
      const webhooks = yield* Webhooks
      const { secret, webhook } = yield* webhooks.create({ name: "rotated", url })
      const created = yield* recorded(webhooks.update(webhook.id, { rotate_secret: true }))
      if (!("secret" in created.answer)) return assert.fail("no secret")
      assert.match(created.answer.secret, /^whsec_/)
      assert.notStrictEqual(created.answer.secret, secret)
      assert.strictEqual(created.answer.webhook.secret_prefix, created.answer.secret.slice(0, 10))
      assert.deepStrictEqual(created.events, [
        {
          event_type: "webhook.secret_rotated",
          resource_type: "webhook",
          metadata: {
            changes: { secret_prefix: { old: secret.slice(0, 10), new: created.answer.webhook.secret_prefix } }
          }
        }
      ])
      const given = yield* recorded(webhooks.update(webhook.id, { secret: "sixteen letters!", name: "renamed" }))
      assert.deepStrictEqual(given.answer, { ...created.answer.webhook, name: "renamed", secret_prefix: "sixt" })
      assert.deepStrictEqual(
        given.events.map(({ event_type }) => event_type),
        ["webhook.secret_rotated", "webhook.updated"]
      )
    })
  )

  it.effect("refuses two secrets at once, and addresses that deliveries must not go to", () =>
    Effect.gen(function* () {
      const webhooks = yield* Webhooks
      const { webhook } = yield* webhooks.create({ name: "guarded", url })
      const both = { rotate_secret: true, secret: "sixteen letters!" }
      assert.deepStrictEqual(yield* refusalOf(webhooks.update(webhook.id, both)), ["VALIDATION_ERROR", "rotate_secret"])
      for (const address of [
        "http://8.8.8.8/",
        "https://127.0.0.1/",
        "https://localhost/",
        "https://a:b@8.8.8.8/",
        "no url"
      ]) {
        const refused = ["VALIDATION_ERROR", "url"] as const
        assert.deepStrictEqual(yield* refusalOf(webhooks.create({ name: "x", url: address })), refused)
        assert.deepStrictEqual(yield* refusalOf(webhooks.update(webhook.id, { url: address })), refused)
      }
      assert.deepStrictEqual(yield* webhooks.get(webhook.id), webhook)
    })
  )

  it.effect("deletes permanently; an unknown id is NOT_FOUND even if other parameters are invalid", () =>
    Effect.gen(function* () {
      const webhooks = yield* Webhooks
      const { webhook } = yield* webhooks.create({ name: "gone", url })
      const { events } = yield* recorded(webhooks.delete(webhook.id))
      assert.deepStrictEqual(events, [
        { event_type: "webhook.deleted", resource_type: "webhook", metadata: { name: "gone" } }
      ])
      for (const attempt of [
        webhooks.get(webhook.id),
        webhooks.delete(webhook.id),
        webhooks.update(webhook.id, { name: "back" }),
        webhooks.update(webhook.id, { url: "http://127.0.0.1/" }),
        webhooks.update(webhook.id, { rotate_secret: true, secret: "sixteen letters!" })
      ]) {
        assert.deepStrictEqual(yield* refusalOf(attempt), ["NOT_FOUND", "id"])
      }
    })
  )

  it.effect("lists the newest first, and paging returns every endpoint once while others are created", () =>
    Effect.gen(function* () {
      const webhooks = yield* Webhooks
      const make = Effect.andThen(TestClock.adjust(1), webhooks.create({ name: "walked", url }))
      for (let count = 0; count < 7; count++) yield* make
      const before = (yield* webhooks.list({ limit: 200 })).items.map(({ id }) => id)
      assert.deepStrictEqual(
        (yield* walk(webhooks.list, 3, make)).map(({ id }) => id),
        before
      )
      yield* webhooks.update(before[0]!, { is_active: false })
      const inactive = (yield* webhooks.list({ is_active: "false" })).items
      assert.include(
        inactive.map(({ id }) => id),
        before[0]
      )
      assert.isTrue(inactive.every(({ is_active }) => !is_active))
    })
  )

  it.effect("accepts known event types and patterns, and secrets of 16 to 256 characters", () =>
    Effect.gen(function* () {
      const accepts = (schema: Schema.Decoder<unknown>, input: unknown) =>
        Effect.map(Effect.exit(Schema.decodeUnknownEffect(schema)(input)), ({ _tag }) => _tag === "Success")
      const create = (input: object) => accepts(WebhookEndpointCreate, { name: "x", url, ...input })
      const update = (input: object) => accepts(WebhookEndpointUpdate, input)
      for (const event_types of [
        [],
        ["license.activated"],
        ["license.*", "webhook.*"],
        ["usage.consumed", "lease.*"]
      ]) {
        assert.isTrue((yield* create({ event_types })) && (yield* update({ event_types })), event_types.join())
      }
      for (const type of [
        "",
        "*",
        "license",
        "license.",
        "license.unknown",
        "nothing.*",
        "*.created",
        "License.*",
        "license.act*"
      ]) {
        assert.isFalse((yield* create({ event_types: [type] })) || (yield* update({ event_types: [type] })), type)
      }
      for (const [length, taken] of [
        [15, false],
        [16, true],
        [256, true],
        [257, false]
      ] as const) {
        assert.strictEqual(yield* create({ secret: "s".repeat(length) }), taken, String(length))
      }
      assert.isTrue(yield* create({ url: `https://8.8.8.8/${"p".repeat(2_048 - 16)}` }))
      assert.isFalse(yield* create({ url: `https://8.8.8.8/${"p".repeat(2_048 - 15)}` }))
      for (const input of [{ name: null }, { is_active: null }, { event_types: null }, { secret: null }]) {
        assert.isFalse(yield* create(input), JSON.stringify(input))
      }
    })
  )
})
