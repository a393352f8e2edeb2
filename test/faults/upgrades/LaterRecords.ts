/** Records of kinds that later versions brought. A version that does not know a kind refuses its request, and has no such record. */
import { ask, farAway, Refused, type Service, sender } from "./Records.ts"

/** Unknown members of a body, routes and methods. */
const unknownStatuses = new Set([400, 404, 405])

const kindsOf = (service: Service, isSettled: () => Promise<void>) => {
  const send = sender(service)
  let sold = 0
  /** A license of a policy of its own. */
  const sell = async (policy: object, license: object = {}) => {
    const code = `later-${++sold}`
    const product = await send("POST", "/products", { name: code, code })
    const feature = await send("POST", `/products/${product.id}/features`, { name: "Render", code: "render" })
    const own = { name: code, code, license_type: "perpetual", max_activations: 3, max_floating_users: 3, ...policy }
    const { id: policy_id } = await send("POST", `/products/${product.id}/policies`, own)
    const links = { product_id: product.id, policy_id }
    const issued = await send("POST", "/licenses", { ...links, ...license })
    const call = (path: string, body: object) => send("POST", `/license/${path}`, body, `License ${issued.license_key}`)
    return { call, code, feature, issued, links, path: `/licenses/${issued.license.id}`, product }
  }
  return {
    "limits and a key of the vendor's own": () => sell({}, { license_key: "OWN-KEY-1234-5678", max_activations: 7 }),
    "features of a policy": async () => {
      const { feature, links } = await sell({})
      const own = { enabled: true, max_consumptions: 10, metadata: {} }
      await send("PUT", `/policies/${links.policy_id}/features/${feature.id}`, own)
      await send("POST", "/licenses", links)
    },
    "terms that begin at first activation": async () => {
      const { call } = await sell({
        license_type: "time_limited",
        duration_days: 3_650,
        duration_starts: "first_activation"
      })
      await call("activate", { fingerprint: "first" })
    },
    trials: async () => {
      const term = { license_type: "trial", duration_days: 3_650 }
      const { code } = await sell({ ...term, public_trial: true })
      await send("POST", "/license/trial", { product_code: code, policy_code: code, binding: { fingerprint: "trier" } })
    },
    "keys of some products": async () => {
      const { product } = await sell({})
      await send("POST", "/api-keys", { name: "some", scopes: ["license:read"], product_ids: [product.id] })
    },
    maintenance: async () => {
      const { path } = await sell({ maintenance_days: 30, reminder_days: [5] })
      await send("POST", `${path}/maintenance`, { extend_by_days: 3_650 })
    },
    "quotas with periods, credits and reversals": async () => {
      const { call, feature, path } = await sell({})
      const quota = {
        feature_id: feature.id,
        max_consumptions: 10,
        reset_period: "year",
        rollover_max: 5,
        overage_max: 7
      }
      await send("POST", `${path}/features`, quota)
      await send("POST", `${path}/usage/reset`, { feature_code: "render", add_credits: 3 })
      await call("activate", { fingerprint: "first" })
      const use = { fingerprint: "first", feature_code: "render" }
      for (const [event_id, amount] of Object.entries({ whole: 12, back: 2 }))
        await call("consume", { ...use, event_id, amount })
      await call("consume", { ...use, event_id: "reversal", reverses: "back" })
    },
    "borrowed seats": async () => {
      const { call } = await sell({ borrow_days_max: 30 })
      const until = new Date(Date.now() + 20 * 86_400_000).toISOString()
      await call("floating/checkout", { fingerprint: "laptop", until })
    },
    "slots held by envelopes": async () => {
      const { call } = await sell({ hold_offline_slots: true })
      await call("offline", { fingerprint: "island", activate: true })
      await call("deactivate", { fingerprint: "island" })
    },
    "features that end with the license": async () => {
      const { feature, links } = await sell({ license_type: "time_limited" }, { expires_at: farAway })
      const own = { enabled: true, expires_with_license: true, metadata: {} }
      await send("PUT", `/policies/${links.policy_id}/features/${feature.id}`, own)
      await send("POST", "/licenses", { ...links, expires_at: farAway })
    },
    "bulk jobs": async () => {
      const { issued } = await sell({})
      await send("POST", "/bulk-jobs", { action: "suspend", license_ids: [issued.license.id] })
      await isSettled()
    }
  }
}

/** Returns the kinds that the version knows. */
export const makeLaterRecords = async (service: Service): Promise<ReadonlyArray<string>> => {
  const isSettled = async () => {
    for (;;) {
      const { json } = await ask(service, "GET", "/bulk-jobs")
      const jobs = json.data as ReadonlyArray<{ readonly status: string }>
      if (jobs.every(({ status }) => status === "completed")) return
    }
  }
  const made: Array<string> = []
  for (const [kind, make] of Object.entries(kindsOf(service, isSettled))) {
    try {
      await make()
      made.push(kind)
    } catch (failure) {
      if (!(failure instanceof Refused && unknownStatuses.has(failure.status))) throw failure
    }
  }
  return made
}
