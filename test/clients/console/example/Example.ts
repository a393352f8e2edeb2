/** A service with the example's half-year, its webhooks and API keys, and all that its workers make of them. */
import { Effect, Layer } from "effect"
import { EventLog } from "../../../../src/ledger/events/EventLog.ts"
import * as RehearsalClock from "../../../../src/platform/telemetry/RehearsalClock.ts"
import * as Workers from "../../../../src/Workers.ts"
import { Database } from "../../../support/database/Database.ts"
import { TestServer } from "../../../support/http/TestServer.ts"
import { makeReceiver } from "../../../support/http/Webhooks.ts"
import { poll } from "../../../support/rules/Poll.ts"
import { Browser } from "../browser/Browser.ts"
import { builtConsole } from "../browser/BuiltConsole.ts"
import { applyPolicies } from "../browser/BulkWorker.ts"
import { days, liveHalfYear } from "./HalfYear.ts"

const daySeconds = 86_400

/** The service's clock begins half a year ago. */
const service = Layer.unwrap(
  Effect.sync(() => {
    let offsetMillis = -days * daySeconds * 1_000
    const clock = RehearsalClock.layer(() => offsetMillis)
    const advance = (seconds: number) =>
      Effect.sync(() => {
        offsetMillis += seconds * 1_000
      })
    return Workers.layer.pipe(
      Layer.provide(EventLog.layer),
      Layer.provide(clock),
      Layer.provideMerge(
        TestServer.layerWithClock({ webhookAllowLocal: true, sweepSeconds: 1 }, { clock, advance }).pipe(
          Layer.provideMerge(Database.layerUrl)
        )
      )
    )
  })
)

export const exampleLayer = Layer.mergeAll(service.pipe(Layer.provideMerge(builtConsole)), Browser.layer)

/** Whoever calls the service for the vendor: some keys expire soon, or are limited. */
const makeKeys = Effect.gen(function* () {
  const { client } = yield* TestServer
  const [editor] = (yield* client.products.list({ query: { sort: "code", limit: 1 } })).items
  const expires_at = Date.now() + 9 * daySeconds * 1_000
  const keys = [
    { name: "Web shop", scopes: ["license:read", "license:write", "product:read"], allowed_cidrs: ["203.0.113.0/24"] },
    { name: "Support desk", scopes: ["license:read", "device:write", "report:read"] },
    { name: "Reseller in Japan", scopes: ["license:read", "license:write"], product_ids: [editor!.id], expires_at },
    { name: "Monitoring", scopes: ["ops:read"] }
  ] as const
  for (const payload of keys) yield* client["api-keys"].create({ payload })
})

const seed = 7

/** Enters the example. Deliveries to one of the two receivers fail. */
export const makeExample = Effect.gen(function* () {
  const { client } = yield* TestServer
  yield* liveHalfYear(seed)
  yield* makeKeys
  const receiver = yield* makeReceiver
  receiver.answer(({ path }) => ({ status: path.startsWith("/crm") ? 500 : 204 }))
  const address = `http://127.0.0.1:${receiver.port}`
  yield* client.webhooks.create({ payload: { name: "Billing", url: `${address}/billing` } })
  const crm = { name: "Customer relations", url: `${address}/crm`, event_types: ["license.*"] }
  yield* client.webhooks.create({ payload: crm })
  // Events after the webhooks, which they deliver.
  const [customer] = (yield* client.customers.list({ query: { limit: 1 } })).items
  const params = { id: customer!.id }
  for (const seats of [10, 25]) yield* client.customers.update({ params, payload: { metadata: { seats } } })
  const [license] = (yield* client.licenses.list({ query: { status: "suspended", limit: 1 } })).items
  yield* client.licenses.reinstate({ params: { id: license!.id } })
  yield* applyPolicies({})
  const health = client.ops.webhookHealth({})
  yield* poll(health, ({ deliveries }) => deliveries.retrying > 0 && deliveries.delivered_24h > 1)
})

/** How many licenses are in each status. */
export const countOf = (status: "active" | "suspended" | "expired" | "revoked" | "grace_period") =>
  Effect.gen(function* () {
    const { client } = yield* TestServer
    const { total } = yield* client.licenses.list({ query: { status, limit: 1, include_total: "true" } })
    return total ?? 0
  })
