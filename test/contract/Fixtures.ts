/**
 * A little of everything, made over the API: what paths and bodies of valid requests name. Bodies are the document's own
 * examples with ids that exist, so an operation that is added needs no line here unless it names a new kind of thing.
 */
import { assert } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { TestServer } from "../support/TestServer.ts"
import { Conversation, operationOf, type Request } from "./Conversation.ts"
import { type Operation, operations } from "./Surface.ts"

interface Identified {
  readonly id: string
}

/** Ids by what a path calls their kind, and what runtime requests carry. */
export interface Fixture {
  readonly ids: { readonly [kind: string]: string }
  readonly licenseKey: string
  readonly fingerprint: string
  readonly featureCode: string
  readonly leaseToken: string
}

/** Bodies that differ from the document's example, where the same one cannot be right twice. */
const unique = ["code", "external_id", "event_id", "version"]

let made = 0
const serial = () => `n${++made}`

export class Fixtures extends Context.Service<
  Fixtures,
  {
    /** One of everything, in a product of its own. */
    readonly make: Effect.Effect<Fixture>
    /** One more of a kind, which nothing hangs on. */
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
        let fixture: Fixture = { ids: {}, licenseKey: "", fingerprint: serial(), featureCode: "", leaseToken: "" }
        for (const kind of catalogKinds) {
          fixture = { ...fixture, ids: { ...fixture.ids, [kind]: yield* another(kind, fixture) } }
        }
        const { code } = yield* data<{ readonly code: string }>("getFeature", {
          params: { id: fixture.ids["features"]! }
        })
        return { ...fixture, featureCode: code }
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
          ids: { ...catalog.ids, licenses: id, devices: device_id },
          licenseKey: license_key,
          leaseToken: lease_token
        }
      })

      return Fixtures.of({ make: Effect.flatMap(makeCatalog, makeLicense), another })
    })
  )
}

/** The whole service, with fixtures and someone to ask it more than any limit allows. */
export const layerContract = Fixtures.layer.pipe(
  Layer.provideMerge(Conversation.layer),
  Layer.provideMerge(TestServer.layerWith({ rateFailures: 0, rateManagement: 0, rateRuntime: 0, rateActivation: 0 }))
)

type Maker = string | ((fixture: Fixture) => readonly [operationId: string, fixture: Fixture, more: object])

/** The operation that makes one of a kind; some need more than the example says. */
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
  exports: "createReportExport"
}

const kindOf = ({ path }: Operation, kind: string): string =>
  kind === "custom-fields" && path.startsWith("/api/v1/customers/") ? "custom-fields of customers" : kind

/** What catalogs hold, in the order in which it can be made: everything that a path names. */
const catalogKinds = Object.keys(makers).filter((kind) =>
  operations.some((operation) => operation.params.some((param) => kindOf(operation, param.kind) === kind))
)

/** The id in the answer of a create, which for some stands beside a secret. */
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

/** Parameters of a query that the document can not call required, for one of several will do. */
const asked: { readonly [operationId: string]: ReadonlyArray<string> } = {
  getSubscriptionSettlement: ["subscription_id"]
}

/** The parameters without which a query is none, with what exists. */
export const queryOf = ({ id, query }: Operation, { ids }: Fixture): { readonly [name: string]: string } => {
  const names = [...query.filter(({ required }) => required).map(({ name }) => name), ...(asked[id] ?? [])]
  return Object.fromEntries(
    names.map((name) => {
      const value = ids[`${name.replace(/_id$/, "")}s`]
      assert.isDefined(value, `Fixtures.ts knows no value of ${name}, which ${id} needs in its query`)
      return [name, value]
    })
  )
}

/** Everything of a valid request but its body. */
export const requestOf = (operation: Operation, fixture: Fixture): Request => ({
  params: paramsOf(operation, fixture),
  query: `?${new URLSearchParams(queryOf(operation, fixture))}`,
  ...(operation.credential === "license key" ? { authorization: `License ${fixture.licenseKey}` } : undefined),
  ...(operation.keyRequired ? { headers: { "idempotency-key": serial() } } : undefined)
})

/** What an example lacks to be right for what is made here. */
const added: { readonly [operationId: string]: object } = {
  // The policy's licenses are of a type that can be renewed.
  createLicense: { expires_at: "2999-01-01T00:00:00Z" },
  // Nothing is to be sent from here.
  createWebhook: { is_active: false }
}

/** A valid body: the document's example with what exists. */
export const bodyOf = ({ example, id }: Operation, { ids, featureCode, fingerprint, leaseToken }: Fixture): unknown => {
  if (typeof example !== "object" || example === null) return undefined
  const existing: { readonly [field: string]: unknown } = {
    product_id: ids["products"],
    policy_id: ids["policies"],
    feature_id: ids["features"],
    customer_id: ids["customers"],
    order_id: ids["orders"],
    subscription_id: ids["subscriptions"],
    license_id: ids["licenses"],
    feature_code: featureCode,
    fingerprint: id === "checkoutFloatingLicense" ? `${fingerprint} floating` : fingerprint,
    lease_token: leaseToken
  }
  const fields = Object.entries({ ...example, ...added[id] }).map(([field, value]) => [
    field,
    unique.includes(field) ? `${field}-${serial()}` : (existing[field] ?? value)
  ])
  return Object.fromEntries(fields)
}
