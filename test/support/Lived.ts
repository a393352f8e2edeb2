/** A service that has lived a little: one of everything that can stand in the activities feed. */
import { Effect } from "effect"
import { Refusals } from "../../src/activities/Refusals.ts"
import { issue } from "./Issued.ts"
import { TestServer } from "./TestServer.ts"

const machine = { fingerprint: "machine-of-a-customer", hostname: "host-of-a-customer" }
const period = { current_period_start: 1_700_000_000_000, current_period_end: 1_900_000_000_000 }

let made = 0

/** A customer with a license by subscription and one by order, and another license whose device falls silent. */
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

/** One of everything that can stand in the feed; refusals are written down now and then. */
export const live = Effect.gen(function* () {
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
  yield* client.devices.reset({ params: { id: license.id, device_id: device.data.device_id } })
  yield* pass
  return { ...made, device: device.data, seat: seat.data }
})
