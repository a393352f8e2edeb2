/** The vendor's catalog: a product with policies, features, versions and custom fields. */
import { Effect } from "effect"
import { Recorder } from "./Recorder.ts"

/** Makes the product that the other chapters sell, and removes what nobody needs. */
export const catalog = Effect.gen(function* () {
  const { record, send } = yield* Recorder
  const product = yield* record("createProduct", {
    body: { name: "Editor", code: "editor", metadata: { team: "desktop" } }
  })
  const params = { id: product.id }
  yield* record("getProduct", { params })
  yield* record("updateProduct", { params, body: { name: "Editor Pro" } })
  yield* record("listProducts", { query: { limit: "20", sort: "-created_at" } })
  const unwanted = yield* send("createProduct", { body: { name: "Viewer", code: "viewer" } })
  yield* record("deleteProduct", { params: { id: unwanted.id } })

  const features = yield* featuresOf(product.id)
  const policies = yield* policiesOf(product.id, features.exporting)
  yield* versionsOf(product.id)
  return { product: product.id, ...features, ...policies }
})

const featuresOf = Effect.fnUntraced(function* (id: string) {
  const { record, send } = yield* Recorder
  const exporting = yield* record("createFeature", { params: { id }, body: { name: "Export", code: "export" } })
  const params = { id: exporting.id }
  yield* record("getFeature", { params })
  yield* record("updateFeature", { params, body: { name: "Export to PDF" } })
  yield* record("listFeatures", { params: { id }, query: { limit: "20" } })
  const printing = yield* send("createFeature", { params: { id }, body: { name: "Print", code: "print" } })
  const unwanted = yield* send("createFeature", { params: { id }, body: { name: "Fax", code: "fax" } })
  yield* record("deleteFeature", { params: { id: unwanted.id } })
  return { exporting: exporting.id, printing: printing.id }
})

const policiesOf = Effect.fnUntraced(function* (id: string, feature_id: string) {
  const { record, send } = yield* Recorder
  const yearly = yield* record("createPolicy", {
    params: { id },
    body: {
      name: "Yearly",
      code: "yearly",
      license_type: "subscription",
      max_activations: 2,
      max_floating_users: 5,
      borrow_days_max: 14,
      duration_days: 365
    }
  })
  const params = { id: yearly.id }
  yield* record("getPolicy", { params })
  yield* record("updatePolicy", { params, body: { grace_period_days: 14 } })
  yield* record("listPolicies", { params: { id }, query: { limit: "20", license_type: "subscription" } })
  const body = { max_consumptions: 1000, expires_after_days: 365 }
  yield* record("setPolicyFeature", { params: { ...params, feature_id }, body })
  yield* record("listPolicyFeatures", { params, query: { limit: "20" } })
  const team = yield* send("createPolicy", {
    params: { id },
    body: { name: "Team", code: "team", license_type: "subscription", max_activations: 25 }
  })
  yield* send("setPolicyFeature", { params: { id: team.id, feature_id }, body })
  yield* record("removePolicyFeature", { params: { id: team.id, feature_id } })
  yield* send("createPolicy", {
    params: { id },
    body: { name: "Trial", code: "trial", license_type: "trial", duration_days: 30, public_trial: true }
  })
  const unwanted = yield* send("createPolicy", {
    params: { id },
    body: { name: "Forever", code: "forever", license_type: "perpetual" }
  })
  yield* record("deletePolicy", { params: { id: unwanted.id } })
  return { yearly: yearly.id, team: team.id }
})

const versionsOf = Effect.fnUntraced(function* (id: string) {
  const { record, send } = yield* Recorder
  const version = yield* record("createProductVersion", {
    params: { id },
    body: { version: "2.4.0", released_at: "2030-01-15T12:00:00Z" }
  })
  yield* record("getProductVersion", { params: { id, version_id: version.id } })
  yield* record("listProductVersions", { params: { id }, query: { limit: "20" } })
  const withdrawn = yield* send("createProductVersion", { params: { id }, body: { version: "2.4.1" } })
  yield* record("deleteProductVersion", { params: { id, version_id: withdrawn.id } })
})
