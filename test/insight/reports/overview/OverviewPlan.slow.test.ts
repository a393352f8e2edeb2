/** The overview reads sums: its cost does not depend on the number of licenses, leases, events and refusals. */
import { assert, layer } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { OverviewCounts } from "../../../../src/insight/reports/overview/OverviewCounts.ts"
import { OverviewSamples } from "../../../../src/insight/reports/overview/OverviewSamples.ts"
import { openSession } from "../../../../src/platform/postgres/driver/Postgres.ts"
import { fill, hotProduct, type Sizes } from "../../../bench/rows/scaleRows.ts"
import { capture, layerCapturing, planningsOf, scansOf } from "../../../contract/cases/Plans.ts"
import { Database } from "../../../support/database/Database.ts"
import { TestServer } from "../../../support/http/TestServer.ts"

const many = 20_000
const sizes: Sizes = {
  products: 500,
  licenses: many,
  customers: 100,
  devices: many,
  events: 2 * many,
  others: many,
  crowd: many
}

/** The service starts before the rows are inserted, because it makes its first API key in an empty database. */
const Filled = Layer.effectDiscard(
  Effect.gen(function* () {
    const { url } = yield* Database
    yield* fill(yield* openSession(url), sizes)
  })
)
const Subject = Filled.pipe(
  Layer.provideMerge(TestServer.layerOver({ sweepSeconds: 86_400 })),
  Layer.provideMerge(layerCapturing),
  Layer.provideMerge(Database.layer)
)

const workers = Layer.merge(OverviewCounts.layer, OverviewSamples.layer)

/** Rows that a report may read of a table whose rows it must not depend on. */
const rowsMax = 500
const large = new Set(["licenses", "license_states", "leases", "refusals", "license_samples"])
const isLarge = (table: string) => large.has(table) || table.startsWith("event_log")

layer(Subject, { timeout: "2 minutes", excludeTestServices: true })("An overview", (it) => {
  it.effect(
    "of a product or of all, by days or hours, reads no licenses, leases, events or refusals",
    () =>
      Effect.gen(function* () {
        const { send } = yield* TestServer
        const context = yield* Layer.build(workers)
        yield* Context.get(context, OverviewCounts).pass
        yield* Context.get(context, OverviewSamples).pass
        const complaints: Array<string> = []
        for (const query of [
          "",
          "tz=Asia/Kathmandu",
          `product_id=${hotProduct}`,
          `bucket=1h&product_id=${hotProduct}`
        ]) {
          const { answer, statements } = yield* capture(send({ path: `/api/v1/reports/overview?${query}` }))
          assert.strictEqual(answer.status, 200, answer.text.slice(0, 300))
          assert.isAtLeast(statements.length, 5)
          for (const statement of statements) {
            for (const planning of planningsOf(statement)) {
              const read = (yield* scansOf(statement, planning)).filter(
                ({ rows, table }) => isLarge(table) && rows > rowsMax
              )
              complaints.push(
                ...read.map(({ rows, table }) => `${query}: ${planning.name} it reads ${rows} of ${table}`)
              )
            }
          }
        }
        assert.deepStrictEqual(complaints, [])
      }),
    120_000
  )
})
