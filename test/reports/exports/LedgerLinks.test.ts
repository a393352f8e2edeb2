import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { ByteText } from "../../../src/reports/exports/ByteText.ts"
import { LedgerLinks } from "../../../src/reports/exports/LedgerLinks.ts"
import { copyRecords, LedgerRecords, ledgerGroups, place } from "../../../src/reports/exports/LedgerRecords.ts"
import { makeMetered } from "../../support/IssuedLicenses.ts"
import { TestServer } from "../../support/TestServer.ts"

layer(TestServer.layer)("The links of the ledger's rows", (it) => {
  it.effect("are kept within a bound, and those of the rows at hand are always known", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const all = yield* Effect.forEach([1, 2, 3, 4, 5], () => makeMetered)
      for (const { consume } of all) for (const code of ["exports", "renders"]) yield* consume(code, 1, code)
      const links = new LedgerLinks(undefined, { licensesMax: 2, featuresMax: 4 })
      const seen = new Set<string | null>()
      let rows = 0
      for (let first = 0; first < 10; first += 3) {
        const groups = yield* ledgerGroups(
          sql,
          sql`FROM usage_ledger u WHERE u.sequence > ${first} ORDER BY u.sequence LIMIT 3`,
          2
        )
        const copied = new ByteText(1)
        copyRecords(groups, copied)
        const page = copied.written()
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
          assert.strictEqual(records.integer(place.sequence), ++rows)
        }
      }
      assert.strictEqual(seen.size, 5)
      assert.strictEqual(rows, 10)
    })
  )
})
