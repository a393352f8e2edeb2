/** Reversals on two nodes at the same time. */
import { assert, layer } from "@effect/vitest"
import { Effect, Result } from "effect"
import { SqlClient } from "effect/sql"
import { CounterPatience } from "../../../src/ledger/events/Numbering.ts"
import { type ReversalRequest, readReversalMark } from "../../../src/licensing/rows/ReversalMarks.ts"
import { activate } from "../../../src/licensing/rules/Activation.ts"
import { consume } from "../../../src/licensing/rules/Consumption.ts"
import { Database } from "../../support/database/Database.ts"
import { fromNoon, twoNodes } from "../../support/database/LicenseNodes.ts"
import { requestOf, storeOne } from "../../support/database/StoredLicenses.ts"
import { assignmentOf, featureOf } from "../../support/rules/Licenses.ts"

const patience = { "numbered at once": Number.POSITIVE_INFINITY, "numbered after the commit": 0 }

layer(Database.layer, { timeout: 60_000, excludeTestServices: true })("Reversals", (it) => {
  it.effect.each(Object.keys(patience) as Array<keyof typeof patience>)(
    "of one consumption on two nodes, %s: one takes it back, the other is refused; repetitions agree",
    (how) =>
      fromNoon(
        Effect.gen(function* () {
          const sql = yield* SqlClient.SqlClient
          const { nodes } = yield* Effect.provideService(twoNodes, CounterPatience, patience[how])
          const license = yield* storeOne({
            features: [featureOf("api")],
            assignments: [assignmentOf("api", { max_consumptions: 1000, total_consumptions: 0 })]
          })
          const request = { ...requestOf(license, "m"), feature_code: "api" }
          const ask = (
            at: number,
            command: { readonly event_id: string; readonly amount: number; readonly reverses?: string }
          ) => nodes[at % 2]!.ask(license.license, consume, { ...request, ...command })
          yield* nodes[0].ask(license.license, activate, { ...requestOf(license, "m"), newDeviceId: `dev_${how}` })
          for (let round = 0; round < 15; round++) {
            yield* ask(round, { event_id: `e${round}`, amount: 5 })
            const takeBack = (at: number) =>
              Effect.result(ask(at, { event_id: `r${round}-${at}`, amount: 1, reverses: `e${round}` }))
            const answers = yield* Effect.all([takeBack(0), takeBack(1)], { concurrency: "unbounded" })
            const codes = answers.map((answer) => (Result.isSuccess(answer) ? "accepted" : answer.failure.code))
            assert.deepStrictEqual(codes.toSorted(), ["REVERSAL_NOT_POSSIBLE", "accepted"])
            const repeated = yield* Effect.all([takeBack(1), takeBack(0)], { concurrency: "unbounded" })
            assert.deepStrictEqual(repeated.map(Result.isSuccess).toReversed(), answers.map(Result.isSuccess))
            const same = { event_id: `s${round}`, amount: 1, reverses: `e${round + 0.5}` }
            yield* ask(0, { event_id: `e${round + 0.5}`, amount: 3 })
            yield* Effect.all([ask(0, same), ask(1, same)], { concurrency: "unbounded" })
          }
          // Numbers what waits.
          yield* sql`UPDATE event_sequence SET last = last`
          const [row] = yield* sql`
          SELECT total_consumptions::int AS count, (SELECT sum(amount)::int FROM usage_ledger WHERE license_id = a.license_id) AS sum,
            (SELECT count(*)::int FROM usage_ledger WHERE license_id = a.license_id AND action = 'reverse') AS reversals
          FROM license_features a WHERE license_id = ${license.license}`
          assert.deepStrictEqual(row, { count: 0, sum: 0, reversals: 30 })
        })
      )
  )

  it.effect("of what the feature never counted read nothing of the license's ledger", () =>
    fromNoon(
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const { nodes } = yield* twoNodes
        const codes = ["api", "export"]
        const license = yield* storeOne({
          features: codes.map((code) => featureOf(code)),
          assignments: codes.map((code) => assignmentOf(code))
        })
        const request = requestOf(license, "m")
        yield* nodes[0].ask(license.license, activate, request)
        for (const feature_code of codes) {
          const used = { ...request, feature_code, amount: 1 }
          for (const number of [1, 2, 3])
            yield* nodes[0].ask(license.license, consume, { ...used, event_id: `${feature_code}-${number}` })
        }
        // Numbers what waits.
        yield* sql`UPDATE event_sequence SET last = last`
        const [named] = yield* sql<Pick<ReversalRequest, "licenseId" | "productId">>`
          SELECT id AS "licenseId", product_id AS "productId" FROM licenses WHERE id = ${license.license}`
        const rowsRead = sql<{ readonly rows: number }>`
          SELECT coalesce(sum(coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0)), 0)::int AS rows
          FROM pg_stat_xact_user_tables WHERE relname LIKE 'usage_ledger%'`
        const looked = Effect.fnUntraced(function* (featureCode: string, eventId: string) {
          const before = yield* rowsRead
          const found = yield* readReversalMark(sql)({ ...named!, featureCode, eventId })
          return { action: found?.mark.action, isRead: (yield* rowsRead)[0]!.rows > before[0]!.rows }
        }, sql.withTransaction)
        assert.deepStrictEqual(yield* looked("api", "api-1"), { action: "consume", isRead: true })
        assert.deepStrictEqual(yield* looked("api", "export-1"), { action: undefined, isRead: false })
        assert.deepStrictEqual(yield* looked("api", "unknown"), { action: undefined, isRead: false })
        assert.deepStrictEqual(yield* looked("unknown", "api-1"), { action: undefined, isRead: false })
      })
    )
  )
})
