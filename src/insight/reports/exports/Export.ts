/** An export of a report: an immutable file and its metadata (contract, "Report export"). */
import { Schema } from "effect"
import { Count } from "../../../contract/api/Int64.ts"
import { Instant, Timestamp } from "../../../contract/api/Timestamp.ts"
import { ActorName } from "../../../ledger/events/Event.ts"
import { ReportKind } from "../model/Filter.ts"

export const ReportExportFormat = Schema.Literals(["json", "csv", "pdf"]).annotate({
  identifier: "ReportExportFormat",
  description: "The format of the file."
})
export type ReportExportFormat = typeof ReportExportFormat.Type

const Filters = Schema.Record(Schema.String, Schema.Json).annotate({
  description: "The query parameters of the report's own operation."
})

export const ReportExportCreate = Schema.Struct({
  report_kind: ReportKind,
  format: Schema.optionalKey(ReportExportFormat.annotate({ default: "json" })),
  filters: Schema.optionalKey(Filters)
}).annotate({ identifier: "ReportExportCreateRequest" })

export const ReportExport = Schema.Struct({
  id: Schema.String,
  report_kind: ReportKind,
  format: ReportExportFormat,
  status: Schema.Literals(["pending", "processing", "completed", "failed"]),
  filters: Filters,
  digest: Schema.String.annotate({
    description: "SHA-256, as hex, of the figures as canonical JSON (RFC 8785); empty until the export is completed."
  }),
  artifact_digest: Schema.String.annotate({
    description: "SHA-256, as hex, of the file; empty until the export is completed."
  }),
  content_type: Schema.String.annotate({ description: "The media type of the file." }),
  created_by: Schema.String.annotate({ description: "The id of the API key or OIDC subject that requested it." }),
  created_by_name: ActorName,
  product_ids: Schema.optionalKey(
    Schema.Array(Schema.String).annotate({
      description: "The products of the token that created it; absent: of all. The figures have no others."
    })
  ),
  created_at: Timestamp,
  updated_at: Timestamp,
  download_url: Schema.String.annotate({
    description: "The address of the file; its download needs the scope report:export."
  }),
  rows: Count.annotate({ description: "The current number of rows in the file." }),
  size_bytes: Schema.optionalKey(Count.annotate({ description: "The size of the file." })),
  failure: Schema.optionalKey(Schema.String.annotate({ description: "Why the export has failed." })),
  erased_at: Schema.optionalKey(
    Instant("When the file was removed because a customer was erased. The digests are those of the removed file.")
  )
}).annotate({ identifier: "ReportExportMetadata", description: "A report export and the state of its file." })
export type ReportExport = typeof ReportExport.Type

/** A stored export; its download address depends on the request. */
export type StoredExport = Omit<ReportExport, "download_url">

export const exportSorts = { created_at: "instant" } as const

export const exportFilters = {
  report_kind: Schema.optionalKey(ReportExport.fields.report_kind),
  status: Schema.optionalKey(ReportExport.fields.status)
}
const Filter = Schema.Struct(exportFilters)
export type ExportFilter = typeof Filter.Type
