/** Responds while the service starts, which takes as long as its database: it is alive, but not ready. */
import type { RequestListener, ServerResponse } from "node:http"
import { Clock, Effect } from "effect"
import { errorEnvelope, refuse } from "../../contract/api/Failure.ts"
import { Identifiers } from "../../contract/api/Identifier.ts"
import { metaOf } from "../../contract/api/Meta.ts"
import { inboundRequestId, type RequestHead } from "../../contract/api/RequestHead.ts"
import { Settings } from "../../platform/config/Config.ts"
import { fixedHeaders } from "../responses/ResponseHeaders.ts"

const starting = refuse("NOT_READY", "The service is starting: send the request again in a moment.", "starting")

export const makeStartingListener = Effect.gen(function* () {
  const identifiers = yield* Identifiers
  const fixed = fixedHeaders((yield* Settings).baseUrl)
  const context = yield* Effect.context<never>()
  const meta = Effect.all([identifiers.make("request"), Clock.currentTimeMillis])
  return ((request, response) => {
    const [made, now] = Effect.runSyncWith(context)(meta)
    const { headers, method = "", url = "" } = request
    const id = inboundRequestId(headers as RequestHead["headers"]) ?? made
    const isLiveness = (method === "GET" || method === "HEAD") && (url === "/healthz" || url === "/health")
    const body = isLiveness ? { data: { status: "ok" }, meta: metaOf(id, now) } : errorEnvelope(starting, id, now)
    const status = isLiveness ? 200 : 503
    send(response, status, { ...fixed, "x-request-id": id }, method === "HEAD" ? "" : JSON.stringify(body))
  }) satisfies RequestListener
})

const send = (
  response: ServerResponse,
  status: 200 | 503,
  headers: Readonly<Record<string, string>>,
  body: string
): void => {
  response.writeHead(status, {
    ...headers,
    "content-type": "application/json",
    "content-length": String(Buffer.byteLength(body)),
    ...(status === 503 && { "retry-after": "1" })
  })
  response.end(body)
}
