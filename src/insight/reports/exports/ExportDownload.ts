/** The file of an export as an HTTP response: its address, byte ranges, ETag and digest (RFC 9110, RFC 9530). */
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import { matchesEntityTag } from "../../../access/preconditions/RecordTag.ts"
import { originOf } from "../../../contract/api/RequestHead.ts"
import type { ReportExport, StoredExport } from "./Export.ts"
import type { ExportFile } from "./Exports.ts"

type Request = HttpServerRequest.HttpServerRequest

/** Without a configured public address, the download address has the host of the request. */
export const withDownloadUrl =
  (baseUrl: string | undefined, request: Request) =>
  (stored: StoredExport): ReportExport => ({
    ...stored,
    download_url: `${baseUrl ?? originOf(request.headers) ?? ""}/api/v1/reports/exports/${stored.id}/download`
  })

/** Returns the file or the requested range. An invalid range, or one beyond the end, returns the whole file. */
export const download = (file: ExportFile, request: Request): HttpServerResponse.HttpServerResponse => {
  const { artifact_digest, content_type, format, id, report_kind, size_bytes } = file
  const etag = `"${artifact_digest}"`
  const headers = {
    etag,
    "repr-digest": `sha-256=:${Buffer.from(artifact_digest, "hex").toString("base64")}:`,
    "accept-ranges": "bytes",
    "content-disposition": `attachment; filename="${report_kind}-${id}.${format}"`
  }
  if (matchesEntityTag(request.headers["if-none-match"], etag))
    return HttpServerResponse.empty({ status: 304, headers })
  const range =
    request.method === "GET" && rangeApplies(request.headers["if-range"], etag)
      ? rangeOf(request.headers["range"], size_bytes)
      : undefined
  const { from, to } = range ?? { from: 0, to: size_bytes }
  return HttpServerResponse.stream(file.bytes(from, to), {
    status: range === undefined ? 200 : 206,
    contentType: content_type,
    contentLength: to - from,
    headers: range === undefined ? headers : { ...headers, "content-range": `bytes ${from}-${to - 1}/${size_bytes}` }
  })
}

const rangeApplies = (header: string | undefined, etag: string): boolean =>
  header === undefined || header.trim() === etag

/** One range of bytes; `to` is exclusive. */
const rangeOf = (header: string | undefined, size: number) => {
  const [, first = "", last = ""] = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(header?.trim() ?? "") ?? []
  if (first === "" && last === "") return undefined
  const from = first === "" ? Math.max(0, size - Number(last)) : Number(first)
  const to = first === "" || last === "" ? size : Math.min(size, Number(last) + 1)
  return from < to ? { from, to } : undefined
}
