/**
 * Resources of every kind, made over the API, that paths and bodies of valid requests refer to. Bodies are the document's
 * examples with existing ids, so a new operation needs no change here unless it refers to a new kind of resource.
 */
import { assert } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { IpNetwork } from "effect/net"
import { TestServer } from "../../support/http/TestServer.ts"
import { Conversation, operationOf, type Request } from "./Conversation.ts"
import { type Operation, operations } from "./Surface.ts"

interface Identified {
  readonly id: string
}

/** Ids by the kind in the path, and the values of runtime requests. */
export interface Fixture {
  readonly ids: { readonly [kind: string]: string }
  readonly licenseKey: string
  readonly fingerprint: string
  readonly featureCode: string
  readonly productCode: string
  /** Of a policy with public trials. */
  readonly trialPolicyCode: string
  readonly leaseToken: string
}

/** An address that no network routes: a host name would be looked up, which takes seconds on a machine without a name server. */
export const unroutedUrl = "https://192.0.2.1"
/** The setting that a service with fixtures needs for it. */
export const allowingUnrouted = { webhookAllowCidrs: [IpNetwork.fromStringUnsafe("192.0.2.0/24")] }

/** Bodies that differ from the document's example, for operations that accept a body only once. */
const unique = ["code", "external_id", "event_id", "version"]

let made = 0
const serial = () => `n${++made}`

export class Fixtures extends Context.Service<
  Fixtures,
  {
    /** One resource of every kind, in a new product. */
    readonly make: Effect.Effect<Fixture>
    /** Another resource of a kind, which no other resource depends on. */
    another(kind: string, fixture: Fixture): Effect.Effect<string>
  }
>()("licensing/test/contract/Fixtures") {
  static readonly layer = Layer.effect(
    Fixtures,
    Effect.gen(function* () {
      const { data } = yield* Conversation

      const create = (operationId: string, fixture: Fixture, more: object) => {
        const operation = operationOf(operationId)
        const body = { ...(bodyOf(operation, fixture) as object), ...more }
        return data<Identified>(operationId, { ...requestOf(operation, fixture), body })
      }

      const another = Effect.fnUntraced(function* (kind: string, fixture: Fixture) {
        const maker = makers[kind]
        assert.isDefined(maker, `Fixtures.ts has no maker of ${kind}`)
        const [operationId, of, more] = typeof maker === "string" ? [maker, fixture, {}] : maker(fixture)
        return idOf(yield* create(operationId, of, more))
      })

      const makeCatalog = Effect.gen(function* () {
        let fixture: Fixture = {
          ids: {},
          licenseKey: "",
          fingerprint: serial(),
          featureCode: "",
          productCode: "",
          trialPolicyCode: "",
          leaseToken: ""
        }
        for (const kind of catalogKinds) {
          fixture = { ...fixture, ids: { ...fixture.ids, [kind]: yield* another(kind, fixture) } }
        }
        const codeOf = (operationId: string, kind: string) =>
          Effect.map(
            data<{ readonly code: string }>(operationId, { params: { id: fixture.ids[kind]! } }),
            ({ code }) => code
          )
        const trial = { license_type: "trial", duration_days: 14, public_trial: true }
        const { code: trialPolicyCode } = (yield* create("createPolicy", fixture, trial)) as unknown as {
          readonly code: string
        }
        return {
          ...fixture,
          featureCode: yield* codeOf("getFeature", "features"),
          productCode: yield* codeOf("getProduct", "products"),
          trialPolicyCode
        }
      })

      /** A license of another policy, with an end of maintenance. */
      const makePerpetual = Effect.fnUntraced(function* (catalog: Fixture) {
        const perpetual = { license_type: "perpetual", duration_days: undefined }
        const policy_id = idOf(yield* create("createPolicy", catalog, perpetual))
        const dates = { expires_at: undefined, maintenance_expires_at: "2031-01-31T12:00:00Z" }
        return idOf(yield* create("createLicense", catalog, { policy_id, ...dates }))
      })

      const makeLicense = Effect.fnUntraced(function* (catalog: Fixture) {
        const { license, license_key } = yield* data<{ license: Identified; license_key: string }>("createLicense", {
          body: { ...(bodyOf(operationOf("createLicense"), catalog) as object), order_id: catalog.ids["orders"] }
        })
        const authorization = `License ${license_key}`
        const id = license.id
        yield* data("assignLicenseFeature", {
          params: { id },
          body: { feature_id: catalog.ids["features"], max_consumptions: 1_000_000 }
        })
        const { fingerprint } = catalog
        const { device_id } = yield* data<{ device_id: string }>("activateLicense", {
          authorization,
          body: { fingerprint }
        })
        const { lease_token } = yield* data<{ lease_token: string }>("checkoutFloatingLicense", {
          authorization,
          body: { fingerprint: `${fingerprint} floating` }
        })
        return {
          ...catalog,
          ids: { ...catalog.ids, licenses: id, devices: device_id, [perpetualLicenses]: yield* makePerpetual(catalog) },
          licenseKey: license_key,
          leaseToken: lease_token
        }
      })

      return Fixtures.of({ make: Effect.flatMap(makeCatalog, makeLicense), another })
    })
  )
}

/** The whole service without rate limits, with fixtures and a client. */
export const layerContractWith = (settings: Parameters<typeof TestServer.layerWith>[0]) =>
  Fixtures.layer.pipe(
    Layer.provideMerge(Conversation.layer),
    Layer.provideMerge(
      TestServer.layerWith({
        ...{ rateFailures: 0, rateManagement: 0, rateRuntime: 0, rateActivation: 0 },
        ...allowingUnrouted,
        ...settings
      })
    )
  )

