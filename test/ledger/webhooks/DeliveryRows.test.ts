/** The queue's statements: who may lease which deliveries, and who may record their outcome. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { claim, claimMax, type Outcome, recordOutcomes, release } from "../../../src/ledger/webhooks/DeliveryRows.ts"
import { appendEvent, deliveriesOf, layerWebhooks, makeEndpoint } from "../../support/http/Webhooks.ts"

const onlyProducts = { event_types: ["product.created"] }
const now = 1_000_000
const later = now + 30_000

/** Leases the deliveries that are due at an instant; every endpoint has this capacity. */
const lease = Effect.fnUntraced(function* (
  at: number,
  leasedUntil: number,
  first = 100,
  capacities: Readonly<Record<string, number>> = {}
) {
  const sql = yield* SqlClient.SqlClient
  const capacity = { initial: first, known: new Map(Object.entries(capacities)) }
  const claimed = yield* claim(sql, { now: at, leasedUntil, capacity, salt: 1 })
  return claimed.flatMap(({ endpoint_ids, sequence }) => endpoint_ids.map((endpoint_id) => ({ endpoint_id, sequence })))
})

const outcome = (
  leased: { readonly endpoint_id: string; readonly sequence: number },
  changes: Partial<Outcome>
): Outcome => ({
  ...leased,
  leased_until: later,
  status: "delivered",
  due_at: now,
  ended_at: now,
  failure: undefined,
  gone: false,
  revision: 1,
  ...changes
})

const write = Effect.fnUntraced(function* (...outcomes: ReadonlyArray<Outcome>) {
  return yield* recordOutcomes(yield* SqlClient.SqlClient, outcomes, { now, durably: false })
})

const failed = { status: "pending", due_at: now + 5_000, failure: "timeout" } as const

layer(layerWebhooks())("The queue", (it) => {
  it.effect("leases a delivery to one node, and to another only after the lease has ended", () =>
    Effect.gen(function* () {
      const { webhook } = yield* makeEndpoint("http://127.0.0.1:9/", onlyProducts)
      const sequence = yield* appendEvent()
      const leased = [{ endpoint_id: webhook.id, sequence }]
      assert.deepStrictEqual(yield* lease(now, later), leased)
      assert.deepStrictEqual(yield* lease(now, later), [])
      assert.deepStrictEqual(yield* lease(later - 1, later + 1), [])
      assert.deepStrictEqual(yield* lease(later, later + 30_000), leased)
    })
  )

  it.effect("accepts failure only from the lease's owner, and success from any node, once", () =>
    Effect.gen(function* () {
      const { webhook } = yield* makeEndpoint("http://127.0.0.1:9/", onlyProducts)
      const sequence = yield* appendEvent()
      const one = { endpoint_id: webhook.id, sequence }
      yield* lease(now, later)
      yield* lease(later, later + 30_000)
      assert.deepStrictEqual(yield* write(outcome(one, failed)), [])
      const [delivery] = yield* deliveriesOf(webhook.id)
      assert.deepInclude(delivery, { status: "pending", attempts: 0, leased_until: later + 30_000 })
      assert.lengthOf(yield* write(outcome(one, { ...failed, leased_until: later + 30_000 })), 1)
      assert.deepInclude((yield* deliveriesOf(webhook.id))[0], { attempts: 1, due_at: now + 5_000, leased_until: null })
      assert.lengthOf(yield* write(outcome(one, {})), 1)
      assert.deepInclude((yield* deliveriesOf(webhook.id))[0], { status: "delivered", attempts: 2, finished_at: now })
      assert.deepStrictEqual(yield* write(outcome(one, {}), outcome(one, failed)), [])
    })
  )

  it.effect("releases only deliveries that are still leased", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { webhook } = yield* makeEndpoint("http://127.0.0.1:9/", onlyProducts)
      const one = { endpoint_id: webhook.id, sequence: yield* appendEvent() }
      yield* lease(now, later)
      yield* release(sql, [{ ...one, leased_until: later - 1 }])
      assert.isNotNull((yield* deliveriesOf(webhook.id))[0]!.leased_until)
      yield* release(sql, [{ ...one, leased_until: later }])
      assert.isNull((yield* deliveriesOf(webhook.id))[0]!.leased_until)
    })
  )

  it.effect("gives each endpoint as many deliveries as its capacity allows, the earliest first", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      yield* sql`DELETE FROM webhook_deliveries`
      const endpoints = yield* Effect.replicateEffect(makeEndpoint("http://127.0.0.1:9/", onlyProducts), 3)
      const [limited, excluded, first] = endpoints.map(({ webhook }) => webhook.id) as [string, string, string]
      const sequences = yield* Effect.replicateEffect(appendEvent(), 6)
      yield* sql`UPDATE webhook_deliveries SET due_at = due_at - interval '1 hour' WHERE sequence = ${sequences[5]!}`
      yield* sql`DELETE FROM webhook_deliveries WHERE endpoint_id NOT IN (${limited}, ${excluded}, ${first})`
      const leased = yield* lease(now, later, 4, { [limited]: 2, [excluded]: 0 })
      const leasedFor = (id: string) =>
        leased.filter(({ endpoint_id }) => endpoint_id === id).map(({ sequence }) => sequence)
      assert.deepStrictEqual(leasedFor(limited), [sequences[0], sequences[5]])
      assert.deepStrictEqual(leasedFor(excluded), [])
      assert.deepStrictEqual(leasedFor(first), [...sequences.slice(0, 3), sequences[5]])
    })
  )

  it.effect("limits the rows of one statement, and counts by endpoint and period", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      yield* sql`DELETE FROM webhook_deliveries`
      const { webhook } = yield* makeEndpoint("http://127.0.0.1:9/", onlyProducts)
      const sequence = yield* appendEvent()
      yield* sql`
        INSERT INTO webhook_deliveries (endpoint_id, sequence, due_at, created_at)
        SELECT ${webhook.id}, n, to_timestamp(0), to_timestamp(0) FROM generate_series(1, ${sequence - 1}::int4) AS n`
      const many = yield* Effect.replicateEffect(makeEndpoint("http://127.0.0.1:9/", onlyProducts), 60)
      yield* Effect.replicateEffect(appendEvent(), 10)
      assert.lengthOf(yield* lease(now, later), claimMax)
      const one = { endpoint_id: webhook.id }
      const outcomes = [
        outcome({ ...one, sequence }, {}),
        outcome({ ...one, sequence: sequence - 1 }, failed),
        outcome({ ...one, sequence: sequence - 2 }, { ...failed, status: "exhausted" })
      ]
      yield* sql`UPDATE webhook_deliveries SET leased_until = to_timestamp(${later / 1_000}::int8)`
      yield* write(...outcomes)
      yield* write(outcome({ endpoint_id: many[0]!.webhook.id, sequence: sequence + 1 }, {}))
      const counts = yield* sql`
        SELECT delivered, failed, exhausted, period FROM webhook_delivery_counts WHERE endpoint_id = ${webhook.id}`
      assert.deepStrictEqual(counts, [{ delivered: 1, failed: 2, exhausted: 1, period: 600_000 }])
    })
  )
})
