/** Responds while the service starts, which takes as long as its database: it is alive, but not ready. */
import type { RequestListener, ServerResponse } from "node:http"
import { Clock, Effect } from "effect"
import { errorEnvelope, refuse } from "../../contract/api/Failure.ts"
import { Identifiers } from "../../contract/api/Identifier.ts"
import { metaOf } from "../../contract/api/Meta.ts"
import { inboundRequestId, type RequestHead } from "../../contract/api/RequestHead.ts"

const starting = refuse("NOT_READY", "The service is starting: send the request again in a moment.", "starting")

export const makeStartingListener = Effect.gen(function* () {
  const identifiers = yield* Identifiers
  const context = yield* Effect.context<never>()
  const meta = Effect.all([identifiers.make("request"), Clock.currentTimeMillis])
  return ((request, response) => {
    const [made, now] = Effect.runSyncWith(context)(meta)
    const { headers, method = "", url = "" } = request
    const id = inboundRequestId(headers as RequestHead["headers"]) ?? made
    const isLiveness = (method === "GET" || method === "HEAD") && (url === "/healthz" || url === "/health")
    const body = isLiveness ? { data: { status: "ok" }, meta: metaOf(id, now) } : errorEnvelope(starting, id, now)
    send(response, id, isLiveness ? 200 : 503, method === "HEAD" ? "" : JSON.stringify(body))
  }) satisfies RequestListener
})

const send = (response: ServerResponse, id: string, status: 200 | 503, body: string): void => {
  response.writeHead(status, {
    "content-type": "application/json",
    "content-length": String(Buffer.byteLength(body)),
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    "x-request-id": id,
    ...(status === 503 && { "retry-after": "1" })
  })
  response.end(body)
}
