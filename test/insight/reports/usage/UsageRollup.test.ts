/** Summaries equal what the ledger alone gives, from whichever tables they read. */
import { assert, layer } from "@effect/vitest"
import { Clock, Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import * as fc from "fast-check"
import { UsageRollup } from "../../../../src/insight/reports/usage/UsageRollup.ts"
import { sourcesOf, splitPeriod, type TimeRange } from "../../../../src/insight/reports/usage/UsageSources.ts"
import { Database } from "../../../support/database/Database.ts"
import { TestServer } from "../../../support/http/TestServer.ts"
import {
  type Asked,
  append,
  bothRows,
  day,
  type Happening,
  history,
  hour,
  makeProduct,
  makeReports,
  minute,
  onTime,
  type Product,
  type Question,
  type TimeOfDay,
  type Use
} from "./UsageHistories.ts"

const seed = 20_261_120
const histories = fc.sample(history, { seed, numRuns: 40 })
const start = Date.UTC(2026, 0, 10)

const makeRollup = (limits: Parameters<typeof UsageRollup.layerWith>[0] = {}) =>
  Effect.map(Layer.build(Layer.fresh(UsageRollup.layerWith(limits))), (context) => Context.get(context, UsageRollup))

const askedOf = (
  products: ReadonlyArray<Product>,
  { from, length, product, whole, ...rest }: Question,
  now: number
): Asked => {
  const round = (time: number) => (whole ? Math.floor(time / day) * day : time)
  const to = length === undefined ? undefined : round(now - from + length)
  return {
    ...rest,
    from: round(now - from),
    ...(to === undefined || to <= round(now - from) ? undefined : { to }),
    ...(product === undefined ? undefined : { product_id: products[product]!.product })
  }
}

/** The tables read over all histories: a property of summaries that never read the rollup would prove nothing. */
const met = { rolled: 0, mixed: 0, ledger: 0 }

interface Node {
  readonly clock: TimeOfDay
  readonly reports: Effect.Success<typeof makeReports>
  readonly rollup: UsageRollup["Service"]
}

const happen = Effect.fnUntraced(function* (
  products: ReadonlyArray<Product>,
  { clock, reports, rollup }: Node,
  happening: Happening
) {
  const sql = yield* SqlClient.SqlClient
  const now = yield* Clock.currentTimeMillis
  if ("uses" in happening) return yield* append(products, happening.uses, now)
  if ("hours" in happening) return yield* Effect.sync(() => clock.advance(happening.hours * hour))
  if ("steps" in happening) {
    for (let step = 0; step < happening.steps; step++) yield* rollup.step
    return
  }
  if ("deleted" in happening) {
    const { feature, product } = happening.deleted
    return yield* sql`DELETE FROM features WHERE id = ${products[product]!.features[feature]}`
  }
  if ("renamed" in happening) {
    const { code, feature, product } = happening.renamed
    return yield* sql`
      UPDATE features f SET code = ${code} WHERE id = ${products[product]!.features[feature]}
        AND NOT EXISTS (SELECT FROM features o WHERE o.product_id = f.product_id AND o.code = ${code})`
  }
  const asked = askedOf(products, happening.question, now)
  const { ledger, rollup: rolled } = yield* reports.snapshot(sourcesOf(reports.sql, asked))
  met[rolled.length === 0 ? "ledger" : ledger.length === 0 ? "rolled" : "mixed"]++
  const [rows, plain] = yield* bothRows(reports, asked)
  assert.deepStrictEqual(rows, plain as never, JSON.stringify({ asked, ledger, rolled }))
})

layer(Database.layer, { timeout: 60_000, excludeTestServices: true })("A summary", (it) => {
  for (const [index, happenings] of histories.entries()) {
    it.effect(`equals the ledger's for every history (history ${index} of seed ${seed})`, () =>
      onTime(start + index * 40 * day, (clock) =>
        Effect.gen(function* () {
          const node = {
            clock,
            reports: yield* makeReports,
            rollup: yield* makeRollup({ scanRowsMax: 20, dayRowsMax: 60 })
          }
          const products = [yield* makeProduct, yield* makeProduct]
          for (const happening of happenings) yield* happen(products, node, happening)
        })
      )
    )
  }

  it.effect("read rows from sums, from the ledger, and from both", () =>
    Effect.sync(() => {
      for (const [kind, count] of Object.entries(met)) assert.isAbove(count, 10, kind)
    })
  )
})

const used = (more: Partial<Use> = {}): Use => ({
  product: 0,
  license: 0,
  feature: 0,
  action: "consume",
  amount: 1,
  age: 0,
  ...more
})

/** Days of a product with one use at noon of each, all complete except the last; `asked` is about all, by day. */
const makeDays = Effect.fnUntraced(function* (days: number) {
  const product = yield* makeProduct
  const now = yield* Clock.currentTimeMillis
  const uses = Array.from({ length: days }, (_, ago) => used({ age: (days - 1 - ago) * day }))
  yield* append([product], uses, now)
  const from = Math.floor(now / day) * day - (days - 1) * day
  const asked: Asked = { from, bucket: "1d", product_id: product.product, group_by: ["product_id"] }
  return { product, now, asked }
})

/** Falsifies the sums, so that a result read from them differs from one read from the ledger. */
const falsify = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`UPDATE usage_rollup SET consumed = consumed + 1000`
})

