import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import * as fc from "fast-check"
import type { UsageLedgerRow } from "../../src/reports/Report.ts"
import { makeMetered, play, step } from "../support/Metered.ts"
import { TestServer } from "../support/TestServer.ts"

const seed = 20_261_120
const histories = fc.sample(fc.array(step, { minLength: 20, maxLength: 40 }), { seed, numRuns: 4 })

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

const movement = ({ action, amount }: UsageLedgerRow) => (action === "consume" || action === "reset" ? amount : 0)

layer(TestServer.layer)("Whatever happens to counters", (it) => {
  for (const [index, history] of histories.entries()) {
    it.effect(`the reports reconcile to the last unit (history ${index} of seed ${seed})`, () =>
      Effect.gen(function* () {
        const { advance, client } = yield* TestServer
        const metered = yield* makeMetered
        const { license, subscription } = metered
        let middle = 0
        for (const [at, one] of history.entries()) {
          yield* play(metered, one, at)
          yield* advance(one.seconds)
          if (at === Math.floor(history.length / 2)) {
            const [newest] = (yield* client.reports.usageLedger({ query: { license_id: license.id, limit: 1 } })).items
            middle = (newest?.occurred_at ?? 0) + 500
          }
        }
        const { items: assignments } = yield* client.licenses.listFeatures({ params: { id: license.id }, query: {} })
        const rows = yield* ledgerOf(license.id)
        const settled = (period: { from?: number; to?: number }) =>
          client.reports.settlement({ query: { subscription_id: subscription.id, from: 0, ...period } })
        const [whole, first, second] = [
          yield* settled({}),
          yield* settled({ to: middle }),
          yield* settled({ from: middle })
        ]
        assert.isTrue(rows.length > 0)
        for (const { feature_code, feature_id, max_consumptions, total_consumptions } of assignments) {
          const own = rows.filter((row) => row.feature_id === feature_id)
          let balance = 0
          for (const row of own) {
            assert.strictEqual(row.balance_before, balance)
            balance += movement(row)
            assert.strictEqual(row.balance_after, balance)
            assert.strictEqual(row.feature_code, feature_code)
          }
          assert.strictEqual(balance, total_consumptions, "the assignment's counter")
          if (own.length === 0) continue
          assert.strictEqual(own.at(-1)?.max_after, max_consumptions)
          const lineIn = (report: typeof whole) => report.lines.find((line) => line.feature_id === feature_id)
          const line = lineIn(whole)!
          assert.deepInclude(line, { opening_balance: 0, restarted: 0, closing_balance: total_consumptions })
          for (const report of [whole, first, second]) {
            const { opening_balance = 0, consumed = 0, reset = 0, closing_balance = 0 } = lineIn(report) ?? {}
            assert.strictEqual(opening_balance + consumed + reset, closing_balance)
          }
          if (lineIn(first) !== undefined && lineIn(second) !== undefined) {
            assert.strictEqual(lineIn(first)?.closing_balance, lineIn(second)?.opening_balance)
          }
          const consumed = own.filter(({ action }) => action === "consume")
          assert.strictEqual(
            line.consumed,
            consumed.reduce((sum, { amount }) => sum + amount, 0)
          )
          assert.strictEqual(line.consumptions, consumed.length)
        }
        const { rows: hours, totals } = yield* client.reports.usageSummary({
          query: { license_id: license.id, bucket: "1h", group_by: ["feature_code"] }
        })
        assert.deepStrictEqual(totals, whole.totals)
        assert.strictEqual(
          hours.reduce((sum, row) => sum + row.consumed, 0),
          totals.consumed
        )
        const audit = yield* client.reports.licenseAudit({ query: { license_id: license.id } })
        assert.deepStrictEqual(audit.usage, whole.lines)
        assert.deepStrictEqual(
          audit.features,
          assignments.toSorted((a, b) => (a.feature_code < b.feature_code ? -1 : 1))
        )
      })
    )
  }
})
