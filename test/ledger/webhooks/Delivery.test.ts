/** Deliveries as receivers see them: bodies, headers, signatures, and verification by third-party libraries. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { Webhook } from "standardwebhooks"
import { Delivery } from "../../../src/ledger/webhooks/Delivery.ts"
import { verifyWebhook } from "../../../src/ledger/webhooks/VerifyWebhook.ts"
import { Webhooks } from "../../../src/ledger/webhooks/Webhooks.ts"
import { hmacKey, hmacSha256 } from "../../../src/platform/signing/Hmac.ts"
import {
  appendEvent,
  deliveriesOf,
  layerWebhooks,
  makeEndpoint,
  makeReceiver,
  type Received,
  untilSettled
} from "../../support/http/Webhooks.ts"

const runPass = Effect.flatMap(Delivery, ({ pass: runPass }) => runPass)

const headersOf = ({ headers }: Received) => headers as Record<string, string>

/** Sends one event to its own endpoint and returns what the receiver got. */
const deliverOne = Effect.fnUntraced(function* (secret?: string) {
  const receiver = yield* makeReceiver
  const endpoint = yield* makeEndpoint(receiver.url, secret === undefined ? {} : { secret })
  const sequence = yield* appendEvent({
    event_type: "license.renewed",
    resource_type: "license",
    resource_id: "lic_1",
    metadata: { name: "Žofie – 日本 🗝", amount: 12.5, nothing: null }
  })
  yield* runPass
  const received = yield* receiver.next
  yield* untilSettled(endpoint.webhook.id)
  yield* (yield* Webhooks).delete(endpoint.webhook.id)
  return { ...endpoint, sequence, received, receiver }
})

// Third-party verifiers read the machine's clock, so this node uses it too.
layer(layerWebhooks(), { excludeTestServices: true })("A delivery", (it) => {
  it.effect("describes the event in the body and the headers", () =>
    Effect.gen(function* () {
      const { received, sequence, webhook } = yield* deliverOne()
      const body = JSON.parse(received.body.toString())
      assert.strictEqual(received.path, "/hooks?token=of-the-receiver")
      assert.deepStrictEqual(Object.keys(body), ["id", "type", "sequence", "created_at", "data"])
      assert.deepStrictEqual(
        { ...body, created_at: "" },
        {
          id: `evt_${sequence}`,
          type: "license.renewed",
          sequence,
          created_at: "",
          data: {
            actor_type: "system",
            actor_id: "service",
            resource_type: "license",
            resource_id: "lic_1",
            metadata: { name: "Žofie – 日本 🗝", amount: 12.5, nothing: null, request_id: "req_none" }
          }
        }
      )
      assert.match(body.created_at, /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/)
      const headers = headersOf(received)
      assert.strictEqual(headers["content-type"], "application/json")
      assert.strictEqual(headers["content-length"], String(received.body.length))
      assert.strictEqual(headers["x-service-event-sequence"], String(sequence))
      assert.strictEqual(headers["x-service-event-type"], "license.renewed")
      assert.strictEqual(headers["x-service-delivery-id"], `dlv_${webhook.id.slice(3)}_${sequence}`)
      assert.strictEqual(headers["webhook-id"], headers["x-service-delivery-id"])
    })
  )

  it.effect("is signed over timestamp, delivery id and raw body with the secret as UTF-8", () =>
    Effect.gen(function* () {
      const { received, secret } = yield* deliverOne()
      const headers = headersOf(received)
      const [, t, v1] = /^t=(\d+),v1=([0-9a-f]{64})$/.exec(headers["x-service-signature"] ?? "") ?? []
      assert.strictEqual(t, headers["webhook-timestamp"])
      const id = headers["x-service-delivery-id"]
      assert.strictEqual(v1, hmacSha256(hmacKey(Buffer.from(secret)), `${t}.${id}.`, received.body).toString("hex"))
    })
  )

  it.effect("is verified by our verifier and by the unmodified library of Standard Webhooks", () =>
    Effect.gen(function* () {
      const { received, secret, sequence } = yield* deliverOne()
      const { body, headers } = received
      const own = verifyWebhook({ secret, headers, body })
      assert.deepStrictEqual(own.valid && [own.type, own.sequence], ["license.renewed", sequence])
      const verified = new Webhook(secret).verify(body, headersOf(received)) as { readonly sequence: number }
      assert.strictEqual(verified.sequence, sequence)
      assert.throws(() => new Webhook(secret).verify(`${body} `, headersOf(received)))
    })
  )

  it.effect("is verified with a secret that the caller chose, in base64 after whsec_ or as any text", () =>
    Effect.gen(function* () {
      const encoded = `whsec_${Buffer.from("a key of the caller's own choice").toString("base64")}`
      const { received } = yield* deliverOne(encoded)
      new Webhook(encoded).verify(received.body, headersOf(received))
      assert.isTrue(verifyWebhook({ ...received, secret: encoded }).valid)
      for (const text of ["no base64: žluťoučký kůň 🐎", "whsec_not/base64!at=all"]) {
        const { received } = yield* deliverOne(text)
        assert.isTrue(verifyWebhook({ ...received, secret: text }).valid, text)
        const key = new TextEncoder().encode(text)
        new Webhook(key, { format: "raw" }).verify(received.body, headersOf(received))
      }
    })
  )

  it.effect("has the same bytes for every endpoint, and its own id for each", () =>
    Effect.gen(function* () {
      const receivers = [yield* makeReceiver, yield* makeReceiver]
      const endpoint = yield* Effect.forEach(receivers, ({ url }) =>
        makeEndpoint(url, { event_types: ["device.reset"] })
      )
      yield* appendEvent({ event_type: "device.reset", resource_type: "device", resource_id: "dev_1" })
      yield* runPass
      const [one, other] = yield* Effect.forEach(receivers, ({ next }) => next)
      yield* Effect.forEach(endpoint, ({ webhook }) => untilSettled(webhook.id))
      assert.isTrue(one!.body.equals(other!.body))
      assert.notStrictEqual(one!.headers["x-service-delivery-id"], other!.headers["x-service-delivery-id"])
      assert.isTrue(verifyWebhook({ ...one!, secret: endpoint[0]!.secret }).valid)
      assert.isFalse(verifyWebhook({ ...one!, secret: endpoint[1]!.secret }).valid)
    })
  )

  it.effect("is sent only while its endpoint exists and is active", () =>
    Effect.gen(function* () {
      const webhooks = yield* Webhooks
      const receiver = yield* makeReceiver
      const { webhook } = yield* makeEndpoint(receiver.url, { event_types: ["product.*"] })
      yield* appendEvent()
      yield* webhooks.update(webhook.id, { is_active: false })
      yield* appendEvent()
      yield* runPass
      assert.deepStrictEqual(
        (yield* deliveriesOf(webhook.id)).map(({ status, leased_until }) => [status, leased_until]),
        [["pending", null]]
      )
      yield* webhooks.update(webhook.id, { is_active: true })
      yield* runPass
      yield* receiver.next
      yield* untilSettled(webhook.id)
      yield* appendEvent()
      yield* webhooks.delete(webhook.id)
      yield* runPass
      assert.strictEqual(receiver.received.length, 1)
    })
  )

  it.effect("is verified by a third-party library with either secret after a rotation", () =>
    Effect.gen(function* () {
      const receiver = yield* makeReceiver
      const { secret, webhook } = yield* makeEndpoint(receiver.url)
      const rotated = yield* (yield* Webhooks).update(webhook.id, { rotate_secret: true })
      yield* runPass
      const { body, headers } = yield* receiver.next
      for (const one of [secret, "secret" in rotated ? rotated.secret : ""]) {
        new Webhook(one).verify(body, headers as Record<string, string>)
      }
      yield* untilSettled(webhook.id)
    })
  )
})

