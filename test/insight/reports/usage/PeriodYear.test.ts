/** A year of quotas with periods: every figure of the reports is what the ledger alone gives. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import * as fc from "fast-check"
import type { UsageLedgerRow } from "../../../../src/insight/reports/model/Report.ts"
import { download } from "../../../support/database/Exports.ts"
import { makeMetered } from "../../../support/http/IssuedLicenses.ts"
import { TestServer } from "../../../support/http/TestServer.ts"

const day = 86_400_000
const codes = ["exports", "renders"] as const

const step = fc.record({
  feature_code: fc.constantFrom(...codes),
  amount: fc.integer({ min: 1, max: 70 }),
  action: fc.constantFrom(
    "consume",
    "consume",
    "consume",
    "consume",
    "consume",
    "consume",
    "reverse",
    "reverse",
    "credits",
    "reset"
  ),
  hours: fc.integer({ min: 1, max: 110 }),
  chosen: fc.nat()
})

const seed = 20_261_125
const [year] = fc.sample(fc.array(step, { minLength: 150, maxLength: 150 }), { seed, numRuns: 1 })

const sumOf = <Row>(rows: ReadonlyArray<Row>, amountOf: (row: Row) => number | undefined): number =>
  rows.reduce((sum, row) => sum + (amountOf(row) ?? 0), 0)

const usageIn = (rows: ReadonlyArray<UsageLedgerRow>) => {
  const of = (...actions: ReadonlyArray<string>) => rows.filter(({ action }) => actions.includes(action))
  return {
    consumed: sumOf(of("consume"), ({ amount }) => amount),
    consumptions: of("consume").length,
    reversed: 0 - sumOf(of("reverse"), ({ amount }) => amount),
    reset: sumOf(of("reset", "period_reset"), ({ amount }) => amount),
    topped_up: sumOf(of("top_up"), ({ amount }) => amount),
    credits_used: 0 - sumOf(of("consume", "reverse"), ({ credits }) => credits),
    overage: sumOf(rows, ({ overage }) => overage)
  }
}

const ledgerOf = Effect.fnUntraced(function* (license_id: string) {
  const { client } = yield* TestServer
  const rows: Array<UsageLedgerRow> = []
  let cursor: number | undefined
  do {
    const query = { license_id, limit: 200, ...(cursor === undefined ? undefined : { cursor }) }
    const page = yield* client.reports.usageLedger({ query })
    rows.push(...page.items)
    cursor = page.next
  } while (cursor !== undefined)
  return rows.reverse()
})

/** A license with a monthly quota, and one that follows a subscription. */
const makeLicense = Effect.gen(function* () {
  const { client, connect } = yield* TestServer
  const metered = yield* makeMetered
  const { license, license_key } = metered
  const params = { id: license.id }
  const { items: assigned } = yield* client.licenses.listFeatures({ params, query: {} })
  for (const { feature_code, feature_id } of assigned)
    yield* client.licenses.assignFeature({
      params,
      payload: {
        feature_id,
        max_consumptions: 40,
        rollover_max: 20,
        overage_max: 150,
        ...(feature_code === "exports"
          ? ({ reset_period: "month" } as const)
          : ({ reset_period: "subscription" } as const))
      }
    })
  const { runtime } = yield* connect({ licenseKey: license_key })
  return { ...metered, params, runtime }
})

type Played = Effect.Success<typeof makeLicense>

/** Lives through the year. The service may refuse a step. */
const play = Effect.fnUntraced(function* ({ consume, params, runtime, subscription }: Played) {
  const { advance, client } = yield* TestServer
  const counted: Array<readonly [string, string]> = []
  let { current_period_end } = subscription
  let passed = 0
  for (const [index, { action, amount, chosen, feature_code, hours }] of year!.entries()) {
    const reset = (change: object) =>
      client.licenses.resetUsage({ params, payload: { feature_code, ...change } as never })
    const event_id = `event-${index}`
    switch (action) {
      case "consume":
        yield* Effect.ignore(consume(feature_code, amount, event_id))
        counted.push([feature_code, event_id])
        break
      case "reverse": {
        const [code, reverses] = counted[chosen % Math.max(1, counted.length)] ?? [feature_code, "none"]
        yield* Effect.ignore(
          runtime.consume({ payload: { fingerprint: "a machine", feature_code: code, event_id, reverses } })
        )
        break
      }
      case "credits":
        yield* reset({ add_credits: amount })
        break
      case "reset":
        yield* reset({ reset_consumed: true })
    }
    yield* advance(hours * 3600)
    passed += hours * 3_600_000
    // The billing system announces the next period, sometimes late.
    if (subscription.current_period_start + passed < current_period_end) continue
    const next = { current_period_start: current_period_end, current_period_end: current_period_end + 30 * day }
    yield* client.commerce.updateSubscription({ params: { id: subscription.id }, payload: next })
    current_period_end = next.current_period_end
  }
  yield* client.licenses.resetUsage({ params, payload: { feature_code: "exports", add_credits: 1 } })
})

type Rows = ReadonlyArray<UsageLedgerRow>

