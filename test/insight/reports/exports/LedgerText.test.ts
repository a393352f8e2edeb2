import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import * as fc from "fast-check"
import { canonicalize, type Json } from "../../../../src/contract/api/CanonicalJson.ts"
import { type Cell, csvLine } from "../../../../src/contract/api/Csv.ts"
import { formatTimestamp } from "../../../../src/contract/api/Timestamp.ts"
import {
  type LedgerRow,
  ledgerCsv,
  ledgerFields,
  ledgerJson
} from "../../../../src/insight/reports/exports/LedgerText.ts"
import { UsageLedgerRow } from "../../../../src/insight/reports/model/Report.ts"
import { type NullableRow, withoutNulls } from "../../../../src/platform/postgres/queries/Sql.ts"

const text = fc.oneof(
  fc.string({ unit: "grapheme" }),
  fc.constantFrom(
    "",
    "=1+1",
    "-1",
    "＝1",
    " @x",
    "'=1",
    'a "quoted" text',
    "a,b",
    "a;=1",
    "back\\slash",
    "tab\t",
    "one\r\ntwo",
    "\u0001",
    "\u007f",
    "\u2028",
    "Ωμέγα",
    "漢字",
    "😀"
  )
)
const id = fc.stringMatching(/^[a-z0-9][A-Za-z0-9._-]{0,40}$/)
const count = fc.oneof(fc.constant(0), fc.nat(), fc.constant(Number.MAX_SAFE_INTEGER))
const optional = <A>(arbitrary: fc.Arbitrary<A>) => fc.option(arbitrary, { nil: null })

/** A row as the database returns it. */
const row: fc.Arbitrary<NullableRow<UsageLedgerRow>> = fc.record({
  sequence: fc.nat().map((n) => n + 1),
  occurred_at: fc
    .date({ min: new Date(0), max: new Date("9999-12-31"), noInvalidDate: true })
    .map((at) => at.getTime()),
  action: fc.constantFrom("consume", "reverse", "reset", "period_reset", "top_up", "set_limit"),
  event_id: optional(text),
  license_id: id,
  product_id: id,
  customer_id: optional(id),
  order_id: optional(id),
  subscription_id: optional(id),
  feature_id: id,
  feature_code: optional(id),
  amount: fc.oneof(count, fc.maxSafeInteger()),
  balance_before: count,
  balance_after: count,
  max_after: optional(count),
  device_id: optional(text),
  actor_type: fc.constantFrom("api_key", "license", "oidc_subject", "system"),
  actor_id: text,
  request_id: text,
  credits: optional(fc.maxSafeInteger()),
  overage: optional(fc.maxSafeInteger()),
  reverses: optional(text)
})

describe("A row of the ledger", () => {
  it.effect("is written as its schema specifies", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual<ReadonlyArray<string>>(ledgerFields, Object.keys(UsageLedgerRow.fields))
      const written: Array<{ readonly row: LedgerRow; readonly json: string; readonly csv: string }> = []
      for (const given of fc.sample(row, { numRuns: 500, seed: 7 })) {
        const encoded = yield* Schema.encodeEffect(UsageLedgerRow)(withoutNulls<UsageLedgerRow>(given))
        const values = { ...given, occurred_at: formatTimestamp(given.occurred_at!) }
        const row = ledgerFields.map((name) => values[name] ?? null) as never as LedgerRow
        const json = canonicalize(encoded as Json)
        assert.strictEqual(ledgerJson([row]), json)
        const cells = ledgerFields.map((name) => (encoded as { readonly [name: string]: Cell })[name])
        assert.strictEqual(ledgerCsv([row]), csvLine(cells))
        written.push({ row, json, csv: csvLine(cells) })
      }
      const rows = written.map(({ row }) => row)
      assert.strictEqual(ledgerJson(rows), written.map(({ json }) => json).join(","))
      assert.strictEqual(ledgerCsv(rows), written.map(({ csv }) => csv).join(""))
    })
  )
})
