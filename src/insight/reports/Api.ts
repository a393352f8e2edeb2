import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { Idempotency } from "../../access/idempotency/Idempotency.ts"
import { ManagementAuthorization, operation } from "../../access/Management.ts"
import { Data, Paged, PagedBySequence } from "../../contract/api/Envelope.ts"
import { failures } from "../../contract/api/Failure.ts"
import { Limit, listQuery, SequenceCursor } from "../../contract/api/Paging.ts"
import { Decoding, PathTables, ServesRanges } from "../../contract/api/Requests.ts"
import { exportFilters, exportSorts, ReportExport, ReportExportCreate } from "./exports/Export.ts"
import { Attention, attentionFields } from "./model/Attention.ts"
import { filterFields } from "./model/Filter.ts"
import { Overview, overviewFields } from "./model/Overview.ts"
import { CustomerSummary, LicenseAudit, SubscriptionSettlement, UsageLedgerRow, UsageSummary } from "./model/Report.ts"

const page = { limit: Schema.optionalKey(Limit), cursor: Schema.optionalKey(SequenceCursor) }
const error = failures("INVALID_QUERY", "NOT_FOUND")
const scopes = ["report:read"] as const
const exportScopes = ["report:export"] as const
const params = { id: Schema.String }
const Figures = Schema.Record(Schema.String, Schema.Json).annotate({ description: "The figures as canonical JSON." })
const fileOf = (contentType: string) => Schema.Uint8Array.pipe(HttpApiSchema.asUint8Array({ contentType }))

export class ReportsApi extends HttpApiGroup.make("reports")
  .add(
    HttpApiEndpoint.get("usageSummary", "/reports/usage-summary", {
      query: filterFields["usage-summary"],
      success: Data(UsageSummary),
      error
    }).annotateMerge(
      operation({
        id: "getUsageSummary",
        summary: "Sum usage",
        description:
          "The default period is the last 30 days. Usage belongs to the customer, order and subscription that its " +
          "license is linked to now. More than 10,000 rows are refused.",
        scopes,
        reach: "rows"
      })
    ),
    HttpApiEndpoint.get("usageLedger", "/reports/usage-ledger", {
      query: { ...filterFields["usage-ledger"], ...page },
      success: PagedBySequence(UsageLedgerRow),
      error
    }).annotateMerge(
      operation({
        id: "listUsageLedger",
        summary: "List all changes of counters",
        description: "The newest first. A row's balance_after is the balance_before of the assignment's next row.",
        scopes,
        reach: "rows"
      })
    ),
    HttpApiEndpoint.get("licenseAudit", "/reports/license-audit", {
      query: { ...filterFields["license-audit"], ...page },
      success: Data(LicenseAudit),
      error
    }).annotateMerge(
      operation({
        id: "getLicenseAudit",
        summary: "Get the audit of a license",
        description: "cursor and limit select a page of its events. bucket (default 1d) groups its validations.",
        scopes,
        reach: "rows"
      })
    ),
    HttpApiEndpoint.get("customerSummary", "/reports/customer-summary", {
      query: filterFields["customer-summary"],
      success: Data(CustomerSummary),
      error
    }).annotateMerge(
      operation({
        id: "getCustomerSummary",
        summary: "Summarize a customer's licenses and usage",
        description:
          "The customer's licenses by status, active devices, live leases, validations, orders, subscriptions, and usage by product and feature in the period.",
        scopes,
        reach: "rows"
      })
    ),
    HttpApiEndpoint.get("settlement", "/reports/subscription-settlement", {
      query: filterFields["subscription-settlement"],
      success: Data(SubscriptionSettlement),
      error
    }).annotateMerge(
      operation({
        id: "getSubscriptionSettlement",
        summary: "Settle the usage under a subscription or an order",
        description:
          "Requires subscription_id or order_id, or both if the order belongs to the subscription. The default period is the " +
          "order's, else the subscription's current one.",
        scopes,
        reach: "rows"
      })
    ),
    HttpApiEndpoint.get("overview", "/reports/overview", {
      query: overviewFields,
      success: Data(Overview),
      error
    }).annotateMerge(
      operation({
        id: "getOverview",
        summary: "Show licenses, activations, seats, consumption and refusals over time",
        description:
          "A bucket for every day (default) or hour of the time zone, empty ones included; at most 1,000. The default " +
          "period is the last 30 days.",
        scopes,
        reach: "rows"
      })
    ),
    HttpApiEndpoint.get("attention", "/reports/attention", {
      query: attentionFields,
      success: Data(Attention),
      error
    }).annotateMerge(
      operation({
        id: "getAttention",
        summary: "Show which licenses need attention",
        description:
          "Licenses that were refused three times or more in the last seven days, and quotas of which 20 % or less is left.",
        scopes,
        reach: "rows"
      })
    )
  )
  .add(
    HttpApiEndpoint.post("createExport", "/reports/exports", {
      payload: ReportExportCreate,
      success: Data(ReportExport).pipe(HttpApiSchema.status(201)),
      error: failures("NOT_FOUND", "VALIDATION_ERROR")
    }).annotateMerge(
      operation({
        id: "createReportExport",
        summary: "Export a report",
        description:
          "A small export is completed at once. A large one is pending: poll it until its status is completed or failed.",
        scopes: exportScopes,
        reach: "rows"
      })
    ),
    HttpApiEndpoint.get("listExports", "/reports/exports", {
      query: listQuery(exportSorts, exportFilters),
      success: Paged(ReportExport)
    }).annotateMerge(
      operation({
        id: "listReportExports",
        summary: "List report exports",
        description: "A token for some products finds those that were limited to its products or some of them.",
        scopes: exportScopes,
        reach: "rows"
      })
    ),
    HttpApiEndpoint.get("getExport", "/reports/exports/:id", {
      params,
      success: Data(ReportExport),
      error: failures("NOT_FOUND")
    }).annotateMerge(operation({ id: "getReportExport", summary: "Get a report export", scopes: exportScopes })),
    HttpApiEndpoint.get("downloadExport", "/reports/exports/:id/download", {
      params,
      success: [Figures, fileOf("text/csv; charset=utf-8"), fileOf("application/pdf")],
      error: failures("NOT_FOUND", "EXPORT_NOT_READY")
    })
      .annotateMerge(
        operation({
          id: "downloadReportExport",
          summary: "Download the file of a report export",
          description:
            "The file in the format of the export, the same bytes each time. ETag and Repr-Digest (RFC 9530) contain the " +
            "digest of the bytes.",
          scopes: exportScopes
        })
      )
      .annotate(ServesRanges, true)
  )
  .middleware(Decoding)
  .middleware(Idempotency)
  .middleware(ManagementAuthorization)
  .annotate(PathTables, { id: "report_exports" })
  .annotate(OpenApi.Title, "ops") {}
