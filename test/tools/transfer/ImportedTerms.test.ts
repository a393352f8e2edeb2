/** Licenses from a CSV file that were sold before: their terms, and the days and periods of their features, began then. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { TestServer } from "../../support/http/TestServer.ts"
import { operatorSettings, runLine } from "../../support/processes/CommandLine.ts"

const importing = Effect.fnUntraced(function* (rows: ReadonlyArray<string>) {
  const folder = yield* Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "licensing-csv-"))),
    (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
  )
  const path = join(folder, "given.csv")
  writeFileSync(path, rows.join("\n"))
  const { code } = yield* runLine(yield* operatorSettings, "import", "csv", path, "--json")
  assert.strictEqual(code, 0)
}, Effect.scoped)

layer(TestServer.layerWith({}), { timeout: 120_000 })(
  "`licensing import csv` of licenses that were sold before",
  (it) => {
    it.effect("counts periods of quotas and days of features from the license's start", () =>
      Effect.gen(function* () {
        const { client } = yield* TestServer
        const product = yield* client.products.create({ payload: { name: "Editor", code: "sold" } })
        const params = { id: product.id }
        const policy = yield* client.policies.create({
          params,
          payload: { name: "Pro", code: "pro", license_type: "time_limited", duration_days: 36_500 }
        })
        for (const [code, rule] of [
          ["credits", { max_consumptions: 5, reset_period: "month" }],
          ["courses", { expires_after_days: 30 }]
        ] as const) {
          const feature = yield* client.features.create({ params, payload: { name: code, code } })
          const payload = { enabled: true, ...rule }
          yield* client.policies.setFeature({ params: { id: policy.id, feature_id: feature.id }, payload })
        }
        yield* importing([
          "license_key,product,policy,created_at,starts_at",
          "SOLD-KEY-0001,sold,pro,2025-01-10,",
          "SOLD-KEY-0002,sold,pro,2025-01-10,2025-02-20"
        ])
        const { items } = yield* client.licenses.list({ query: { product_id: product.id } })
        const began = yield* Effect.forEach(items, ({ expires_at, id, starts_at = 0 }) =>
          Effect.map(client.licenses.listFeatures({ params: { id }, query: {} }), ({ items: features }) => {
            const has = Object.fromEntries(features.map((feature) => [feature.feature_code, feature]))
            const resetsAt = new Date(has["credits"]?.resets_at ?? 0)
            assert.isAbove(resetsAt.getTime(), has["credits"]?.period_start ?? Number.POSITIVE_INFINITY)
            return [starts_at, resetsAt.getUTCDate(), has["courses"]?.expires_at, expires_at]
          })
        )
        const days = (from: number, count: number) => from + count * 86_400_000
        const [sold, starts] = [Date.UTC(2025, 0, 10), Date.UTC(2025, 1, 20)]
        assert.sameDeepMembers(began, [
          [0, 10, days(sold, 30), days(sold, 36_500)],
          [starts, 20, days(starts, 30), days(starts, 36_500)]
        ])
        const { items: events } = yield* client.events.list({ query: { event_type: "license.feature_expired" } })
        assert.deepStrictEqual(events, [], "what ended before the import is no news")
      })
    )

    it.effect("records no grace and no expiry that began before the import", () =>
      Effect.gen(function* () {
        const { client } = yield* TestServer
        const product = yield* client.products.create({ payload: { name: "Viewer", code: "over" } })
        for (const [code, grace_period_days] of [
          ["strict", 0],
          ["kind", 36_500]
        ] as const) {
          const payload = { name: code, code, license_type: "time_limited", grace_period_days } as const
          yield* client.policies.create({ params: { id: product.id }, payload })
        }
        yield* importing([
          "license_key,product,policy,created_at,expires_at",
          "OVER-KEY-0001,over,strict,2020-01-10,2021-01-10",
          "OVER-KEY-0002,over,kind,2020-01-10,2021-01-10"
        ])
        const { items } = yield* client.licenses.list({ query: { product_id: product.id } })
        assert.sameMembers(
          items.map(({ status }) => status),
          ["expired", "grace_period"]
        )
        // A change of the license also records what the clock has changed.
        for (const { id } of items) {
          yield* client.licenses.update({ params: { id }, payload: { metadata: { seen: true } } })
          const { items: events } = yield* client.events.list({ query: { resource_id: id } })
          assert.deepStrictEqual(
            events.map(({ event_type }) => event_type),
            ["license.updated", "license.created"]
          )
        }
      })
    )
  }
)
