/**
 * What each operation must do with a token for some products, written a second time apart from the code:
 * - `record`: works on the records of its path, 404 on those of another product.
 * - `made`: works on the records of its body, 404 on those of another product.
 * - `list`: shows own records only. `report`: the same, and 404 for a record of another product in its query.
 * - `hidden`: 404. `forbidden`: 403. `open`: about no product. `admin`: such a token never has the scope.
 */
export type Case = "record" | "made" | "list" | "report" | "hidden" | "forbidden" | "open" | "admin"

const named = (kind: Case, ids: string): { readonly [id: string]: Case } =>
  Object.fromEntries(ids.split(/\s+/).map((id) => [id, kind]))

export const cases: { readonly [operationId: string]: Case } = {
  ...named(
    "list",
    "listProducts listCustomers listLicenses listAllDevices listEvents listActivities listReportExports listBulkJobs search"
  ),
  ...named(
    "report",
    "getOverview getAttention getUsageSummary listUsageLedger getLicenseAudit getCustomerSummary getSubscriptionSettlement"
  ),
  ...named("forbidden", "createProduct createCustomer"),
  ...named("open", "getMe"),
  ...named("made", "createLicense createLicenseBatch createReportExport createBulkJob"),
  ...named("admin", "listApiKeys createApiKey getApiKey updateApiKey deleteApiKey eraseCustomer"),
  ...named("hidden", "listWebhooks createWebhook getWebhook updateWebhook deleteWebhook"),
  ...named("hidden", "getWebhookHealth getMailHealth getOpsSummary getOpsNodes getOpsErrors"),
  ...named(
    "record",
    "getProduct updateProduct deleteProduct listPolicies createPolicy getPolicy updatePolicy deletePolicy"
  ),
  ...named("record", "listPolicyFeatures setPolicyFeature removePolicyFeature"),
  ...named("record", "listFeatures createFeature getFeature updateFeature deleteFeature"),
  ...named("record", "listProductVersions createProductVersion getProductVersion deleteProductVersion"),
  ...named("record", "listCustomFields createCustomField getCustomField updateCustomField deleteCustomField"),
  ...named(
    "record",
    "listLicenseCustomFieldValues setLicenseCustomFieldValue listCustomerCustomFieldValues setCustomerCustomFieldValue"
  ),
  ...named("record", "listOrders createOrder getOrder updateOrder"),
  ...named("record", "listSubscriptions createSubscription getSubscription updateSubscription"),
  ...named("record", "getCustomer updateCustomer deleteCustomer"),
  ...named(
    "record",
    "getLicense updateLicense suspendLicense reinstateLicense revokeLicense renewLicense transferLicense"
  ),
  ...named("record", "renewLicenseMaintenance"),
  ...named("record", "changeLicensePolicy rotateLicenseKey resetLicenseUsage diagnoseLicense listLicenseLeases"),
  ...named("record", "previewLicenseChange"),
  ...named("record", "listLicenseFeatures assignLicenseFeature removeLicenseFeature"),
  ...named("record", "listDevices getDevice resetDevice blacklistDevice unblacklistDevice"),
  ...named("record", "getReportExport downloadReportExport getBulkJob listBulkJobRefusals cancelBulkJob")
}
