/** Records with more parts than are kept in memory, and batches that are written at once. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { TestServer } from "../../support/http/TestServer.ts"
import { operatorSettings, runLine } from "../../support/processes/CommandLine.ts"
import { customer, device, exportOf, type Line, license, policy, product, version } from "./Records.ts"

const devices = 5_600
const versions = 5_400

/** A product with very many versions, licenses with very many and with few devices, and many licenses of many customers. */
const linesOf = (prefix: string): ReadonlyArray<Line> => {
  const [p, pol, big] = [`prod_${prefix}`, `pol_${prefix}`, `lic_${prefix}_big`]
  const links = { product_id: p, policy_id: pol }
  const range = (count: number) => Array.from({ length: count }, (_, index) => index)
  return [
    product(p),
    ...range(versions).map((index) => version(p, index)),
    policy(pol, p),
    ...range(1_300).map((index) => customer(`cust_${prefix}_${index}`)),
    license(`lic_${prefix}_a`, links),
    license(big, links),
    ...range(devices).map((index) => device(big, index)),
    ...range(1_300).flatMap((index) => {
      const id = `lic_${prefix}_${index}`
      return [license(id, { ...links, customer_id: `cust_${prefix}_${index}` }), device(id, index)]
    })
  ]
}

layer(TestServer.layerWith({}), { timeout: 120_000 })("`licensing import file` of large records", (it) => {
  const importLines = Effect.fnUntraced(function* (lines: ReadonlyArray<Line>, ...args: ReadonlyArray<string>) {
    const home = yield* Effect.acquireRelease(
      Effect.sync(() => mkdtempSync(join(tmpdir(), "licensing-large-"))),
      (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
    )
    const file = join(home, "given.jsonl")
    writeFileSync(file, exportOf(lines))
    const { code, out } = yield* runLine(yield* operatorSettings, "import", "file", file, ...args, "--json")
    return { code, ...JSON.parse(out) } as {
      readonly code: number
      readonly imported: Record<string, number>
      readonly existed_already: number
      readonly faults: ReadonlyArray<{ readonly line: number; readonly message: string }>
    }
  }, Effect.scoped)

  it.effect(
    "writes all parts with their record, and each event once",
    () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const lines = linesOf("A")
        const counts = { product: 1, product_version: versions, policy: 1, customer: 1_300, license: 1_302 }
        const expected = { ...counts, device: devices + 1_300 }
        const rehearsed = yield* importLines(lines, "--dry-run")
        assert.deepStrictEqual([rehearsed.imported, rehearsed.faults], [expected, []])
        const done = yield* importLines(lines)
        assert.deepStrictEqual([done.code, done.imported], [0, expected])
        const again = yield* importLines(lines)
        assert.deepStrictEqual([again.imported, again.existed_already], [{}, 1_302 + 1_300 + 2])
        assert.deepStrictEqual(
          yield* sql`SELECT event_type, count(*)::int, count(DISTINCT resource_id)::int AS distinct FROM event_log
          WHERE metadata ? 'imported' GROUP BY 1 ORDER BY 1`,
          [
            { event_type: "customer.created", count: 1_300, distinct: 1_300 },
            { event_type: "license.created", count: 1_302, distinct: 1_302 },
            { event_type: "policy.created", count: 1, distinct: 1 },
            { event_type: "product.created", count: 1, distinct: 1 },
            { event_type: "product_version.created", count: versions, distinct: versions }
          ]
        )
        const [event] =
          yield* sql`SELECT metadata -> 'devices' AS devices FROM event_log WHERE resource_id = 'lic_A_big'`
        assert.deepStrictEqual(event, { devices })
        const [gaps] =
          yield* sql`SELECT count(*) = max(sequence) AND max(sequence) = (SELECT last FROM event_sequence) AS gapless
        FROM event_log`
        assert.deepStrictEqual(gaps, { gapless: true })
      }),
    300_000
  )

  it.effect(
    "names the lines of wrong parts, and writes nothing of their record",
    () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const lines = linesOf("B")
        const first = lines.findIndex(({ id }) => id === "dev_lic_B_big_0")
        const few = lines.findIndex(({ id }) => id === "dev_lic_B_7_7")
        const wrong = lines
          .with(first + 1_234, { ...lines[first + 1_234]!, status: "none" })
          .with(first + 5_555, { ...lines[first + 5_555]!, first_seen_at: null })
        const stopped = yield* importLines(wrong)
        // The header is line 1.
        assert.deepStrictEqual(
          [stopped.code, stopped.faults.map(({ line }) => line)],
          [1, [first + 1_236, first + 5_557]]
        )
        const ofBig = sql`SELECT count(*)::int AS rows FROM devices WHERE license_id = 'lic_B_big'`
        assert.deepStrictEqual(yield* ofBig, [{ rows: 0 }])
        const wrongFew = lines.with(few, { ...lines[few]!, status: "none" })
        assert.deepStrictEqual(
          (yield* importLines(wrongFew, "--dry-run")).faults.map(({ line }) => line),
          [few + 2]
        )
        assert.strictEqual((yield* importLines(lines)).code, 0)
        assert.deepStrictEqual(yield* ofBig, [{ rows: devices }])
      }),
    300_000
  )
})
