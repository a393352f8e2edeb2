/** The file of an export as an HTTP answer: where it is, which bytes are wanted, and what proves them (RFC 9110, RFC 9530). */
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import type { ReportExport, StoredExport } from "./Export.ts"
import type { ExportFile } from "./Exports.ts"

type Request = HttpServerRequest.HttpServerRequest

/** An export with the address of its file: at the service's public address, else where the request was sent to. */
export const withAddress =
  (baseUrl: string | undefined, request: Request) =>
  (stored: StoredExport): ReportExport => ({
    ...stored,
    download_url: `${baseUrl ?? originOf(request)}/api/v1/reports/exports/${stored.id}/download`
  })

/** What comes in a header may be anything; only what can be an authority is shown. */
const originOf = ({ headers }: Request): string => {
  const host = headers["host"] ?? ""
  return /^[A-Za-z0-9.:[\]-]{1,255}$/.test(host) ? `http://${host}` : ""
}

/** Answers the file or the range of it that is asked for. A range that is none, or lies beyond the end, is the whole. */
export const download = (file: ExportFile, request: Request): HttpServerResponse.HttpServerResponse => {
  const { artifact_digest, content_type, format, id, report_kind, size_bytes } = file
  const etag = `"${artifact_digest}"`
  const headers = {
    etag,
    "repr-digest": `sha-256=:${Buffer.from(artifact_digest, "hex").toString("base64")}:`,
    "accept-ranges": "bytes",
    "content-disposition": `attachment; filename="${report_kind}-${id}.${format}"`
  }
  if (isKnown(request.headers["if-none-match"], etag)) return HttpServerResponse.empty({ status: 304, headers })
  const range = isCurrent(request.headers["if-range"], etag) ? rangeOf(request.headers["range"], size_bytes) : undefined
  const { from, to } = range ?? { from: 0, to: size_bytes }
  return HttpServerResponse.stream(file.bytes(from, to), {
    status: range === undefined ? 200 : 206,
    contentType: content_type,
    contentLength: to - from,
    headers: range === undefined ? headers : { ...headers, "content-range": `bytes ${from}-${to - 1}/${size_bytes}` }
  })
}

const isKnown = (given: string | undefined, etag: string): boolean =>
  given !== undefined &&
  (given.trim() === "*" || given.split(",").some((tag) => tag.trim().replace(/^W\//, "") === etag))

const isCurrent = (given: string | undefined, etag: string): boolean => given === undefined || given.trim() === etag

/** One range of bytes; the second position is not in it. */
const rangeOf = (given: string | undefined, size: number) => {
  const [, first = "", last = ""] = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(given?.trim() ?? "") ?? []
  if (first === "" && last === "") return undefined
  const from = first === "" ? Math.max(0, size - Number(last)) : Number(first)
  const to = first === "" || last === "" ? size : Math.min(size, Number(last) + 1)
  return from < to ? { from, to } : undefined
}
