/**
 * The operations under their operationIds, each with its group and its name in the contract. A test compares the list with the
 * published document.
 */
import type { HttpApi, HttpApiClient, HttpApiEndpoint, HttpApiGroup, HttpApiMiddleware } from "effect/http-api"
import type { Api } from "../../Api.ts"
import type { Signature } from "../../contract/api/Envelope.ts"

export const operations = {
  activateLicense: ["runtime", "activate"],
  validateLicense: ["runtime", "validate"],
  checkLicense: ["runtime", "check"],
  consumeLicense: ["runtime", "consume"],
  deactivateLicense: ["runtime", "deactivate"],
  issueOfflineLicense: ["runtime", "offline"],
  checkoutFloatingLicense: ["runtime", "checkout"],
  heartbeatFloatingLicense: ["runtime", "heartbeat"],
  checkinFloatingLicense: ["runtime", "checkin"],
  startTrial: ["runtime", "trial"],
  listProducts: ["products", "list"],
  createProduct: ["products", "create"],
  getProduct: ["products", "get"],
  updateProduct: ["products", "update"],
  deleteProduct: ["products", "delete"],
  listPolicies: ["policies", "list"],
  createPolicy: ["policies", "create"],
  getPolicy: ["policies", "get"],
  updatePolicy: ["policies", "update"],
  deletePolicy: ["policies", "delete"],
  listPolicyFeatures: ["policies", "listFeatures"],
  setPolicyFeature: ["policies", "setFeature"],
  removePolicyFeature: ["policies", "removeFeature"],
  listFeatures: ["features", "list"],
  createFeature: ["features", "create"],
  getFeature: ["features", "get"],
  updateFeature: ["features", "update"],
  deleteFeature: ["features", "delete"],
  listCustomers: ["customers", "list"],
  createCustomer: ["customers", "create"],
  getCustomer: ["customers", "get"],
  updateCustomer: ["customers", "update"],
  deleteCustomer: ["customers", "delete"],
  eraseCustomer: ["customers", "erase"],
  listApiKeys: ["api-keys", "list"],
  createApiKey: ["api-keys", "create"],
  getApiKey: ["api-keys", "get"],
  updateApiKey: ["api-keys", "update"],
  deleteApiKey: ["api-keys", "delete"],
  getMe: ["me", "get"],
  listEvents: ["events", "list"],
  getWebhookHealth: ["ops", "webhookHealth"],
  getOpsSummary: ["ops", "summary"],
  getOpsErrors: ["ops", "errors"],
  listActivities: ["activities", "list"],
  getUsageSummary: ["reports", "usageSummary"],
  listUsageLedger: ["reports", "usageLedger"],
  getLicenseAudit: ["reports", "licenseAudit"],
  getCustomerSummary: ["reports", "customerSummary"],
  getSubscriptionSettlement: ["reports", "settlement"],
  getOverview: ["reports", "overview"],
  createReportExport: ["reports", "createExport"],
  getReportExport: ["reports", "getExport"],
  listReportExports: ["reports", "listExports"],
  downloadReportExport: ["reports", "downloadExport"],
  listWebhooks: ["webhooks", "list"],
  createWebhook: ["webhooks", "create"],
  getWebhook: ["webhooks", "get"],
  updateWebhook: ["webhooks", "update"],
  deleteWebhook: ["webhooks", "delete"],
  listLicenses: ["licenses", "list"],
  createLicense: ["licenses", "create"],
  createLicenseBatch: ["licenses", "createBatch"],
  getLicense: ["licenses", "get"],
  updateLicense: ["licenses", "update"],
  suspendLicense: ["licenses", "suspend"],
  reinstateLicense: ["licenses", "reinstate"],
  revokeLicense: ["licenses", "revoke"],
  renewLicense: ["licenses", "renew"],
  transferLicense: ["licenses", "transfer"],
  changeLicensePolicy: ["licenses", "changePolicy"],
  rotateLicenseKey: ["licenses", "rotateKey"],
  resetLicenseUsage: ["licenses", "resetUsage"],
  listLicenseLeases: ["licenses", "listLeases"],
  diagnoseLicense: ["licenses", "diagnose"],
  listLicenseFeatures: ["licenses", "listFeatures"],
  assignLicenseFeature: ["licenses", "assignFeature"],
  removeLicenseFeature: ["licenses", "removeFeature"],
  search: ["search", "search"],
  listAllDevices: ["devices", "listAll"],
  listDevices: ["devices", "list"],
  getDevice: ["devices", "get"],
  resetDevice: ["devices", "reset"],
  blacklistDevice: ["devices", "blacklist"],
  unblacklistDevice: ["devices", "unblacklist"],
  listOrders: ["commerce", "listOrders"],
  createOrder: ["commerce", "createOrder"],
  getOrder: ["commerce", "getOrder"],
  updateOrder: ["commerce", "updateOrder"],
  listSubscriptions: ["commerce", "listSubscriptions"],
  createSubscription: ["commerce", "createSubscription"],
  getSubscription: ["commerce", "getSubscription"],
  updateSubscription: ["commerce", "updateSubscription"],
  listCustomFields: ["custom-fields", "list"],
  createCustomField: ["custom-fields", "create"],
  getCustomField: ["custom-fields", "get"],
  updateCustomField: ["custom-fields", "update"],
  deleteCustomField: ["custom-fields", "delete"],
  listLicenseCustomFieldValues: ["custom-fields", "listLicenseValues"],
  setLicenseCustomFieldValue: ["custom-fields", "setLicenseValue"],
  listCustomerCustomFieldValues: ["custom-fields", "listCustomerValues"],
  setCustomerCustomFieldValue: ["custom-fields", "setCustomerValue"],
  listProductVersions: ["versions", "list"],
  createProductVersion: ["versions", "create"],
  getProductVersion: ["versions", "get"],
  deleteProductVersion: ["versions", "delete"],
  listPublicKeys: ["system", "listPublicKeys"],
  getHealth: ["probes", "health"],
  getLiveness: ["probes", "healthz"],
  getReadiness: ["probes", "readyz"],
  getMetrics: ["probes", "metrics"]
} as const satisfies { readonly [operationId: string]: readonly [group: string, endpoint: string] }

