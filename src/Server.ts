/** The HTTP service as a list: every slice, the middlewares, the documents, and the listener. */
import * as NodeDns from "@effect/platform-node/NodeDns"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { Clock, Effect, Layer } from "effect"
import { HttpRouter, HttpServer, UrlParams } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { Api } from "./Api.ts"
import { Activities } from "./activities/Activities.ts"
import { ActivitiesHttp } from "./activities/Http.ts"
import { Refusals } from "./activities/Refusals.ts"
import { PathIds } from "./api/PathIds.ts"
import { ApiKeyCache } from "./auth/apiKeys/ApiKeyCache.ts"
import { ApiKeys } from "./auth/apiKeys/ApiKeys.ts"
import { ApiKeysHttp } from "./auth/apiKeys/Http.ts"
import * as Idempotency from "./auth/idempotency/IdempotencyHttp.ts"
import { MeHttp } from "./auth/me/Http.ts"
import { Oidc } from "./auth/oidc/Oidc.ts"
import { SignIn } from "./auth/oidc/SignIn.ts"
import { RateLimits } from "./auth/rateLimits/RateLimits.ts"
import { CustomFields } from "./catalog/customFields/CustomFields.ts"
import { CustomFieldValues } from "./catalog/customFields/CustomFieldValues.ts"
import { CustomFieldsHttp } from "./catalog/customFields/Http.ts"
import { Features } from "./catalog/features/Features.ts"
import { FeaturesHttp } from "./catalog/features/Http.ts"
import { PoliciesHttp } from "./catalog/policies/Http.ts"
import { Policies } from "./catalog/policies/Policies.ts"
import { PolicyFeatures } from "./catalog/policies/PolicyFeatures.ts"
import { ProductsHttp } from "./catalog/products/Http.ts"
import { Products } from "./catalog/products/Products.ts"
import { VersionsHttp } from "./catalog/versions/Http.ts"
import { Versions } from "./catalog/versions/Versions.ts"
import * as Cluster from "./cluster/Participation.ts"
import { ExpandedPurchases } from "./commerce/ExpandedPurchases.ts"
import { CommerceHttp } from "./commerce/Http.ts"
import { Orders } from "./commerce/Orders.ts"
import { Subscriptions } from "./commerce/Subscriptions.ts"
import { Settings } from "./config/Config.ts"
import { Customers } from "./customers/Customers.ts"
import { Erasures } from "./customers/erasure/Erasures.ts"
import { CustomersHttp } from "./customers/Http.ts"
import { AllDevices } from "./devices/AllDevices.ts"
import { Devices } from "./devices/Devices.ts"
import { DevicesHttp } from "./devices/Http.ts"
import { ConsoleHttp } from "./documents/publishing/ConsoleHttp.ts"
import { DocumentsHttp } from "./documents/publishing/Publishing.ts"
import { EventLog } from "./events/EventLog.ts"
import { Events } from "./events/Events.ts"
import { EventsHttp } from "./events/Http.ts"
import { makeDeadlines } from "./http/Deadlines.ts"
import * as Decoding from "./http/Decoding.ts"
import { makeFastPath } from "./http/FastPath.ts"
import * as Intake from "./http/Intake.ts"
import { inFairTurns, makeFairQueue, pauseBetween } from "./http/listener/FairQueue.ts"
import * as Listener from "./http/listener/Listener.ts"
import { makeRequestLimits } from "./http/listener/RequestLimits.ts"
import * as ManagementHttp from "./http/ManagementHttp.ts"
import { makePathPrefix } from "./http/PathPrefix.ts"
import { makeRequestTraces } from "./http/RequestTraces.ts"
import { makeResponseMiddleware } from "./http/ResponseMiddleware.ts"
import { makeResponses } from "./http/Responses.ts"
import { Routes } from "./http/Routes.ts"
import { Diagnoses } from "./licenses/diagnosis/Diagnoses.ts"
import { Journal } from "./licenses/engine/Journal.ts"
import { LicenseActors } from "./licenses/engine/LicenseActors.ts"
import { LicenseLookups } from "./licenses/engine/LicenseLookups.ts"
import { LicenseStore } from "./licenses/engine/LicenseStore.ts"
import { LicensesHttp } from "./licenses/Http.ts"
import { VendorKeys } from "./licenses/keys/VendorKeys.ts"
import { ExpandedLicenses } from "./licenses/management/ExpandedLicenses.ts"
import { Issuing } from "./licenses/management/Issuing.ts"
import { Leases } from "./licenses/management/Leases.ts"
import { LicenseList } from "./licenses/management/LicenseList.ts"
import { Licenses } from "./licenses/management/Licenses.ts"
import { OpsCounts } from "./ops/Counts.ts"
import { OpsHttp } from "./ops/Http.ts"
import { MetricsAccess } from "./ops/MetricsAccess.ts"
import { Exposition } from "./ops/MetricsExposition.ts"
import { Operations } from "./ops/Operations.ts"
import { RecentErrors } from "./ops/RecentErrors.ts"
import { RequestTimeout } from "./postgres/Deadline.ts"
import * as Conditional from "./preconditions/ConditionalHttp.ts"
import { Exports } from "./reports/exports/Exports.ts"
import { ReportsHttp } from "./reports/Http.ts"
import { ReportsDatabase } from "./reports/model/ReportsDatabase.ts"
import { Reports } from "./reports/Reports.ts"
import { LicenseIdCache } from "./runtime/credentials/LicenseIdCache.ts"
import * as RuntimeAuthorization from "./runtime/credentials/RuntimeAuthorizationHttp.ts"
import { makeFastOperations } from "./runtime/FastOperations.ts"
import { RuntimeHttp } from "./runtime/Http.ts"
import { Runtime } from "./runtime/Runtime.ts"
import { Trials } from "./runtime/Trials.ts"
import { Validations } from "./runtime/Validations.ts"
import { SearchHttp } from "./search/Http.ts"
import { Searches } from "./search/Searches.ts"
import { Signer } from "./signing/Signer.ts"
import { FirstToken } from "./system/FirstToken.ts"
import { ProbesHttp, SystemHttp } from "./system/Http.ts"
import { Readiness } from "./system/Readiness.ts"
import { Shutdown } from "./system/Shutdown.ts"
import { Addresses } from "./webhooks/Address.ts"
import { DeliveryHealth } from "./webhooks/DeliveryHealth.ts"
import { WebhooksHttp } from "./webhooks/Http.ts"
import { Webhooks } from "./webhooks/Webhooks.ts"

