/** A license: issued, used by applications, changed by the back office. */
import { Effect } from "effect"
import { Recorder } from "./Recorder.ts"

interface Catalog {
  readonly product: string
  readonly exporting: string
  readonly printing: string
  readonly yearly: string
  readonly team: string
  readonly customer: string
  readonly other: string
  readonly order: string
  readonly subscription: string
}

interface WithKey {
  readonly license: { readonly id: string }
  readonly license_key: string
}

const laptop = {
  fingerprint: "4c4c4544-0042-3510-8056-b4c04f4d3332",
  hostname: "ada-laptop",
  os: "linux",
  app_version: "2.4.0"
}

/** Issues the license that the other chapters use. */
export const issuing = Effect.fnUntraced(function* ({
  product,
  yearly,
  customer,
  order,
  exporting,
  printing
}: Catalog) {
  const { record } = yield* Recorder
  const { license, license_key } = yield* record<WithKey>("createLicense", {
    body: { product_id: product, policy_id: yearly, customer_id: customer, order_id: order }
  })
  const params = { id: license.id }
  yield* record("getLicense", { params })
  yield* record("updateLicense", { params, body: { max_activations: 3 } })
  yield* record("listLicenses", { query: { limit: "20", status: "active", expand: "customer" } })
  yield* record("assignLicenseFeature", { params, body: { feature_id: printing } })
  yield* record("listLicenseFeatures", { params, query: { limit: "20" } })
  yield* record("removeLicenseFeature", { params: { ...params, feature_id: printing } })
  return { license: license.id, licenseKey: license_key, exporting }
})

interface Issued {
  readonly license: string
  readonly licenseKey: string
}

/** What a licensed application calls. */
export const runtime = Effect.fnUntraced(function* ({ licenseKey }: Issued) {
  const { record, refuse } = yield* Recorder
  const authorization = `License ${licenseKey}`
  const nonce = (text: string) => ({ nonce: `nonce-of-${text}` })
  const entitlement = yield* record<{ readonly device_id: string }>("activateLicense", {
    authorization,
    body: { ...laptop, ...nonce("activate") }
  })
  const body = { fingerprint: laptop.fingerprint, app_version: laptop.app_version }
  yield* record("validateLicense", { authorization, body: { ...body, ...nonce("validate") } })
  yield* record("checkLicense", { authorization, body: { ...body, ...nonce("check") } })
  const consumption = { feature_code: "export", event_id: "render-2030-01-31-0001", amount: 5 }
  yield* record("consumeLicense", { authorization, body: { ...body, ...consumption } })
  yield* refuse("USAGE_LIMIT_EXCEEDED", "consumeLicense", {
    authorization,
    body: { ...body, ...consumption, event_id: "render-2030-01-31-0002", amount: 5000 }
  })
  yield* record("issueOfflineLicense", { authorization, body })
  yield* floating(authorization)
  yield* record("startTrial", {
    authorization: null,
    body: { product_code: "editor", policy_code: "trial", binding: { fingerprint: "home-computer" }, ...nonce("trial") }
  })
  return { device: entitlement.device_id }
})

const floating = Effect.fnUntraced(function* (authorization: string) {
  const { record } = yield* Recorder
  const { lease_token } = yield* record<{ readonly lease_token: string }>("checkoutFloatingLicense", {
    authorization,
    body: { fingerprint: "workstation-17", hostname: "workstation-17", until: "2030-02-07T18:00:00Z" }
  })
  yield* record("heartbeatFloatingLicense", { authorization, body: { lease_token } })
})

/** Gives back what `runtime` took. */
export const giveBack = Effect.fnUntraced(function* ({ license, licenseKey }: Issued) {
  const { record, refuse, send } = yield* Recorder
  const authorization = `License ${licenseKey}`
  yield* record("listLicenseLeases", { params: { id: license }, query: { limit: "20" } })
  const { lease_token } = yield* send<{ readonly lease_token: string }>("checkoutFloatingLicense", {
    authorization,
    body: { fingerprint: "workstation-17" }
  })
  yield* record("checkinFloatingLicense", { authorization, body: { lease_token } })
  yield* send("activateLicense", { authorization, body: laptop })
  yield* record("deactivateLicense", { authorization, body: { fingerprint: laptop.fingerprint } })
  yield* record("listOwnDevices", { authorization, query: { limit: "20" } })
  const lost = yield* send<{ readonly device_id: string }>("activateLicense", { authorization, body: laptop })
  yield* record("deactivateOwnDevice", {
    authorization,
    params: { device_id: lost.device_id },
    body: { nonce: "nonce-of-deactivate" }
  })
  yield* refuse("DEVICE_NOT_FOUND", "validateLicense", { authorization, body: { fingerprint: "unknown" } })
  yield* refuse("VALIDATION_ERROR", "activateLicense", { authorization, body: {} })
})

/** The devices of the license. */
export const devices = Effect.fnUntraced(function* ({
  license: id,
  licenseKey,
  device
}: Issued & { readonly device: string }) {
  const { record, refuse } = yield* Recorder
  const params = { id, device_id: device }
  yield* record("getDevice", { params })
  yield* record("listDevices", { params: { id }, query: { limit: "20", status: "active" } })
  yield* record("listAllDevices", { query: { limit: "20", hostname: "ada-laptop" } })
  yield* record("diagnoseLicense", {
    params: { id },
    body: { fingerprint: laptop.fingerprint, feature_code: "export" }
  })
  yield* record("resetDevice", { params, body: { release_borrowed: true } })
  yield* record("blacklistDevice", { params })
  yield* refuse("DEVICE_BLACKLISTED", "activateLicense", { authorization: `License ${licenseKey}`, body: laptop })
  yield* record("unblacklistDevice", { params })
})

/** What the back office does with the license. */
export const backOffice = Effect.fnUntraced(function* (all: Catalog & Issued) {
  const { record, refuse, send } = yield* Recorder
  const { license, licenseKey, order, other, subscription, team, yearly } = all
  const params = { id: license }
  yield* record("suspendLicense", { params })
  yield* refuse("LICENSE_SUSPENDED", "activateLicense", { authorization: `License ${licenseKey}`, body: laptop })
  yield* record("reinstateLicense", { params })
  yield* refuse("IDEMPOTENCY_KEY_REQUIRED", "renewLicense", { params, body: { extend_by_days: 365 } })
  yield* record("renewLicense", {
    params,
    headers: { "idempotency-key": "renewal-2030-01-31" },
    body: { extend_by_days: 365, order_id: order, subscription_id: subscription }
  })
  yield* record("resetLicenseUsage", { params, body: { feature_code: "export", add_credits: 100 } })
  yield* record("previewLicenseChange", { params, body: { action: "policy", parameters: { policy_id: team } } })
  yield* record("changeLicensePolicy", { params, body: { policy_id: team, keep_features: true } })
  yield* record("transferLicense", { params, body: { customer_id: other, reset_devices: true } })
  yield* record("rotateLicenseKey", { params, body: {} })
  const sold = { product_id: all.product, policy_id: yearly }
  yield* record("createLicenseBatch", {
    body: {
      licenses: [
        { ...sold, customer_email: "lin@example.com" },
        { ...sold, license_key: "ACME-2029-000417" }
      ]
    }
  })
  const { license: misused } = yield* send<WithKey>("createLicense", {
    body: { product_id: all.product, policy_id: yearly }
  })
  yield* record("revokeLicense", { params: { id: misused.id } })
  yield* refuse("LICENSE_STATE_CONFLICT", "suspendLicense", { params: { id: misused.id } })
  yield* record("eraseCustomer", { params: { id: other } })
})