layer(layerWebhooks())("A delivery after a rotation", (it) => {
  it.effect("is signed with both secrets for 24 hours after a rotation, then with the new one only", () =>
    Effect.gen(function* () {
      const webhooks = yield* Webhooks
      const receiver = yield* makeReceiver
      const { secret, webhook } = yield* makeEndpoint(receiver.url)
      const rotated = yield* webhooks.update(webhook.id, { rotate_secret: true })
      const newer = "secret" in rotated ? rotated.secret : ""
      const next = Effect.gen(function* () {
        yield* runPass
        const received = yield* receiver.next
        yield* untilSettled(webhook.id)
        const nowSeconds = Number(received.headers["webhook-timestamp"])
        const verifies = (one: string) => verifyWebhook({ ...received, secret: one, nowSeconds }).valid
        return { received, verified: [secret, newer].map(verifies) }
      })
      const withBothSecrets = yield* next
      assert.deepStrictEqual(withBothSecrets.verified, [true, true])
      assert.match(
        String(withBothSecrets.received.headers["x-service-signature"]),
        /^t=\d+,v1=[0-9a-f]{64},v1=[0-9a-f]{64}$/
      )
      assert.match(String(withBothSecrets.received.headers["webhook-signature"]), /^v1,\S{44} v1,\S{44}$/)
      yield* TestClock.adjust("23 hours")
      yield* appendEvent()
      assert.deepStrictEqual((yield* next).verified, [true, true])
      yield* TestClock.adjust("1 hours")
      yield* appendEvent()
      const after = yield* next
      assert.deepStrictEqual(after.verified, [false, true])
      assert.match(String(after.received.headers["x-service-signature"]), /^t=\d+,v1=[0-9a-f]{64}$/)
    })
  )
})
