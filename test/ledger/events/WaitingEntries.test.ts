/**
 * What entries that wait for their numbers mean for others: for webhook endpoints that change, and for requests that read all that
 * is committed. The clock stands still, so that commits store their entries all the time.
 */
import { assert, layer } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import type { Entry } from "../../../src/ledger/events/Entry.ts"
import { Delivery } from "../../../src/ledger/webhooks/Delivery.ts"
import { Webhooks } from "../../../src/ledger/webhooks/Webhooks.ts"
import { openSession } from "../../../src/platform/postgres/driver/Postgres.ts"
import { isLogBusy } from "../../../src/platform/postgres/queries/Sql.ts"
import { Importing } from "../../../src/tools/transfer/Importing.ts"
import { Database } from "../../support/database/Database.ts"
import { event, makeStoring, waitingCount } from "../../support/database/StoredEntries.ts"
import { appendEvent, layerWebhooks, makeEndpoint, makeReceiver } from "../../support/http/Webhooks.ts"
import { poll } from "../../support/rules/Poll.ts"
import { unitOf } from "../../tools/transfer/Records.ts"

const nowhere = "http://127.0.0.1:9/"
const licenses = { event_types: ["license.*"] }

/** Commits an entry that waits. */
const makeCommit = Effect.map(makeStoring, ({ commit, log }) => ({
  commit,
  log,
  store: Effect.fnUntraced(function* (entry: Entry) {
    yield* commit(entry)
    assert.strictEqual(yield* waitingCount, 1)
  })
}))

/** The resources of the events that an endpoint gets. */
const namesOwedTo = Effect.fnUntraced(function* (endpointId: string) {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<{ readonly name: string }>`
    SELECT resource_id AS name FROM webhook_deliveries JOIN events USING (sequence)
    WHERE endpoint_id = ${endpointId} ORDER BY sequence`
  return rows.map(({ name }) => name)
})

layer(layerWebhooks())("Entries that were committed before a webhook endpoint", (it) => {
  it.effect("was created, changed or made inactive get the deliveries of the endpoints before", () =>
    Effect.gen(function* () {
      const webhooks = yield* Webhooks
      const { log, store } = yield* makeCommit
      const { webhook } = yield* makeEndpoint(nowhere, licenses)
      yield* store(event("a"))
      const later = yield* webhooks.create({ name: "later", url: nowhere, ...licenses })
      yield* store(event("b"))
      yield* webhooks.update(webhook.id, { event_types: ["product.*"] })
      yield* store(event("c"))
      yield* log.numberWaiting
      yield* store(event("d", "product.created"))
      yield* webhooks.update(webhook.id, { is_active: false })
      yield* store(event("e", "product.created"))
      yield* log.numberWaiting
      assert.deepStrictEqual(yield* namesOwedTo(webhook.id), ["a", "b", "d"])
      assert.deepStrictEqual(yield* namesOwedTo(later.webhook.id), ["b", "c"])
    })
  )

  it.effect("was disabled because its receiver is gone are delivered later", () =>
    Effect.gen(function* () {
      const { store } = yield* makeCommit
      const receiver = yield* makeReceiver
      const { webhook } = yield* makeEndpoint(receiver.url, licenses)
      let respond: (() => void) | undefined
      receiver.answer(() => ({
        respond: (response) => {
          respond = () => void response.writeHead(410).end()
        }
      }))
      yield* appendEvent({ event_type: "license.activated", resource_id: "first" })
      yield* (yield* Delivery).pass
      yield* receiver.next
      yield* store(event("second"))
      respond!()
      yield* poll((yield* Webhooks).get(webhook.id), ({ is_active }) => !is_active)
      assert.deepStrictEqual(yield* namesOwedTo(webhook.id), ["first", "second"])
    })
  )

  it.effect("was imported are not delivered to it", () =>
    Effect.gen(function* () {
      const { log, store } = yield* makeCommit
      const { write } = Context.get(yield* Layer.build(Importing.layer), Importing)
      const at = "2026-01-02T03:04:05.000Z"
      yield* store(event("before"))
      yield* write([
        unitOf({
          ...{ type: "webhook", id: "wh_imported", name: "I", url: nowhere, ...licenses, is_active: true },
          ...{ secret_prefix: "whsec_", secret_sealed: "00", created_at: at, updated_at: at }
        })
      ])
      yield* store(event("after"))
      yield* log.numberWaiting
      assert.deepStrictEqual(yield* namesOwedTo("wh_imported"), ["after"])
    })
  )
})

layer(layerWebhooks())("A request's transaction that reads all entries", (it) => {
  it.effect("fails if those before it are not numbered in time", () =>
    Effect.gen(function* () {
      const { log, store } = yield* makeCommit
      const sql = yield* SqlClient.SqlClient
      yield* store(event("waits"))
      assert.isTrue(isLogBusy(yield* Effect.flip(sql.withTransaction(log.numberWaiting))))
      yield* log.numberWaiting
      yield* sql.withTransaction(log.numberWaiting)
    })
  )

  it.effect("does not wait for those that are committed after it has begun to wait", () =>
    Effect.gen(function* () {
      const { commit, log, store } = yield* makeCommit
      const sql = yield* SqlClient.SqlClient
      const numbering = yield* openSession((yield* Database).url)
      const begun = sql`SELECT FROM pg_stat_activity
        WHERE datname = current_database() AND state = 'idle in transaction' AND query LIKE '%writer <%'`
      yield* store(event("before"))
      const numbered = Effect.gen(function* () {
        yield* poll(begun, (rows) => rows.length > 0)
        yield* numbering.values("BEGIN")
        yield* numbering.values("UPDATE event_sequence SET last = last")
        yield* commit(event("after"))
        yield* numbering.values("COMMIT")
      })
      yield* Effect.all([sql.withTransaction(log.numberWaiting), numbered], { concurrency: "unbounded" })
      assert.strictEqual(yield* waitingCount, 1)
      yield* log.numberWaiting
    })
  )
})
