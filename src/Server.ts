/** The HTTP service as a list: every slice, the middlewares, the documents, and the listener. */
import * as NodeDns from "@effect/platform-node/NodeDns"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { Clock, Effect, Layer } from "effect"
import { HttpRouter, HttpServer, UrlParams } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { Api } from "./Api.ts"
import * as Idempotency from "./access/idempotency/IdempotencyHttp.ts"
import { MeHttp } from "./access/me/Http.ts"
import { Oidc } from "./access/oidc/Oidc.ts"
import { SignIn } from "./access/oidc/SignIn.ts"
import * as Conditional from "./access/preconditions/ConditionalHttp.ts"
import { RateLimits } from "./access/rateLimits/RateLimits.ts"
import * as Intake from "./access/requests/Intake.ts"
import { ConsoleHttp } from "./edge/documents/publishing/ConsoleHttp.ts"
import { PortalPageHttp } from "./edge/documents/publishing/PortalPageHttp.ts"
import { DocumentsHttp } from "./edge/documents/publishing/Publishing.ts"
import { inFairTurns, makeFairQueue, pauseBetween } from "./edge/listener/FairQueue.ts"
import * as Listener from "./edge/listener/Listener.ts"
import { makeRequestLimits } from "./edge/listener/RequestLimits.ts"
import { makeDeadlines } from "./edge/requests/Deadlines.ts"
import * as Decoding from "./edge/requests/Decoding.ts"
import { makeFastPath } from "./edge/requests/FastPath.ts"
import * as ManagementHttp from "./edge/requests/ManagementHttp.ts"
import { makePathPrefix } from "./edge/requests/PathPrefix.ts"
import { makeResponseMiddleware } from "./edge/requests/ResponseMiddleware.ts"
import { Routes } from "./edge/requests/Routes.ts"
import { makeRequestTraces } from "./edge/responses/RequestTraces.ts"
import { makeResponses } from "./edge/responses/Responses.ts"
import { FirstToken } from "./edge/system/FirstToken.ts"
import { ProbesHttp, SystemHttp } from "./edge/system/Http.ts"
import { Readiness } from "./edge/system/Readiness.ts"
import { Shutdown } from "./edge/system/Shutdown.ts"
import { Activities } from "./insight/activities/Activities.ts"
import { ActivitiesHttp } from "./insight/activities/Http.ts"
import { Refusals } from "./insight/activities/Refusals.ts"
import { OpsCounts } from "./insight/ops/Counts.ts"
import { OpsHttp } from "./insight/ops/Http.ts"
import { MetricsAccess } from "./insight/ops/MetricsAccess.ts"
import { Exposition } from "./insight/ops/MetricsExposition.ts"
import { Nodes } from "./insight/ops/Nodes.ts"
import { Operations } from "./insight/ops/Operations.ts"
import { RecentErrors } from "./insight/ops/RecentErrors.ts"
import { Exports } from "./insight/reports/exports/Exports.ts"
import { ReportsHttp } from "./insight/reports/Http.ts"
import { ReportsDatabase } from "./insight/reports/model/ReportsDatabase.ts"
import { Reports } from "./insight/reports/Reports.ts"
import { SearchHttp } from "./insight/search/Http.ts"
import { Searches } from "./insight/search/Searches.ts"
import { EventLog } from "./ledger/events/EventLog.ts"
import { Events } from "./ledger/events/Events.ts"
import { EventsHttp } from "./ledger/events/Http.ts"
import { Mail } from "./ledger/mail/Mail.ts"
import { MailStatus } from "./ledger/mail/MailStatus.ts"
import { Addresses } from "./ledger/webhooks/DeliveryAddress.ts"
import { DeliveryHealth } from "./ledger/webhooks/DeliveryHealth.ts"
import { WebhooksHttp } from "./ledger/webhooks/Http.ts"
import { Webhooks } from "./ledger/webhooks/Webhooks.ts"
import { BulkJobs } from "./licensing/bulk/BulkJobs.ts"
import { BulkJobsHttp } from "./licensing/bulk/Http.ts"
import { Previews } from "./licensing/bulk/Previews.ts"
import * as Cluster from "./licensing/cluster/Participation.ts"
import { AllDevices } from "./licensing/devices/AllDevices.ts"
import { Devices } from "./licensing/devices/Devices.ts"
import { ExpandedDevices } from "./licensing/devices/ExpandedDevices.ts"
import { DevicesHttp } from "./licensing/devices/Http.ts"
import { Journal } from "./licensing/engine/Journal.ts"
import { LicenseActors } from "./licensing/engine/LicenseActors.ts"
import { Diagnoses } from "./licensing/licenses/Diagnoses.ts"
import { LicensesHttp } from "./licensing/licenses/Http.ts"
import { LicenseLookups } from "./licensing/lookups/LicenseLookups.ts"
import { LicenseStore } from "./licensing/lookups/LicenseStore.ts"
import { ExpandedLicenses } from "./licensing/management/ExpandedLicenses.ts"
import { Issuing } from "./licensing/management/Issuing.ts"
import { Leases } from "./licensing/management/Leases.ts"
import { LicenseList } from "./licensing/management/LicenseList.ts"
import { Licenses } from "./licensing/management/Licenses.ts"
import { VendorKeys } from "./licensing/management/VendorKeys.ts"
import { portalAccess } from "./licensing/portal/PortalAccessHttp.ts"
import { PortalActions } from "./licensing/portal/PortalActions.ts"
import { PortalApi } from "./licensing/portal/PortalApi.ts"
import { PortalCookie } from "./licensing/portal/PortalCookie.ts"
import { PortalHttp } from "./licensing/portal/PortalHttp.ts"
import { PortalLicenses } from "./licensing/portal/PortalLicenses.ts"
import { PortalLinks } from "./licensing/portal/PortalLinks.ts"
import { PortalSessions } from "./licensing/portal/PortalSessions.ts"
import { PortalSignIns } from "./licensing/portal/PortalSignIns.ts"
import { LicenseIdCache } from "./licensing/runtime/credentials/LicenseIdCache.ts"
import * as RuntimeAuthorization from "./licensing/runtime/credentials/RuntimeAuthorizationHttp.ts"
import { makeFastOperations } from "./licensing/runtime/FastOperations.ts"
import { RuntimeHttp } from "./licensing/runtime/Http.ts"
import { Runtime } from "./licensing/runtime/Runtime.ts"
import { Trials, trialLimit } from "./licensing/runtime/Trials.ts"
import { Validations } from "./licensing/runtime/Validations.ts"
import { Settings } from "./platform/config/Config.ts"
import { RequestTimeout } from "./platform/postgres/driver/Deadline.ts"
import { Signer } from "./platform/signing/Signer.ts"
import { ApiKeyCache } from "./vendor/apiKeys/ApiKeyCache.ts"
import { ApiKeys } from "./vendor/apiKeys/ApiKeys.ts"
import { ApiKeysHttp } from "./vendor/apiKeys/Http.ts"
import { CommerceHttp } from "./vendor/commerce/Http.ts"
import { Orders } from "./vendor/commerce/Orders.ts"
import { Subscriptions } from "./vendor/commerce/Subscriptions.ts"
import { Customers } from "./vendor/customers/Customers.ts"
import { Erasures } from "./vendor/customers/erasure/Erasures.ts"
import { CustomersHttp } from "./vendor/customers/Http.ts"
import { CustomFields } from "./vendor/customFields/CustomFields.ts"
import { CustomFieldValues } from "./vendor/customFields/CustomFieldValues.ts"
import { CustomFieldsHttp } from "./vendor/customFields/Http.ts"
import { Features } from "./vendor/features/Features.ts"
import { FeaturesHttp } from "./vendor/features/Http.ts"
import { PoliciesHttp } from "./vendor/policies/Http.ts"
import { Policies } from "./vendor/policies/Policies.ts"
import { PolicyFeatures } from "./vendor/policies/PolicyFeatures.ts"
import { ProductsHttp } from "./vendor/products/Http.ts"
import { Products } from "./vendor/products/Products.ts"
import { VersionsHttp } from "./vendor/versions/Http.ts"
import { Versions } from "./vendor/versions/Versions.ts"

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
  OpsHttp.pipe(Layer.provide([Operations.layer, DeliveryHealth.layer, MailStatus.layer, Nodes.layer])),
  ActivitiesHttp.pipe(Layer.provide(Activities.layer), Layer.provide(ReportsDatabase.layer)),
  ReportsHttp.pipe(Layer.provide([Reports.layer, Exports.layer]), Layer.provide(ReportsDatabase.layer)),
  WebhooksHttp.pipe(Layer.provide(Webhooks.layer), Layer.provide(Addresses.layer), Layer.provide(NodeDns.layer)),
  BulkJobsHttp.pipe(Layer.provide(BulkJobs.layer)),
  LicensesHttp.pipe(
    Layer.provide([ExpandedLicenses.layer, Diagnoses.layer, Previews.layer, Issuing.layer, Leases.layer]),
    Layer.provide([Licenses.layer, Policies.layer, Customers.layer]),
    Layer.provide(LicenseList.layer)
  ),
  SearchHttp.pipe(
    Layer.provide(Searches.layer),
    Layer.provide([LicenseList.layer, Customers.layer, AllDevices.layer, Orders.layer, Subscriptions.layer])
  ),
  DevicesHttp.pipe(
    Layer.provide([Devices.layer, ExpandedDevices.layer]),
    Layer.provide([LicenseList.layer, Customers.layer, AllDevices.layer])
  ),
  CommerceHttp.pipe(Layer.provide([Orders.layer, Subscriptions.layer, Customers.layer])),
  CustomFieldsHttp.pipe(Layer.provide([CustomFields.layer, CustomFieldValues.layer])),
  VersionsHttp.pipe(Layer.provide(Versions.layer)),
  SystemHttp,
  ProbesHttp.pipe(Layer.provide([Readiness.layer, MetricsAccess.layer.pipe(Layer.provide(Exposition.layer))]))
)

