import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { LedgerLinks } from "../../src/reports/LedgerLinks.ts"
import { type LedgerRecord, LedgerRecords, place, recordColumns } from "../../src/reports/LedgerRecords.ts"
import { makeMetered } from "../support/Metered.ts"
import { TestServer } from "../support/TestServer.ts"

layer(TestServer.layer)("The links of the ledger's rows", (it) => {
  it.effect("are kept within a bound, and those of the rows at hand are always known", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const all = yield* Effect.forEach([1, 2, 3, 4, 5], () => makeMetered)
      for (const { consume } of all) for (const code of ["exports", "renders"]) yield* consume(code, 1, code)
      const rows = yield* sql<LedgerRecord>`
        SELECT record FROM (SELECT ${recordColumns(sql)} FROM usage_ledger u ORDER BY u.sequence) AS record`
      assert.lengthOf(rows, 10)
      const links = new LedgerLinks(undefined, { licensesMax: 2, featuresMax: 4 })
      const seen = new Set<string | null>()
      for (let first = 0; first < rows.length; first += 3) {
        const page = rows.slice(first, first + 3)
        yield* links.fill(sql, page)
        assert.isAtMost(links.licenses.count, 2)
        assert.isAtMost(links.features.count, 4)
        const records = new LedgerRecords(page)
        while (records.next()) {
          const { bytes } = records
          const license = links.licenses.find(bytes, records.start(place.license_id), records.size(place.license_id))
          const feature = links.features.find(bytes, records.start(place.feature_id), records.size(place.feature_id))
          const [id, product, customer, order, subscription] = links.licenses.texts(license, 5)
          const metered = all.find(({ license }) => license.id === id)!
          assert.deepStrictEqual(
            [product, customer, order, subscription],
            [metered.product.id, metered.customer.id, null, metered.subscription.id]
          )
          assert.include(["exports", "renders"], links.features.texts(feature, 2)[1])
          seen.add(id!)
        }
      }
      assert.strictEqual(seen.size, 5)
    })
  )
})
