import { Effect } from "effect"
import { HttpServerRequest } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { Api } from "../Api.ts"
import { refuse } from "../api/Failure.ts"
import { Settings } from "../config/Config.ts"
import { download, withDownloadUrl } from "./exports/Download.ts"
import { Exports } from "./exports/Exports.ts"
import { type ReportKind, unsupportedFilter } from "./model/Filter.ts"
import { Reports } from "./Reports.ts"

export const ReportsHttp = HttpApiBuilder.group(
  Api,
  "reports",
  Effect.fn(function* (handlers) {
    const reports = yield* Reports
    const exports = yield* Exports
    const { baseUrl } = yield* Settings
    const withUrl = (request: HttpServerRequest.HttpServerRequest) => Effect.map(withDownloadUrl(baseUrl, request))
    return handlers.handleAll({
      usageSummary: ({ query }) => Effect.andThen(refuseUnsupported("usage-summary"), reports.usageSummary(query)),
      usageLedger: ({ query }) => Effect.andThen(refuseUnsupported("usage-ledger"), reports.usageLedger(query)),
      licenseAudit: ({ query }) => Effect.andThen(refuseUnsupported("license-audit"), reports.licenseAudit(query)),
      customerSummary: ({ query }) =>
        Effect.andThen(refuseUnsupported("customer-summary"), reports.customerSummary(query)),
      settlement: ({ query }) =>
        Effect.andThen(refuseUnsupported("subscription-settlement"), reports.settlement(query)),
      createExport: ({ payload, request }) => exports.create(payload).pipe(withUrl(request)),
      getExport: ({ params, request }) => exports.get(params.id).pipe(withUrl(request)),
      downloadExport: ({ params, request }) => Effect.map(exports.file(params.id), (file) => download(file, request))
    })
  })
)

/** Refuses a parameter of another report: the caller would expect it to narrow the figures. */
const refuseUnsupported = (kind: ReportKind) =>
  Effect.flatMap(HttpServerRequest.ParsedSearchParams, (parameters) => {
    const name = unsupportedFilter(kind, Object.keys(parameters))
    return name === undefined
      ? Effect.void
      : Effect.fail(refuse("INVALID_QUERY", `The report ${kind} does not take the parameter ${name}.`, name))
  })
