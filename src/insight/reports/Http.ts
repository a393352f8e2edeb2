import { Effect } from "effect"
import type { HttpServerRequest } from "effect/http"
import { Api } from "../../Api.ts"
import { operationGroup } from "../../access/requests/OperationGroup.ts"
import type { Page } from "../../contract/api/Paging.ts"
import { Settings } from "../../platform/config/Config.ts"
import type { StoredExport } from "./exports/Export.ts"
import { download, withDownloadUrl } from "./exports/ExportDownload.ts"
import { Exports } from "./exports/Exports.ts"
import { Reports } from "./Reports.ts"

export const ReportsHttp = operationGroup(
  Api,
  "reports",
  Effect.fn(function* (handlers) {
    const reports = yield* Reports
    const exports = yield* Exports
    const { baseUrl } = yield* Settings
    const withUrl = (request: HttpServerRequest.HttpServerRequest) => Effect.map(withDownloadUrl(baseUrl, request))
    const withUrls = (request: HttpServerRequest.HttpServerRequest) =>
      Effect.map((page: Page<StoredExport>) => ({ ...page, items: page.items.map(withDownloadUrl(baseUrl, request)) }))
    return handlers.handleAll({
      usageSummary: ({ query }) => reports.usageSummary(query),
      usageLedger: ({ query }) => reports.usageLedger(query),
      licenseAudit: ({ query }) => reports.licenseAudit(query),
      customerSummary: ({ query }) => reports.customerSummary(query),
      settlement: ({ query }) => reports.settlement(query),
      overview: ({ query }) => reports.overview(query),
      attention: ({ query }) => reports.attention(query),
      createExport: ({ payload, request }) => exports.create(payload).pipe(withUrl(request)),
      listExports: ({ query, request }) => exports.list(query).pipe(withUrls(request)),
      getExport: ({ params, request }) => exports.get(params.id).pipe(withUrl(request)),
      downloadExport: ({ params, request }) => Effect.map(exports.file(params.id), (file) => download(file, request))
    })
  })
)