/** One line per slice, in the order of the published tags. */
const slices = Layer.mergeAll(
  RuntimeHttp.pipe(Layer.provide([Runtime.layer, Trials.layer])),
  ProductsHttp,
  PoliciesHttp.pipe(Layer.provide(Layer.merge(Policies.layer, PolicyFeatures.layer))),
  FeaturesHttp.pipe(Layer.provide(Features.layer)),
  CustomersHttp.pipe(Layer.provide([Customers.layer, Erasures.layer])),
  ApiKeysHttp,
  MeHttp,
  EventsHttp.pipe(Layer.provide(Events.layer)),
  OpsHttp.pipe(Layer.provide([Operations.layer, DeliveryHealth.layer])),
  ActivitiesHttp.pipe(Layer.provide(Activities.layer), Layer.provide(ReportsDatabase.layer)),
  ReportsHttp.pipe(Layer.provide([Reports.layer, Exports.layer]), Layer.provide(ReportsDatabase.layer)),
  WebhooksHttp.pipe(Layer.provide(Webhooks.layer), Layer.provide(Addresses.layer), Layer.provide(NodeDns.layer)),
  LicensesHttp.pipe(
    Layer.provide([ExpandedLicenses.layer, Diagnoses.layer, Issuing.layer, Leases.layer]),
    Layer.provide([Licenses.layer, Policies.layer, Customers.layer]),
    Layer.provide(LicenseList.layer)
  ),
  SearchHttp.pipe(
    Layer.provide(Searches.layer),
    Layer.provide([LicenseList.layer, Customers.layer, AllDevices.layer, Orders.layer, Subscriptions.layer])
  ),
  DevicesHttp.pipe(Layer.provide([Devices.layer, AllDevices.layer])),
  CommerceHttp.pipe(
    Layer.provide([Orders.layer, Subscriptions.layer, ExpandedPurchases.layer]),
    Layer.provide(Customers.layer)
  ),
  CustomFieldsHttp.pipe(Layer.provide([CustomFields.layer, CustomFieldValues.layer])),
  VersionsHttp.pipe(Layer.provide(Versions.layer)),
  SystemHttp,
  ProbesHttp.pipe(Layer.provide([Readiness.layer, MetricsAccess.layer.pipe(Layer.provide(Exposition.layer))]))
)

