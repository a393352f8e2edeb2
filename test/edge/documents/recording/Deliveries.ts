/** Delivers the events of the run as a node does, to receivers that keep what they get instead of a network. */
import { assert } from "@effect/vitest"
import { Clock, Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { EventLog } from "../../../../src/ledger/events/EventLog.ts"
import { Delivery } from "../../../../src/ledger/webhooks/Delivery.ts"
import { EndpointCache } from "../../../../src/ledger/webhooks/EndpointCache.ts"
import { Sender } from "../../../../src/ledger/webhooks/Sender.ts"

interface Delivered {
  readonly headers: Readonly<Record<string, string>>
  readonly body: { readonly type: string }
}

/** The receiver that keeps the first delivery of each type. */
export const receiverUrl = "https://hooks.example.com/licensing"
/** A receiver that is gone when it gets its first delivery. */
export const goneUrl = "https://hooks.example.com/gone"

// Those that the document describes.
const isDescribed = (name: string) => name.startsWith("x-service-") || name.startsWith("webhook-")

export class Deliveries extends Context.Service<
  Deliveries,
  {
    /** Delivers all events, and waits until the outcomes are stored. */
    readonly deliver: Effect.Effect<void>
    /** By type of event. */
    readonly kept: ReadonlyMap<string, Delivered>
  }
>()("licensing/test/documents/Deliveries") {
  static readonly layer = Layer.unwrap(
    Effect.sync(() => {
      const kept = new Map<string, Delivered>()
      const sender = Layer.succeed(
        Sender,
        Sender.of({
          post: (url, all, bytes) =>
            Effect.sync(() => {
              const text = Buffer.from(bytes).toString()
              const body = JSON.parse(text) as Delivered["body"]
              // Otherwise an example in a JSON document could not be verified.
              assert.strictEqual(JSON.stringify(body), text)
              const headers = Object.fromEntries(Object.entries(all).filter(([name]) => isDescribed(name)))
              if (url.href === receiverUrl && !kept.has(body.type)) kept.set(body.type, { headers, body })
              const isGone = url.href === goneUrl && body.type === "webhook.created"
              return { status: isGone ? 410 : 204, retryAfter: undefined }
            })
        })
      )
      return Layer.effect(Deliveries, makeDeliveries(kept)).pipe(
        Layer.provide(Delivery.layer),
        Layer.provide([sender, EndpointCache.layer]),
        Layer.provideMerge(EventLog.layer)
      )
    })
  )
}

const makeDeliveries = Effect.fnUntraced(function* (kept: ReadonlyMap<string, Delivered>) {
  const sql = yield* SqlClient.SqlClient
  const { pass } = yield* Delivery
  const clock = yield* Clock.Clock
  // Deliveries to a disabled endpoint wait until it is enabled again.
  const open = sql<{ readonly due: number; readonly leased: number }>`
    SELECT count(*) FILTER (WHERE d.leased_until IS NULL)::int AS due, count(d.leased_until)::int AS leased
    FROM webhook_deliveries d JOIN webhook_endpoints e ON e.id = d.endpoint_id
    WHERE d.status = 'pending' AND e.is_active`
  const deliver: Effect.Effect<void> = Effect.gen(function* () {
    for (;;) {
      const [{ due, leased } = { due: 0, leased: 0 }] = yield* open
      if (due + leased === 0) return
      if (due > 0) yield* pass
    }
  }).pipe(Effect.provideService(Clock.Clock, clock), Effect.orDie)
  return Deliveries.of({ deliver, kept })
})
