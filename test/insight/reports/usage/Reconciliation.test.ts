import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import * as fc from "fast-check"
import type { UsageLedgerRow } from "../../../../src/insight/reports/model/Report.ts"
import type { LicenseFeature } from "../../../../src/licensing/model/LicenseFeature.ts"
import { type MeteredLicense, makeMetered, performUsageStep, usageStep } from "../../../support/http/IssuedLicenses.ts"
import { TestServer } from "../../../support/http/TestServer.ts"

const seed = 20_261_120
const histories = fc.sample(fc.array(usageStep, { minLength: 20, maxLength: 40 }), { seed, numRuns: 4 })

/** The whole ledger of a license, the oldest row first, read in small pages. */
const ledgerOf = Effect.fnUntraced(function* (license_id: string) {
  const { client } = yield* TestServer
  const rows: Array<UsageLedgerRow> = []
  let cursor: number | undefined
  do {
    const page = yield* client.reports.usageLedger({
      query: { license_id, limit: 7, ...(cursor === undefined ? undefined : { cursor }) }
    })
    rows.push(...page.items)
    cursor = page.next
  } while (cursor !== undefined)
  return rows.reverse()
})

const movement = ({ action, amount }: UsageLedgerRow) => (action === "top_up" || action === "set_limit" ? 0 : amount)

interface Balances {
  readonly opening_balance: number
  readonly consumed: number
  readonly reset: number
  readonly closing_balance: number
}

const nothing: Balances = { opening_balance: 0, consumed: 0, reset: 0, closing_balance: 0 }

/** Runs a history, and returns an instant in the middle of it. */
const played = Effect.fnUntraced(function* (metered: MeteredLicense, history: (typeof histories)[number]) {
  const { advance, client } = yield* TestServer
  let middle = 0
  for (const [at, one] of history.entries()) {
    yield* performUsageStep(metered, one, at)
    yield* advance(one.seconds)
    if (at !== Math.floor(history.length / 2)) continue
    const { items } = yield* client.reports.usageLedger({ query: { license_id: metered.license.id, limit: 1 } })
    middle = (items[0]?.occurred_at ?? 0) + 500
  }
  return middle
})

/** The rows of one assignment reproduce its counter, one after another. Returns what they consumed. */
const assertChain = (
  rows: ReadonlyArray<UsageLedgerRow>,
  { feature_code, max_consumptions, total_consumptions }: LicenseFeature
) => {
  let balance = 0
  for (const row of rows) {
    assert.strictEqual(row.balance_before, balance)
    balance += movement(row)
    assert.strictEqual(row.balance_after, balance)
    assert.strictEqual(row.feature_code, feature_code)
  }
  assert.strictEqual(balance, total_consumptions, "the assignment's counter")
  if (rows.length > 0) assert.strictEqual(rows.at(-1)?.max_after, max_consumptions)
  const consumed = rows.filter(({ action }) => action === "consume")
  return { consumed: consumed.reduce((sum, { amount }) => sum + amount, 0), consumptions: consumed.length }
}

layer(TestServer.layer)("For every history of counters", (it) => {
  for (const [index, history] of histories.entries()) {
    it.effect(`the reports reconcile exactly (history ${index} of seed ${seed})`, () =>
      Effect.gen(function* () {
        const { client } = yield* TestServer
        const metered = yield* makeMetered
        const { license, subscription } = metered
        const middle = yield* played(metered, history)
        const { items: assignments } = yield* client.licenses.listFeatures({ params: { id: license.id }, query: {} })
        const rows = yield* ledgerOf(license.id)
        assert.isAbove(rows.length, 0)
        const settlementOf = (period: { from?: number; to?: number }) =>
          client.reports.settlement({ query: { subscription_id: subscription.id, from: 0, ...period } })
        const whole = yield* settlementOf({})
        const halfPeriods = [yield* settlementOf({ to: middle }), yield* settlementOf({ from: middle })]
        for (const assignment of assignments) {
          const own = rows.filter((row) => row.feature_id === assignment.feature_id)
          const used = assertChain(own, assignment)
          const lineIn = (report: typeof whole) =>
            report.lines.find(({ feature_id }) => feature_id === assignment.feature_id)
          assert.deepInclude(lineIn(whole) ?? { ...nothing, ...used, restarted: 0 }, {
            opening_balance: 0,
            restarted: 0,
            closing_balance: assignment.total_consumptions,
            ...used
          })
          for (const report of [whole, ...halfPeriods]) {
            const { opening_balance, consumed, reset, closing_balance }: Balances = lineIn(report) ?? nothing
            assert.strictEqual(opening_balance + consumed + reset, closing_balance)
          }
          const [first, second] = halfPeriods.map(lineIn)
          if (first !== undefined && second !== undefined) {
            assert.strictEqual(first.closing_balance, second.opening_balance)
          }
        }
        const { rows: hours, totals } = yield* client.reports.usageSummary({
          query: { license_id: license.id, bucket: "1h", group_by: ["feature_code"] }
        })
        assert.deepStrictEqual(totals, whole.totals)
        const consumed = hours.reduce((sum, row) => sum + row.consumed, 0)
        assert.strictEqual(consumed, totals.consumed)
        const audit = yield* client.reports.licenseAudit({ query: { license_id: license.id } })
        assert.deepStrictEqual(audit.usage, whole.lines)
        const byCode = assignments.toSorted((a, b) => (a.feature_code < b.feature_code ? -1 : 1))
        assert.deepStrictEqual(audit.features, byCode)
      })
    )
  }
})