const middlewares = Layer.mergeAll(
  Intake.layer,
  Decoding.layer.pipe(Layer.provide(PathIds.layer)),
  Idempotency.layer,
  Conditional.layer,
  ManagementHttp.layer.pipe(Layer.provide(Oidc.layer)),
  RuntimeAuthorization.layer
)

/** The services that several slices share. */
const shared = Layer.mergeAll(
  ApiKeys.layer,
  Products.layer,
  LicenseActors.layer,
  LicenseIdCache.layer,
  Signer.layer
).pipe(
  Layer.provideMerge(RateLimits.layer),
  Layer.provideMerge([Journal.layer, LicenseStore.layer, LicenseLookups.layer, VendorKeys.layer]),
  Layer.provideMerge(Refusals.layer),
  Layer.provideMerge(Validations.layer),
  Layer.provideMerge(ApiKeyCache.layer),
  Layer.provideMerge(EventLog.layer),
  Layer.provideMerge(RecentErrors.layer),
  Layer.provideMerge(OpsCounts.layer)
)

/** The cluster, if the settings name one, takes commands over once the services work. */
const services = Layer.provideMerge(Cluster.layer, shared)

const consolePages = ConsoleHttp.pipe(Layer.provide(SignIn.layer))

const routes = Layer.mergeAll(HttpApiBuilder.layer(Api), DocumentsHttp, consolePages).pipe(
  Layer.provide(slices),
  Layer.provide(middlewares),
  Layer.provide(NodeHttpServer.layerHttpServices)
)

const serving = Layer.effectDiscard(
  Effect.gen(function* () {
    const responses = yield* makeResponses
    const middleware = yield* makeResponseMiddleware(responses)
    const router = yield* HttpRouter.HttpRouter
    yield* (yield* Routes).reserveFixedPaths
    const server = yield* HttpServer.HttpServer
    const shutdown = yield* Shutdown
    const { clients, drain, putInFront } = yield* Listener.Requests
    const { requestsMax, requestsPerAddress: requestsOfClientMax } = yield* Settings
    const clock = yield* Clock.Clock
    const queueOf = (roundMillis: number, pauseMillis: number) =>
      makeFairQueue({
        nowNanos: () => clock.monotonicTimeNanosUnsafe(),
        roundNanos: BigInt(roundMillis) * 1_000_000n,
        later: pauseBetween(clients, pauseMillis)
      })
    // Ten requests a millisecond. Those without a credential get a fifth of the main thread while other clients are connected.
    const queues = { requests: queueOf(2, 2), others: queueOf(1, 4) }
    const limits = { requestsMax, requestsOfClientMax }
    const requestLimits = yield* makeRequestLimits(responses, clients, limits, queues)
    const withDeadline = yield* makeDeadlines
    const fastPath = yield* makeFastPath(responses, yield* makeFastOperations)
    yield* server
      .serve(middleware(withDeadline(router.asHttpEffect())))
      .pipe(Effect.updateService(UrlParams.CurrentRedactedNames, (names) => [...names, ...secretParameters]))
    putInFront(inFairTurns)
    putInFront(fastPath)
    putInFront(yield* makeRequestTraces)
    putInFront(requestLimits)
    putInFront(yield* makePathPrefix)
    // The finalizer added last runs first: requests are served until the notice period is over and all have their responses.
    yield* Effect.addFinalizer(() => Effect.andThen(shutdown.announce, drain(shutdown)))
  })
)

/** Query parameters that may be a license key or identify a machine: no span contains them. */
const secretParameters = ["q", "fingerprint"]

const requestTimeout = Layer.effect(
  RequestTimeout,
  Settings.useSync(({ requestTimeoutSeconds }) => requestTimeoutSeconds * 1_000)
)

/** Serves as soon as it is built. Of all that is built here, the listener stops accepting connections first. */
export const layer = serving.pipe(
  Layer.provideMerge(Listener.layer),
  Layer.provide(routes),
  Layer.provide(Routes.layer),
  Layer.provideMerge(FirstToken.layer),
  Layer.provide(services),
  Layer.provide(requestTimeout)
)
