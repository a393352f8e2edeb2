/** Nodes whose background work runs only when a test runs it, the activities feed over HTTP, and one row of each kind for it. */
import { Context, Effect, Layer } from "effect"
import type { Activity } from "../../../src/insight/activities/Activity.ts"
import { EventTimeIndex } from "../../../src/insight/activities/EventTimeIndex.ts"
import { Refusals } from "../../../src/insight/activities/Refusals.ts"
import { Validations } from "../../../src/licensing/runtime/Validations.ts"
import { issue } from "./IssuedLicenses.ts"
import { TestServer } from "./TestServer.ts"

type Settings = Parameters<typeof TestServer.layerWith>[0]

/** The workers of the feed and of the counts of validations. */
const workers = Layer.mergeAll(Refusals.layer, EventTimeIndex.layer).pipe(Layer.provideMerge(Validations.layer))

/** A node on a new database. */
export const layerActivities = (settings: Settings = {}) =>
  workers.pipe(Layer.provideMerge(TestServer.layerWith(settings)))

/** Starts another node on the test's database. The scope stops it. */
export const startActivitiesNode = (settings: Settings = {}) =>
  Effect.map(Layer.build(Layer.fresh(workers.pipe(Layer.provideMerge(TestServer.layerOver(settings))))), (context) => ({
    server: Context.get(context, TestServer),
    refusals: Context.get(context, Refusals),
    validations: Context.get(context, Validations)
  }))

interface Page {
  readonly data: ReadonlyArray<ActivityJson>
  readonly page_info: { readonly next_cursor: number | null }
}

/** An activity in JSON. */
export type ActivityJson = Omit<Activity, "occurred_at"> & { readonly occurred_at: string }

export const requestActivities = (query = "") =>
  Effect.flatMap(TestServer, ({ send }) => send({ path: `/api/v1/activities${query}` }))

/** All rows that match a filter, read page by page. */
export const listActivities = Effect.fnUntraced(function* (
  filter: { readonly [name: string]: string | number } = {},
  limit = 200
) {
  const query = new URLSearchParams(
    Object.entries({ ...filter, limit }).map(([name, value]): [string, string] => [name, String(value)])
  )
  const rows: Array<ActivityJson> = []
  let cursor: number | null = null
  do {
    const { json, status, text } = yield* requestActivities(`?${query}${cursor === null ? "" : `&cursor=${cursor}`}`)
    if (status !== 200) return yield* Effect.die(new Error(text))
    const { data, page_info } = json as Page
    rows.push(...data)
    cursor = page_info.next_cursor
  } while (cursor !== null)
  return rows
})

const machine = { fingerprint: "machine-of-a-customer", hostname: "host-of-a-customer" }
const period = { current_period_start: 1_700_000_000_000, current_period_end: 1_900_000_000_000 }

let made = 0

/** A customer with a license by subscription and one by order, and a license whose device stops sending heartbeats. */
const makeAll = Effect.gen(function* () {
  const { client } = yield* TestServer
  const customer = yield* client.customers.create({ payload: { name: "C", code: `c-${++made}` } })
  const license = yield* issue({ max_activations: 1, max_floating_users: 1 }, { customer_id: customer.id })
  const silent = yield* issue({ require_heartbeat: true, validation_interval_minutes: 1 })
  const params = { id: license.product_id }
  const external = { external_system: "s", external_id: "1" }
  const subscription = yield* client.commerce.createSubscription({
    params,
    payload: { ...external, status: "active", customer_id: customer.id, ...period }
  })
  const order = yield* client.commerce.createOrder({
    params,
    payload: { ...external, status: "paid", subscription_id: subscription.id }
  })
  const { expires_at, policy_id } = yield* client.licenses.get({ params: { id: license.id } })
  const { license: ordered } = yield* client.licenses.create({
    payload: { product_id: license.product_id, policy_id, order_id: order.id, expires_at: expires_at! }
  })
  const feature = yield* client.features.create({ params, payload: { name: "F", code: "export" } })
  const { id: deleted } = yield* client.features.create({ params, payload: { name: "G", code: "gone" } })
  yield* client.features.delete({ params: { id: deleted } })
  yield* client.features.update({ params: { id: feature.id }, payload: { name: "Export" } })
  yield* client.licenses.assignFeature({
    params: { id: license.id },
    payload: { feature_id: feature.id, max_consumptions: 2 }
  })
  return { customer, feature, license, order, ordered, params, silent, subscription }
})

/** Makes an activity of every kind; refusals are written between some of them. */
export const makeEveryActivity = Effect.gen(function* () {
  const { pass } = yield* Refusals
  const { advance, client } = yield* TestServer
  const made = yield* makeAll
  const { license, silent } = made
  const { runtime } = license
  const refused = (call: Effect.Effect<unknown, unknown>) => Effect.asVoid(Effect.flip(call))
  yield* refused(runtime.check({ payload: machine }))
  const device = yield* runtime.activate({ payload: machine })
  yield* refused(runtime.activate({ payload: { fingerprint: "machine-too-many" } }))
  yield* runtime.consume({ payload: { ...machine, feature_code: "export", event_id: "1", amount: 2 } })
  yield* refused(runtime.consume({ payload: { ...machine, feature_code: "export", event_id: "2" } }))
  yield* pass
  yield* refused(runtime.consume({ payload: { ...machine, feature_code: "Not A Code", event_id: "3" } }))
  yield* pass
  const seat = yield* runtime.checkout({ payload: { fingerprint: "machine-with-a-seat" } })
  yield* refused(runtime.checkout({ payload: { fingerprint: "machine-without-a-seat" } }))
  yield* license.post("suspend")
  yield* refused(runtime.heartbeat({ payload: { lease_token: "no lease" } }))
  yield* refused(runtime.validate({ payload: machine }))
  yield* license.post("reinstate")
  yield* refused(runtime.heartbeat({ payload: { lease_token: seat.data.lease_token } }))
  yield* pass
  yield* silent.runtime.activate({ payload: machine })
  yield* advance(600)
  yield* refused(silent.runtime.validate({ payload: machine }))
  yield* refused(silent.runtime.deactivate({ payload: {} }))
  yield* silent.runtime.activate({ payload: machine })
  yield* client.devices.reset({ params: { id: license.id, device_id: device.data.device_id }, payload: {} })
  yield* pass
  return { ...made, device: device.data, seat: seat.data }
})
