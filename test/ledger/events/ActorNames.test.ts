/** The names of those who changed something, wherever their change is shown. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { bodyOf } from "../../../src/ledger/webhooks/Message.ts"
import { makeLicense, makeProduct } from "../../support/http/ProductTokens.ts"
import { TestServer } from "../../support/http/TestServer.ts"

const key = Effect.fnUntraced(function* (name: string) {
  const { client } = yield* TestServer
  const { api_key, token } = yield* client["api-keys"].create({ payload: { name, scopes: ["admin"] } })
  return { id: api_key.id, token }
})

layer(TestServer.layer)("The name of an API key", (it) => {
  it.effect("stands in events, activities, the usage ledger and audits, as it was at that time", () =>
    Effect.gen(function* () {
      const { client, connect, send } = yield* TestServer
      const product = yield* makeProduct
      const feature = yield* client.features.create({
        params: { id: product.id },
        payload: { name: "API", code: "api" }
      })
      const { id, token } = yield* key("Back office")
      const back = yield* connect({ token })
      const { id: licenseId } = yield* makeLicense(product)
      const params = { id: licenseId }
      yield* back.licenses.assignFeature({ params, payload: { feature_id: feature.id, max_consumptions: 5 } })
      yield* back.licenses.resetUsage({ params, payload: { feature_id: feature.id, max_consumptions: 9 } })
      yield* client["api-keys"].update({ params: { id }, payload: { name: "Renamed" } })
      const named = <A extends { readonly actor_id: string; readonly actor_name?: string }>(items: ReadonlyArray<A>) =>
        items.filter(({ actor_id }) => actor_id === id).map(({ actor_name }) => actor_name)
      const { items: events } = yield* client.events.list({ query: { resource_id: licenseId } })
      assert.deepStrictEqual(named(events), ["Back office", "Back office"])
      const byType = yield* client.events.list({ query: { event_type: "license.usage_reset" } })
      assert.deepStrictEqual(named(byType.items), ["Back office"])
      const { items: activities } = yield* client.activities.list({ query: { license_id: licenseId } })
      assert.deepStrictEqual(named(activities), ["Back office", "Back office"])
      const { items: ledger } = yield* client.reports.usageLedger({ query: { license_id: licenseId } })
      assert.deepStrictEqual(named(ledger), ["Back office"])
      const { events: audited } = yield* client.reports.licenseAudit({ query: { license_id: licenseId } })
      assert.deepStrictEqual(named(audited), ["Back office", "Back office"])
      const { json } = yield* send({
        method: "POST",
        path: "/api/v1/reports/exports",
        body: { report_kind: "usage-ledger", format: "csv", filters: { license_id: licenseId } }
      })
      const path = new URL((json as { readonly data: { readonly download_url: string } }).data.download_url).pathname
      const { text } = yield* send({ path })
      const [head = "", row = ""] = text.split("\r\n")
      assert.isTrue(head.endsWith(",request_id,actor_name,credits,overage,reverses"), head)
      assert.isTrue(row.endsWith(",Back office,,,"), row)
    })
  )

  it.effect("stands in bulk jobs, as it was when they were created", () =>
    Effect.gen(function* () {
      const { client, connect } = yield* TestServer
      const { id: license_id } = yield* makeLicense(yield* makeProduct)
      const { id, token } = yield* key("Back office")
      const back = yield* connect({ token })
      const created = yield* back.bulkJobs.create({ payload: { action: "suspend", license_ids: [license_id] } })
      assert.strictEqual(created.created_by_name, "Back office")
      yield* client["api-keys"].update({ params: { id }, payload: { name: "Renamed" } })
      const job = yield* client.bulkJobs.get({ params: { id: created.id } })
      assert.deepInclude(job, { created_by: id, created_by_name: "Back office" })
      const { items } = yield* client.bulkJobs.list({ query: {} })
      assert.deepStrictEqual(items, [job])
    })
  )

  it.effect("stands in exports of reports, as it was when they were created", () =>
    Effect.gen(function* () {
      const { client, connect } = yield* TestServer
      const { id, token } = yield* key("Back office")
      const back = yield* connect({ token })
      const created = yield* back.reports.createExport({ payload: { report_kind: "usage-summary", format: "json" } })
      assert.strictEqual(created.created_by_name, "Back office")
      yield* client["api-keys"].update({ params: { id }, payload: { name: "Renamed" } })
      const stored = yield* client.reports.getExport({ params: { id: created.id } })
      assert.deepInclude(stored, { created_by: id, created_by_name: "Back office" })
    })
  )

  it.effect("stands in the body of webhooks, and is absent where nobody has a name", () =>
    Effect.sync(() => {
      const event = {
        ...{
          sequence: 1,
          event_type: "license.suspended",
          created_at: 0,
          resource_type: "license",
          resource_id: "lic_1"
        },
        ...{ actor_type: "oidc_subject", actor_id: "u-1", metadata: {} }
      } as const
      const dataOf = (actor_name: string | null) =>
        JSON.parse(Buffer.from(bodyOf({ ...event, actor_name })).toString()).data
      assert.strictEqual(dataOf("Ada Byron").actor_name, "Ada Byron")
      assert.notProperty(dataOf(null), "actor_name")
    })
  )
})