const noonOf = (index: number) => start + (1_000 + index * 40) * day + 12 * hour

layer(Database.layer, { timeout: 60_000, excludeTestServices: true })("The sums", (it) => {
  it.effect("provide complete days; the ledger provides today, late rows, and the partial days of the period", () =>
    onTime(noonOf(0), (clock) =>
      Effect.gen(function* () {
        // Every day is too long for the usual connection.
        const [reports, rollup] = [yield* makeReports, yield* makeRollup({ quickRowsMax: 0 })]
        const { asked, product, now } = yield* makeDays(6)
        yield* rollup.pass
        yield* falsify
        const consumed = (more: Partial<Asked> = {}) =>
          Effect.map(bothRows(reports, { ...asked, ...more }), ([rows]) => rows.map((row) => row.consumed))
        assert.deepStrictEqual(yield* consumed(), [1001, 1001, 1001, 1001, 1001, 1])
        assert.deepStrictEqual(yield* consumed({ from: asked.from + 1 }), [1, 1001, 1001, 1001, 1001, 1])
        assert.deepStrictEqual(yield* consumed({ to: asked.from + 2 * day - 1 }), [1001, 1])
        assert.deepStrictEqual(yield* consumed({ group_by: ["license_id"] }), [1, 1, 1, 1, 1, 1])
        assert.deepStrictEqual(yield* consumed({ tz: "Europe/Zurich" }), [1, 1, 1, 1, 1, 1])
        const { bucket: _, ...whole } = asked
        const [[sum] = []] = yield* bothRows(reports, whole)
        assert.deepInclude(sum, { consumed: 6, licenses: 1 })
        // A late row of the second day is in the result immediately, whether or not the worker has processed it.
        yield* append([product], [used({ age: 4 * day })], now)
        assert.deepStrictEqual(yield* consumed(), [1001, 2, 1001, 1001, 1001, 1])
        yield* rollup.pass
        assert.deepStrictEqual(yield* consumed(), [1001, 2, 1001, 1001, 1001, 1])
        // The day is summed again, and is correct, once no more rows have come for a while.
        clock.advance(10 * minute)
        yield* rollup.pass
        yield* falsify
        assert.deepStrictEqual(yield* consumed(), [2001, 1002, 2001, 2001, 2001, 1])
      })
    )
  )

  it.effect("are not used when they are far behind, or for days that are too long", () =>
    onTime(noonOf(1), () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const [reports, rollup] = [yield* makeReports, yield* makeRollup({ dayRowsMax: 1 })]
        const { asked, product, now } = yield* makeDays(4)
        yield* append([product], [used({ age: 2 * day })], now)
        yield* rollup.pass
        yield* falsify
        const consumed = Effect.map(bothRows(reports, asked), ([rows]) => rows.map((row) => row.consumed))
        assert.deepStrictEqual(yield* consumed, [1001, 2, 1001, 1])
        yield* sql`UPDATE event_sequence SET ledger_last = ledger_last + 100001`
        assert.deepStrictEqual(yield* consumed, [1, 2, 1, 1])
        yield* sql`UPDATE event_sequence SET ledger_last = ledger_last - 100001`
        assert.deepStrictEqual(yield* consumed, [1001, 2, 1001, 1])
      })
    )
  )

  it.effect("count a license once that has used several features which were deleted since", () =>
    onTime(noonOf(2), () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const [reports, rollup] = [yield* makeReports, yield* makeRollup()]
        const { asked, product, now } = yield* makeDays(3)
        yield* append([product], [used({ feature: 1, age: 2 * day }), used({ feature: 2, age: day, license: 1 })], now)
        yield* rollup.pass
        const licenses = Effect.map(bothRows(reports, { ...asked, group_by: ["feature_code"] }), ([rows, plain]) => {
          assert.deepStrictEqual(rows, plain as never)
          return rows.map((row) => [row.feature_code, row.licenses])
        })
        assert.deepStrictEqual(yield* licenses, [
          ["export", 1],
          ["render", 1],
          ["export", 1],
          ["scan", 1],
          ["export", 1]
        ])
        yield* sql`DELETE FROM features WHERE product_id = ${product.product}`
        assert.deepStrictEqual(yield* licenses, [
          [undefined, 1],
          [undefined, 2],
          [undefined, 1]
        ])
      })
    )
  )

  it.effect("are correct while two nodes compute them and a third writes", () =>
    onTime(noonOf(3), () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const reports = yield* makeReports
        const nodes = [yield* makeRollup({ scanRowsMax: 10 }), yield* makeRollup({ scanRowsMax: 10 })]
        const { asked, product, now } = yield* makeDays(20)
        const ages = Array.from({ length: 60 }, (_, index) => ((index * 7) % 19) * day)
        const writing = Effect.forEach(ages, (age, index) =>
          append([product], [used({ age, license: (index % 3) as 0 | 1 | 2, feature: (index % 2) as 0 | 1 })], now)
        )
        const asking = Effect.repeat(
          Effect.map(bothRows(reports, asked), ([rows, plain]) => assert.deepStrictEqual(rows, plain as never)),
          { times: 30 }
        )
        const working = Effect.forEach(nodes, ({ pass }) => Effect.repeat(pass, { times: 30 }), {
          concurrency: "unbounded"
        })
        yield* Effect.all([writing, asking, working], { concurrency: "unbounded" })
        yield* nodes[0]!.pass
        const [days] =
          yield* sql`SELECT sum(ledger_rows)::bigint AS rows FROM usage_rollup_days WHERE day >= ${new Date(asked.from).toISOString()}`
        assert.deepStrictEqual(days, { rows: 80 })
      })
    )
  )

  it.effect("are computed for whole periods, once each", () =>
    Effect.sync(() => {
      const time = fc.integer({ min: -30 * 24, max: 30 * 24 }).map((hours) => hours * hour + 1)
      fc.assert(
        fc.property(
          time,
          fc.integer({ min: day, max: 60 * day }),
          fc.array(time, { maxLength: 40 }),
          (from, length, times) => {
            const period = { from, to: from + length }
            const rollable = { from: Math.ceil(from / hour) * hour, to: Math.floor(period.to / hour) * hour }
            const days = [...new Set(times.map((at) => Math.floor(at / day) * day))]
            const { ledger, rollup } = splitPeriod(period, rollable, days)
            const all = [...ledger, ...rollup].toSorted((a, b) => a.from - b.from)
            assert.deepStrictEqual([all[0]?.from, all.at(-1)?.to], [period.from, period.to])
            for (const [index, one] of all.entries()) if (index > 0) assert.strictEqual(one.from, all[index - 1]!.to)
            assert.isAtMost(ledger.length, 14)
            const meets = ({ from, to }: TimeRange) => days.some((at) => at < to && from < at + day)
            for (const one of rollup)
              assert.isTrue(one.from < one.to && !meets(one) && one.from % hour === 0 && one.to % hour === 0)
          }
        ),
        { seed }
      )
    })
  )
})

layer(TestServer.layer, { timeout: 60_000 })("Metrics", (it) => {
  it.effect("report how long the oldest complete day has waited for its sums", () =>
    Effect.gen(function* () {
      const { send } = yield* TestServer
      const sql = yield* SqlClient.SqlClient
      const waiting = Effect.map(send({ path: "/metrics" }), ({ text }) =>
        Number(/licensing_oldest_waiting_seconds\{queue="usage-rollup"\} (\S+)/.exec(text)?.[1])
      )
      yield* sql`
        INSERT INTO usage_rollup_days VALUES (date_trunc('day', now()), 5, 0, now()),
          (date_trunc('day', now()) - interval '9 days', 5, 5, now() - interval '9 days'),
          (date_trunc('day', now()) - interval '8 days', 5, 4, now() - interval '1000 seconds')`
      const seconds = yield* waiting
      assert.isTrue(seconds >= 1_000 && seconds < 1_300, String(seconds))
    })
  )
})