/** The customer's page. Its operations are no part of the contract. */
const portal = HttpApiBuilder.layer(PortalApi).pipe(
  Layer.provide(PortalHttp),
  Layer.provide([PortalActions.layer, PortalSignIns.layer]),
  Layer.provide(PortalLinks.layer),
  Layer.provide(PortalLicenses.layer),
  Layer.provide([Runtime.layer, Licenses.layer]),
  Layer.provide([portalAccess, LicenseList.layer]),
  Layer.provide(PortalCookie.layer),
  Layer.provide(PortalSessions.layer)
)
const portalPages = Layer.unwrap(
  Settings.useSync((settings) => (settings.portal ? Layer.merge(portal, PortalPageHttp) : Layer.empty))
)

const middlewares = Layer.mergeAll(
  Intake.layer,
  Decoding.layer,
  Idempotency.layer,
  Conditional.layer,
  ManagementHttp.layer.pipe(Layer.provide(Oidc.layer)),
  RuntimeAuthorization.layer,
  trialLimit
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
  Layer.provideMerge(Mail.layer),
  Layer.provideMerge(RecentErrors.layer),
  Layer.provideMerge(OpsCounts.layer)
)

/** The cluster, if the settings name one, takes commands over once the services work. */
const services = Layer.provideMerge(Cluster.layer, shared)

const consolePages = ConsoleHttp.pipe(Layer.provide(SignIn.layer))

const routes = Layer.mergeAll(HttpApiBuilder.layer(Api), DocumentsHttp, consolePages, portalPages).pipe(
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
