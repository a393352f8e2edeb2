/** The events of an import say of a record what those of the API say. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { EventLog } from "../../../src/ledger/events/EventLog.ts"
import { Importing } from "../../../src/tools/transfer/Importing.ts"
import { Database } from "../../support/database/Database.ts"
import { at, product, unitOf } from "./Records.ts"

const layerImporting = Importing.layer.pipe(Layer.provide(EventLog.layer), Layer.provideMerge(Database.layer))

const secret = { secret_prefix: "whsec_AAAA", secret_sealed: "00" }

layer(layerImporting)("The events of an import", (it) => {
  it.effect("name an endpoint without path and query, which are often secrets, and the limits of an API key", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { write } = yield* Importing
      const times = { created_at: at, updated_at: at }
      const url = "https://hooks.example/services/secret-path?token=of-the-receiver"
      const key = { name: "limited", key_prefix: "lsm_AAAAAAAA", scopes: [], limited_scopes: ["license:read"] }
      const limits = {
        allowed_cidrs: [],
        product_ids: ["prod_1"],
        is_active: true,
        is_bootstrap: false,
        created_at: at
      }
      yield* write([unitOf(product("prod_1"))])
      yield* write([unitOf({ type: "api_key", id: "key_1", token_hash: "00".repeat(32), ...key, ...limits })])
      yield* write([
        unitOf({
          type: "webhook",
          id: "wh_1",
          name: "hook",
          url,
          event_types: [],
          is_active: true,
          ...secret,
          ...times
        })
      ])
      const events = yield* sql<{ readonly metadata: object }>`
        SELECT metadata - 'request_id' AS metadata FROM event_log
        WHERE event_type IN ('api_key.created', 'webhook.created') ORDER BY event_type`
      const { is_active: _, is_bootstrap: __, created_at: ___, ...shown } = limits
      assert.deepStrictEqual(
        events.map(({ metadata }) => metadata),
        [
          { name: key.name, key_prefix: key.key_prefix, scopes: key.limited_scopes, ...shown, imported: true },
          { name: "hook", url: "https://hooks.example", event_types: [], is_active: true, imported: true }
        ]
      )
    })
  )

  it.effect("are recorded once of a record that a batch has twice, as from a file with a repeated line", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { write } = yield* Importing
      const { present, written } = yield* write([unitOf(product("prod_2")), unitOf(product("prod_2"))])
      const events = yield* sql`SELECT FROM event_log WHERE resource_id = 'prod_2'`
      assert.deepStrictEqual([written.get("product"), present, events.length], [1, 1, 1])
    })
  )
})