export const layerContract = layerContractWith({})

type Maker = string | ((fixture: Fixture) => readonly [operationId: string, fixture: Fixture, more: object])

/** Makes a resource of a kind; some need more than the example contains. */
const makers: { readonly [kind: string]: Maker } = {
  products: "createProduct",
  policies: (fixture) => [
    "createPolicy",
    fixture,
    { license_type: "time_limited", max_activations: 0, max_floating_users: 1_000 }
  ],
  features: "createFeature",
  versions: "createProductVersion",
  customers: "createCustomer",
  "api-keys": "createApiKey",
  "custom-fields": "createCustomField",
  "custom-fields of customers": (fixture) => ["createCustomField", fixture, { resource_type: "customer" }],
  subscriptions: "createSubscription",
  orders: (fixture) => ["createOrder", fixture, { subscription_id: fixture.ids["subscriptions"] }],
  webhooks: "createWebhook",
  exports: "createReportExport",
  "bulk-jobs": "createBulkJob"
}

const perpetualLicenses = "perpetual licenses"

const kindOf = ({ id, path }: Operation, kind: string): string => {
  if (id === "renewLicenseMaintenance") return perpetualLicenses
  return kind === "custom-fields" && path.startsWith("/api/v1/customers/") ? "custom-fields of customers" : kind
}

/** All kinds that paths refer to, in an order in which they can be made. */
const catalogKinds = Object.keys(makers).filter((kind) =>
  operations.some((operation) => operation.params.some((param) => kindOf(operation, param.kind) === kind))
)

/** The id in the answer of a create operation, which for some kinds also contains a secret. */
const idOf = (data: Identified | { readonly [member: string]: Identified }): string =>
  "id" in data && typeof data.id === "string"
    ? data.id
    : Object.values(data as { readonly [member: string]: Identified }).find((member) => typeof member === "object")!.id

/** Ids for an operation's path. */
export const paramsOf = (operation: Operation, { ids }: Fixture): { readonly [name: string]: string } =>
  Object.fromEntries(
    operation.params.map(({ kind, name }) => {
      const id = ids[kindOf(operation, kind)]
      assert.isDefined(id, `Fixtures.ts makes no ${kind}, which ${operation.id} names in its path`)
      return [name, id]
    })
  )

/** Query parameters that the document cannot mark as required, because one of several is enough. */
const asked: { readonly [operationId: string]: ReadonlyArray<string> } = {
  getSubscriptionSettlement: ["subscription_id"]
}

/** The required query parameters, with existing values. */
export const queryOf = (
  { id, query }: Operation,
  { ids, licenseKey }: Fixture
): { readonly [name: string]: string } => {
  const names = [...query.filter(({ required }) => required).map(({ name }) => name), ...(asked[id] ?? [])]
  return Object.fromEntries(
    names.map((name) => {
      const value = name === "q" ? licenseKey : ids[`${name.replace(/_id$/, "")}s`]
      assert.isDefined(value, `Fixtures.ts knows no value of ${name}, which ${id} needs in its query`)
      return [name, value]
    })
  )
}

/** A valid request without its body. */
export const requestOf = (operation: Operation, fixture: Fixture): Request => ({
  params: paramsOf(operation, fixture),
  query: `?${new URLSearchParams(queryOf(operation, fixture))}`,
  ...(operation.credential === "license key" ? { authorization: `License ${fixture.licenseKey}` } : undefined),
  ...(operation.keyRequired ? { headers: { "idempotency-key": serial() } } : undefined)
})

/** Changes that make an example valid for these fixtures. */
const added: { readonly [operationId: string]: object } = {
  // The policy has a license type that can be renewed.
  createLicense: { expires_at: "2999-01-01T00:00:00Z" },
  createLicenseBatch: { licenses: [{ product_id: "", policy_id: "", expires_at: "2999-01-01T00:00:00Z" }] },
  // Nothing must be sent by tests.
  createWebhook: { is_active: false }
}

/** The products of fixtures have other versions, and a seat is borrowed for some days from now. */
const omitted = ["app_version", "until"]

/** A valid body: the document's example with existing ids. */
export const bodyOf = (
  { example, id }: Operation,
  { ids, featureCode, fingerprint, leaseToken, productCode, trialPolicyCode }: Fixture
): unknown => {
  if (!isObject(example)) return undefined
  const existing: { readonly [field: string]: unknown } = {
    product_id: ids["products"],
    policy_id: ids["policies"],
    feature_id: ids["features"],
    customer_id: ids["customers"],
    order_id: ids["orders"],
    subscription_id: ids["subscriptions"],
    license_id: ids["licenses"],
    feature_code: featureCode,
    product_code: productCode,
    policy_code: trialPolicyCode,
    // A device gets one trial.
    binding: { fingerprint: `${fingerprint} ${serial()}` },
    url: `${unroutedUrl}/hooks`,
    fingerprint: id === "checkoutFloatingLicense" ? `${fingerprint} floating` : fingerprint,
    lease_token: leaseToken
  }
  const withExisting = (body: object): object =>
    Object.fromEntries(
      Object.entries(body)
        .filter(([field]) => !omitted.includes(field))
        .map(([field, value]) => [
          field,
          unique.includes(field) ? `${field}-${serial()}` : (existing[field] ?? inItems(value, field))
        ])
    )
  const inItems = (value: unknown, field: string): unknown => {
    if (Array.isArray(value)) return value.map((item) => (isObject(item) ? withExisting(item) : item))
    return field === "parameters" && isObject(value) ? withExisting(value) : value
  }
  return withExisting({ ...example, ...added[id] })
}

const isObject = (value: unknown): value is object => typeof value === "object" && value !== null
