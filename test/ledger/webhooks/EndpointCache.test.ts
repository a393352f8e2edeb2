/** The cached endpoints of a node are those of the database, also after it went back to an earlier state. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { EndpointCache } from "../../../src/ledger/webhooks/EndpointCache.ts"
import { Webhooks } from "../../../src/ledger/webhooks/Webhooks.ts"
import { layerWebhooks, makeEndpoint } from "../../support/http/Webhooks.ts"

const urlOf = Effect.fnUntraced(function* (id: string) {
  const sql = yield* SqlClient.SqlClient
  const { find } = yield* EndpointCache
  const [row] = yield* sql<{ revision: number }>`SELECT revision FROM webhook_endpoints WHERE id = ${id}`
  return (yield* find(new Map([[id, row?.revision ?? 1]]))).get(id)?.url.pathname
})

layer(EndpointCache.layer.pipe(Layer.provideMerge(layerWebhooks())))("Cached endpoints", (it) => {
  it.effect("follow an edit, the loss of an edit, and a deletion", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const webhooks = yield* Webhooks
      const { webhook } = yield* makeEndpoint("http://127.0.0.1:9/first")
      assert.strictEqual(yield* urlOf(webhook.id), "/first")
      yield* webhooks.update(webhook.id, { url: "http://127.0.0.1:9/lost" })
      assert.strictEqual(yield* urlOf(webhook.id), "/lost")
      yield* sql`UPDATE webhook_endpoints SET url = 'http://127.0.0.1:9/first', revision = 1 WHERE id = ${webhook.id}`
      assert.strictEqual(yield* urlOf(webhook.id), "/first")
      yield* webhooks.update(webhook.id, { url: "http://127.0.0.1:9/second" })
      assert.strictEqual(yield* urlOf(webhook.id), "/second")
      yield* webhooks.delete(webhook.id)
      assert.isUndefined(yield* urlOf(webhook.id))
    })
  )
})
