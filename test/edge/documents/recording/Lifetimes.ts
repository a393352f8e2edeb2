/** What happens to a license as time passes, what its limits cause, and the other events that no other chapter has. */
import { Effect } from "effect"
import { goneUrl } from "./Deliveries.ts"
import { Recorder } from "./Recorder.ts"

interface Known {
  readonly product: string
  readonly exporting: string
}

interface WithKey {
  readonly license: { readonly id: string }
  readonly license_key: string
}

/** A month's license, used up, and left to expire. */
export const lifetimes = Effect.fnUntraced(function* ({ exporting, product }: Known) {
  const { passDays, refuse, send, signInAtPage } = yield* Recorder
  const monthly = yield* send("createPolicy", {
    params: { id: product },
    body: {
      name: "Monthly",
      code: "monthly",
      license_type: "subscription",
      duration_days: 30,
      grace_period_days: 7,
      max_activations: 1,
      max_floating_users: 2,
      require_heartbeat: true
    }
  })
  const { license_key } = yield* send<WithKey>("createLicense", {
    body: {
      product_id: product,
      policy_id: monthly.id,
      customer_name: "Grace Hopper",
      features: [
        {
          feature_id: exporting,
          max_consumptions: 100,
          reset_period: "month",
          overage_max: 50,
          expires_at: "2030-02-20T00:00:00Z"
        }
      ]
    }
  })
  const authorization = `License ${license_key}`
  const fingerprint = "compiler-room-1"
  yield* send("activateLicense", { authorization, body: { fingerprint } })
  yield* refuse("ACTIVATION_LIMIT_REACHED", "activateLicense", { authorization, body: { fingerprint: "spare" } })
  const feature_code = "export"
  for (const [event_id, amount] of [
    ["export-2030-02-01", 85],
    ["export-2030-02-02", 15],
    ["export-2030-02-03", 5]
  ]) {
    yield* send("consumeLicense", { authorization, body: { fingerprint, feature_code, event_id, amount } })
  }
  const reversal = { event_id: "failed-2030-02-03", reverses: "export-2030-02-03" }
  yield* send("consumeLicense", { authorization, body: { fingerprint, feature_code, ...reversal } })
  yield* signInAtPage(license_key)
  yield* send("checkoutFloatingLicense", { authorization, body: { fingerprint: "compiler-room-2" } })
  yield* maintained(product)
  // To the missed heartbeat, the feature's end, the notices, the end of the quota's period, the grace period and the end.
  for (const days of [2, 19, 3, 4, 2, 2, 7]) yield* passDays(days)
})

/** A perpetual license, whose maintenance was sold for a month. */
const maintained = Effect.fnUntraced(function* (product: string) {
  const { record, requestKeyAtPage, send, signInAtPage } = yield* Recorder
  const desktop = yield* send("createPolicy", {
    params: { id: product },
    body: { name: "Desktop", code: "desktop", license_type: "perpetual", maintenance_days: 1, reminder_days: [7] }
  })
  const { license, license_key } = yield* send<WithKey>("createLicense", {
    body: { product_id: product, policy_id: desktop.id, customer_email: "grace@example.com" }
  })
  yield* record("renewLicenseMaintenance", {
    params: { id: license.id },
    headers: { "idempotency-key": "maintenance-2030-02" },
    body: { extend_by_days: 29 }
  })
  yield* requestKeyAtPage(yield* signInAtPage(license_key), license.id)
})

/** Deliveries to a receiver that is gone, and a new signing key. */
export const keysAndReceivers = Effect.gen(function* () {
  const { record, rotateSigningKey, send } = yield* Recorder
  const { webhook } = yield* send<{ readonly webhook: { readonly id: string } }>("createWebhook", {
    body: { name: "Old back office", url: goneUrl, event_types: ["license.*", "webhook.*"] }
  })
  const params = { id: webhook.id }
  yield* record("updateWebhook", {
    params,
    body: { event_types: ["license.*", "usage.exhausted"], is_active: true }
  })
  yield* send("updateWebhook", { params, body: { rotate_secret: true } })
  yield* record("deleteWebhook", { params })
  yield* rotateSigningKey
})
