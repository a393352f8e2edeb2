/** The queue's statements: who may take what, and who may say how it ended. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { claim, claimMax, type Outcome, recordOutcomes, release } from "../../src/webhooks/DeliveryRows.ts"
import { appendEvent, deliveriesOf, layerWebhooks, makeEndpoint } from "../support/Webhooks.ts"

const onlyProducts = { event_types: ["product.created"] }
const now = 1_000_000
const later = now + 30_000

/** Takes what is due at an instant; every endpoint has this much room. */
const take = Effect.fnUntraced(function* (
  at: number,
  leasedUntil: number,
  first = 100,
  known: Readonly<Record<string, number>> = {}
) {
  const sql = yield* SqlClient.SqlClient
  const capacity = { initial: first, known: new Map(Object.entries(known)) }
  const claimed = yield* claim(sql, { now: at, leasedUntil, capacity, salt: 1 })
  return claimed.flatMap(({ endpoint_ids, sequence }) => endpoint_ids.map((endpoint_id) => ({ endpoint_id, sequence })))
})

const outcome = (
  taken: { readonly endpoint_id: string; readonly sequence: number },
  rest: Partial<Outcome>
): Outcome => ({
  ...taken,
  leased_until: later,
  status: "delivered",
  due_at: now,
  ended_at: now,
  failure: undefined,
  gone: false,
  ...rest
})

const write = Effect.fnUntraced(function* (...outcomes: ReadonlyArray<Outcome>) {
  return yield* recordOutcomes(yield* SqlClient.SqlClient, outcomes, { now, durably: false })
})

const failed = { status: "pending", due_at: now + 5_000, failure: "timeout" } as const

layer(layerWebhooks())("The queue", (it) => {
  it.effect("gives a delivery to one, and to another only when the lease is over", () =>
    Effect.gen(function* () {
      const { webhook } = yield* makeEndpoint("http://127.0.0.1:9/", onlyProducts)
      const sequence = yield* appendEvent()
      const taken = [{ endpoint_id: webhook.id, sequence }]
      assert.deepStrictEqual(yield* take(now, later), taken)
      assert.deepStrictEqual(yield* take(now, later), [])
      assert.deepStrictEqual(yield* take(later - 1, later + 1), [])
      assert.deepStrictEqual(yield* take(later, later + 30_000), taken)
    })
  )

  it.effect("takes failure only from who holds the lease, and success from anyone, once", () =>
    Effect.gen(function* () {
      const { webhook } = yield* makeEndpoint("http://127.0.0.1:9/", onlyProducts)
      const sequence = yield* appendEvent()
      const one = { endpoint_id: webhook.id, sequence }
      yield* take(now, later)
      yield* take(later, later + 30_000)
      assert.deepStrictEqual(yield* write(outcome(one, failed)), [])
      const [held] = yield* deliveriesOf(webhook.id)
      assert.deepInclude(held, { status: "pending", attempts: 0, leased_until: later + 30_000 })
      assert.lengthOf(yield* write(outcome(one, { ...failed, leased_until: later + 30_000 })), 1)
      assert.deepInclude((yield* deliveriesOf(webhook.id))[0], { attempts: 1, due_at: now + 5_000, leased_until: null })
      assert.lengthOf(yield* write(outcome(one, {})), 1)
      assert.deepInclude((yield* deliveriesOf(webhook.id))[0], { status: "delivered", attempts: 2, finished_at: now })
      assert.deepStrictEqual(yield* write(outcome(one, {}), outcome(one, failed)), [])
    })
  )

  it.effect("gives back only what is still held", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { webhook } = yield* makeEndpoint("http://127.0.0.1:9/", onlyProducts)
      const one = { endpoint_id: webhook.id, sequence: yield* appendEvent() }
      yield* take(now, later)
      yield* release(sql, [{ ...one, leased_until: later - 1 }])
      assert.isNotNull((yield* deliveriesOf(webhook.id))[0]!.leased_until)
      yield* release(sql, [{ ...one, leased_until: later }])
      assert.isNull((yield* deliveriesOf(webhook.id))[0]!.leased_until)
    })
  )

  it.effect("gives each endpoint as much as it has room for, the earliest first", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      yield* sql`DELETE FROM webhook_deliveries`
      const made = yield* Effect.replicateEffect(makeEndpoint("http://127.0.0.1:9/", onlyProducts), 3)
      const [few, none, first] = made.map(({ webhook }) => webhook.id) as [string, string, string]
      const sequences = yield* Effect.replicateEffect(appendEvent(), 6)
      yield* sql`UPDATE webhook_deliveries SET due_at = due_at - interval '1 hour' WHERE sequence = ${sequences[5]!}`
      yield* sql`DELETE FROM webhook_deliveries WHERE endpoint_id NOT IN (${few}, ${none}, ${first})`
      const taken = yield* take(now, later, 4, { [few]: 2, [none]: 0 })
      const of = (id: string) => taken.filter(({ endpoint_id }) => endpoint_id === id).map(({ sequence }) => sequence)
      assert.deepStrictEqual(of(few), [sequences[0], sequences[5]])
      assert.deepStrictEqual(of(none), [])
      assert.deepStrictEqual(of(first), [...sequences.slice(0, 3), sequences[5]])
    })
  )

  it.effect("gives no more than one statement should, and counts by endpoint and period", () =>
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
      assert.lengthOf(yield* take(now, later), claimMax)
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
