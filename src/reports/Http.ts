import { Effect } from "effect"
import { HttpServerRequest } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { Api } from "../Api.ts"
import { refuse } from "../api/Failure.ts"
import { Settings } from "../config/Config.ts"
import { download, withAddress } from "./exports/Download.ts"
import { Exports } from "./exports/Exports.ts"
import { type ReportKind, untaken } from "./model/Filter.ts"
import { Reports } from "./Reports.ts"

export const ReportsHttp = HttpApiBuilder.group(
  Api,
  "reports",
  Effect.fn(function* (handlers) {
    const reports = yield* Reports
    const exports = yield* Exports
    const { baseUrl } = yield* Settings
    const addressed = (request: HttpServerRequest.HttpServerRequest) => Effect.map(withAddress(baseUrl, request))
    return handlers.handleAll({
      usageSummary: ({ query }) => Effect.andThen(takes("usage-summary"), reports.usageSummary(query)),
      usageLedger: ({ query }) => Effect.andThen(takes("usage-ledger"), reports.usageLedger(query)),
      licenseAudit: ({ query }) => Effect.andThen(takes("license-audit"), reports.licenseAudit(query)),
      customerSummary: ({ query }) => Effect.andThen(takes("customer-summary"), reports.customerSummary(query)),
      settlement: ({ query }) => Effect.andThen(takes("subscription-settlement"), reports.settlement(query)),
      createExport: ({ payload, request }) => exports.create(payload).pipe(addressed(request)),
      getExport: ({ params, request }) => exports.get(params.id).pipe(addressed(request)),
      downloadExport: ({ params, request }) => Effect.map(exports.file(params.id), (file) => download(file, request))
    })
  })
)

/** Refuses a parameter that another report takes: the figures would not be what it asks for. */
const takes = (kind: ReportKind) =>
  Effect.flatMap(HttpServerRequest.ParsedSearchParams, (given) => {
    const name = untaken(kind, Object.keys(given))
    return name === undefined
      ? Effect.void
      : Effect.fail(refuse("INVALID_QUERY", `The report ${kind} does not take the parameter ${name}.`, name))
  })