/** The counters of the assignments, and the lines of the settlement. */
const assertCounters = Effect.fnUntraced(function* ({ params, subscription }: Played, rows: Rows) {
  const { client } = yield* TestServer
  const { items: features } = yield* client.licenses.listFeatures({ params, query: {} })
  const settlement = yield* client.reports.settlement({ query: { subscription_id: subscription.id, from: 0 } })
  const actions = new Set(rows.map(({ action }) => action))
  for (const action of ["consume", "reverse", "reset", "period_reset", "top_up"] as const)
    assert.isTrue(actions.has(action), action)
  assert.isAbove(usageIn(rows).overage, 0)
  assert.isAbove(usageIn(rows).credits_used, 0)
  for (const { extra_credits, feature_code, overage, total_consumptions } of features) {
    const own = rows.filter((row) => row.feature_code === feature_code)
    let balance = 0
    for (const row of own) {
      assert.strictEqual(row.balance_before, balance)
      balance = row.balance_after
    }
    assert.strictEqual(balance, total_consumptions)
    assert.strictEqual(
      extra_credits,
      sumOf(own, ({ credits }) => credits)
    )
    const current = own.slice(own.findLastIndex(({ action }) => action === "period_reset") + 1)
    assert.strictEqual(
      overage,
      sumOf(current, (row) => row.overage)
    )
    const line = settlement.lines.find((one) => one.feature_code === feature_code)
    assert.deepInclude(line, { ...usageIn(own), opening_balance: 0, closing_balance: balance, restarted: 0 })
  }
  assert.deepStrictEqual(settlement.totals, usageIn(rows))
})

const assertSummary = Effect.fnUntraced(function* ({ license }: Played, rows: Rows) {
  const { client } = yield* TestServer
  const summary = { license_id: license.id, from: 0 }
  const days = yield* client.reports.usageSummary({ query: { ...summary, bucket: "1d" } })
  assert.deepStrictEqual(days.totals, usageIn(rows))
  for (const { bucket_start = 0, feature_code, licenses: _, ...usage } of days.rows) {
    const ofDay = rows.filter(
      (row) => row.feature_code === feature_code && Math.floor(row.occurred_at / day) * day === bucket_start
    )
    assert.deepStrictEqual(usage, usageIn(ofDay))
  }
})

/** Each period was closed once, with what the ledger says of it. */
const assertPeriods = Effect.fnUntraced(function* ({ license }: Played, rows: Rows) {
  const { client } = yield* TestServer
  const { items: events } = yield* client.events.list({
    query: { event_type: "usage.period_closed", resource_id: license.id, limit: 200 }
  })
  const closed = events.toReversed().map(({ metadata }) => metadata as { readonly [name: string]: unknown })
  for (const code of codes) {
    const own = rows.filter((row) => row.feature_code === code)
    const ends = own.flatMap(({ action }, at) => (action === "period_reset" ? [at] : []))
    const told = closed.filter(({ feature_code }) => feature_code === code)
    assert.isAbove(ends.length, 5)
    assert.deepStrictEqual(
      told.map(({ consumed, overage }) => [consumed, overage]),
      ends.map((end, at) => [
        0 - own[end]!.amount,
        sumOf(own.slice((ends[at - 1] ?? -1) + 1, end), (row) => row.overage)
      ])
    )
    assert.strictEqual(new Set(told.map(({ period_start }) => period_start)).size, told.length)
  }
})

/** The overview's consumption, and the figures of an export of the ledger. */
const assertCopies = Effect.fnUntraced(function* ({ license }: Played, rows: Rows) {
  const { client } = yield* TestServer
  const query = { product_id: license.product_id, from: rows[0]!.occurred_at - day, to: rows.at(-1)!.occurred_at + day }
  const { buckets } = yield* client.reports.overview({ query: { ...query, bucket: "1d" } })
  const consumption = buckets.flatMap((bucket) => bucket.consumption)
  for (const code of codes) {
    const { consumed, consumptions } = usageIn(rows.filter(({ feature_code }) => feature_code === code))
    const shown = consumption.filter(({ feature_code }) => feature_code === code)
    assert.deepStrictEqual(
      [sumOf(shown, (one) => one.consumed), sumOf(shown, (one) => one.consumptions)],
      [consumed, consumptions]
    )
  }
  const filters = { license_id: license.id }
  const { id } = yield* client.reports.createExport({ payload: { report_kind: "usage-ledger", filters } })
  const { json } = yield* download(id)
  const written = (json as { readonly rows: Rows }).rows
  assert.deepStrictEqual(usageIn(written), usageIn(rows))
  assert.sameMembers(
    written.map(({ sequence }) => sequence),
    rows.map(({ sequence }) => sequence)
  )
})

layer(TestServer.layer, { timeout: 120_000 })("A year of quotas with periods", (it) => {
  it.effect(`reconciles with its ledger (seed ${seed})`, () =>
    Effect.gen(function* () {
      const played = yield* makeLicense
      yield* play(played)
      const rows = yield* ledgerOf(played.license.id)
      yield* assertCounters(played, rows)
      yield* assertSummary(played, rows)
      yield* assertPeriods(played, rows)
      yield* assertCopies(played, rows)
    })
  )
})