export type OperationId = keyof typeof operations

type Groups = typeof Api extends HttpApi.HttpApi<infer _Id, infer Groups> ? Groups : never

/** The contract's declaration of an operation. */
type Endpoint<Id extends OperationId> = Declared<
  HttpApiGroup.WithIdentifier<Groups, (typeof operations)[Id][0]>,
  (typeof operations)[Id][1]
>
type Declared<Group, Name extends string> = Group extends { readonly endpoints: infer Endpoints }
  ? Name extends keyof Endpoints
    ? Endpoints[Name]
    : never
  : never

type Part<Name extends string, Schema extends { readonly Type: unknown }> = [Schema["Type"]] extends [never]
  ? unknown
  : // biome-ignore lint/complexity/noBannedTypes: asks whether an object without fields is enough.
    {} extends Schema["Type"]
    ? { readonly [Key in Name]?: Schema["Type"] }
    : { readonly [Key in Name]: Schema["Type"] }

/** A request: `params`, `query` and `payload`, where the operation has them. The client makes the headers. */
export type Request<Id extends OperationId> = RequestOf<Endpoint<Id>>
type RequestOf<E> = E extends HttpApiEndpoint.ConstraintRequest
  ? Part<"params", E["~Params"]> & Part<"query", E["~Query"]> & Part<"payload", E["~Payload"]>
  : never

/** What an operation gives: of a signed response also the bytes that are signed. */
export type Success<Id extends OperationId> = SuccessOf<Endpoint<Id>>
type SuccessOf<E> = E extends HttpApiEndpoint.ConstraintRequest
  ? WithBytes<HttpApiClient.SuccessType<E["~Success"]>>
  : never

type WithBytes<A> = A extends { readonly data: unknown; readonly signature: Signature }
  ? A & {
      /** The bytes of `data` as received: the signature covers exactly these. */
      readonly bytes: Uint8Array
    }
  : A

/** The refusals that the contract declares for an operation. */
export type Refusals<Id extends OperationId> = RefusalsOf<Endpoint<Id>>
type RefusalsOf<E> = E extends HttpApiEndpoint.ConstraintRequest
  ? E["~Error"]["Type"] | HttpApiMiddleware.Error<E["~Middleware"]>
  : never
