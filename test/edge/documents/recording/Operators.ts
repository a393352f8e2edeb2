/** What operators do: API keys, webhooks, events, reports, probes. */
import { Effect } from "effect"
import { receiverUrl } from "./Deliveries.ts"
import { Recorder } from "./Recorder.ts"

interface WithToken {
  readonly api_key: { readonly id: string }
  readonly token: string
}

interface Known {
  readonly product: string
  readonly yearly: string
  readonly customer: string
  readonly license: string
  readonly subscription: string
}

export const apiKeys = Effect.gen(function* () {
  const { record, refuse, send } = yield* Recorder
  const { api_key } = yield* record<WithToken>("createApiKey", {
    body: { name: "Web shop", scopes: ["license:read", "license:write"], allowed_cidrs: ["127.0.0.0/8"] }
  })
  const params = { id: api_key.id }
  yield* record("getApiKey", { params })
  yield* record("updateApiKey", { params, body: { is_active: false } })
  // The admin's own key is not in the list: its last_used_at is written every half a minute of the machine's clock.
  yield* record("listApiKeys", { query: { limit: "20", is_active: "false" } })
  const unwanted = yield* send<WithToken>("createApiKey", { body: { name: "Old shop", scopes: ["license:read"] } })
  yield* refuse("TOKEN_SCOPE_DENIED", "listProducts", { authorization: `Bearer ${unwanted.token}` })
  yield* record("deleteApiKey", { params: { id: unwanted.api_key.id } })
  yield* record("getMe")
})

/** The endpoint that receives the examples of deliveries, from the first event on. */
export const receivers = Effect.gen(function* () {
  const { record } = yield* Recorder
  const { webhook } = yield* record<{ readonly webhook: { readonly id: string } }>("createWebhook", {
    body: { name: "Back office", url: receiverUrl },
    atOnce: true
  })
  return { webhook: webhook.id }
})

export const webhooks = Effect.fnUntraced(function* ({ webhook: id }: { readonly webhook: string }) {
  const { record } = yield* Recorder
  yield* record("getWebhook", { params: { id } })
  yield* record("listWebhooks", { query: { limit: "20" } })
  yield* record("getWebhookHealth")
  yield* record("getMailHealth")
})

/** A reseller that has not paid. One of its licenses was revoked before. */
export const bulkJobs = Effect.fnUntraced(function* ({ product, yearly }: Known) {
  const { failBulkJobs, record, runBulkJobs, send } = yield* Recorder
  const metadata = { reseller: "Northwind" }
  const [, revoked] = yield* Effect.forEach([1, 2, 3], () =>
    send<{ readonly license: { readonly id: string } }>("createLicense", {
      body: { product_id: product, policy_id: yearly, metadata }
    })
  )
  yield* send("revokeLicense", { params: { id: revoked!.license.id } })
  const filter = { "metadata[reseller]": metadata.reseller }
  const job = yield* record("createBulkJob", {
    body: { action: "suspend", filter, reason: "The reseller has not paid for January." }
  })
  yield* runBulkJobs
  yield* record("getBulkJob", { params: { id: job.id } })
  yield* record("listBulkJobRefusals", { params: { id: job.id } })
  const needless = yield* send("createBulkJob", { body: { action: "reinstate", filter, dry_run: true } })
  yield* record("cancelBulkJob", { params: { id: needless.id } })
  yield* send("createBulkJob", { body: { action: "reset_devices", filter } })
  yield* failBulkJobs
  yield* record("listBulkJobs", { query: { limit: "20" } })
})

const inJanuary = { from: "2030-01-01T00:00:00Z", to: "2030-02-01T00:00:00Z" }

export const reports = Effect.fnUntraced(function* ({ customer, license, product, subscription }: Known) {
  const { record, send } = yield* Recorder
  yield* record("getUsageSummary", {
    query: { ...inJanuary, product_id: product, group_by: "license_id,feature_code" }
  })
  yield* record("getOverview", { query: { ...inJanuary, from: "2030-01-30T00:00:00Z", product_id: product } })
  yield* record("getAttention", { query: { product_id: product } })
  yield* record("listUsageLedger", { query: { license_id: license, limit: "20" } })
  yield* record("getLicenseAudit", { query: { license_id: license, limit: "5" } })
  yield* record("getCustomerSummary", { query: { ...inJanuary, customer_id: customer } })
  yield* record("getSubscriptionSettlement", { query: { subscription_id: subscription } })
  const filters = { ...inJanuary, group_by: ["license_id", "feature_code"] }
  const exported = yield* record("createReportExport", {
    body: { report_kind: "usage-summary", format: "json", filters }
  })
  yield* record("getReportExport", { params: { id: exported.id } })
  yield* record("listReportExports", { query: { limit: "20" } })
  yield* record("downloadReportExport", { params: { id: exported.id } })
  const table = yield* send("createReportExport", { body: { report_kind: "usage-summary", format: "csv", filters } })
  yield* record("downloadReportExport", { params: { id: table.id } })
})

export const operations = Effect.fnUntraced(function* ({ license }: Known) {
  const { record, signOfLife } = yield* Recorder
  yield* record("listEvents", { query: { limit: "5", resource_id: license } })
  yield* record("listActivities", { query: { limit: "5", license_id: license, source: "management" } })
  yield* record("search", { query: { q: "ada" } })
  yield* record("getOpsSummary")
  yield* signOfLife
  yield* record("getOpsNodes")
  yield* record("getOpsErrors")
  yield* record("listPublicKeys", { authorization: null })
  yield* record("getHealth", { authorization: null })
  yield* record("getLiveness", { authorization: null })
  yield* record("getReadiness", { authorization: null })
})

/** The refusals that most operations share. */
export const refusals = Effect.fnUntraced(function* ({ product }: Known) {
  const { refuse } = yield* Recorder
  const params = { id: product }
  const unknownToken = "lsm_RXhhbXBsZUV4YW1wbGVFeGFtcGxlRXhhbXBsZUV4YW0"
  yield* refuse("INVALID_QUERY", "listLicenses", { query: { limit: "0" } })
  yield* refuse("INVALID_JSON", "createProduct", { body: { name: "Editor", code: "editor", colour: "red" } })
  yield* refuse("NOT_FOUND", "getProduct", { params: { id: "prod_unknown" } })
  yield* refuse("DUPLICATE_CODE", "createProduct", { body: { name: "Editor", code: "editor" } })
  yield* refuse("RESOURCE_IN_USE", "deleteProduct", { params })
  yield* refuse("VALIDATION_ERROR", "createProduct", { body: { name: "", code: "An Editor" } })
  yield* refuse("TOKEN_MISSING", "listProducts", { authorization: null })
  yield* refuse("TOKEN_MALFORMED", "listProducts", { authorization: `Bearer ${unknownToken}` })
  yield* refuse("LICENSE_KEY_MISSING", "checkLicense", { authorization: null, body: {} })
  const authorization = "License LK-EXAMP-00000-00000-00000-00000-00000"
  yield* refuse("LICENSE_KEY_INVALID", "checkLicense", { authorization, body: {} })
  yield* refuse("RATE_LIMITED", "checkLicense", { authorization, body: {}, atOnce: true })
  yield* refuse("TOKEN_MALFORMED", "listProducts", { authorization: `Bearer ${unknownToken}` })
})
