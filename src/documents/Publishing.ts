/** Serves the documents over HTTP. They are made and compressed once, on a thread of their own, at the first request for one. */
import { Duration, Effect } from "effect"
import { HttpRouter, type HttpServerRequest } from "effect/http"
import { Settings } from "../config/Config.ts"
import { withoutDeadline } from "../postgres/Deadline.ts"
import { type CompressedDocument, compress, respond } from "./CompressedDocument.ts"
import { makeDocuments } from "./DocumentsThread.ts"
import { baseUrlPlaceholder } from "./Llms.ts"

export const DocumentsHttp = HttpRouter.use(
  Effect.fnUntraced(function* (router) {
    const { baseUrl } = yield* Settings
    // A client that disconnects while they are made must not leave them unmade.
    const [made, forget] = yield* Effect.cachedInvalidateWithTTL(
      Effect.uninterruptible(makeDocuments(baseUrl)),
      Duration.infinity
    )
    // On a busy machine the first request waits for longer than requests may take.
    const documents = withoutDeadline(Effect.tapCause(made, () => forget))
    for (const path of ["/docs", "/openapi.json", "/openapi.yaml"] as const) {
      yield* router.add("GET", path, (request) =>
        Effect.map(documents, ({ byPath }) => respond(request, byPath.get(path)!))
      )
    }
    for (const path of ["/llms.txt", "/llms-full.txt"] as const) {
      const at = makeTexts(Effect.map(documents, ({ templates }) => templates.get(path)!))
      yield* router.add("GET", path, (request) =>
        Effect.map(at(baseUrl ?? originOf(request)), (document) => respond(request, document))
      )
    }
  })
)

// The address is part of the text; without a configured one clients choose it.
const addressesMax = 8

/** A function from the service's address to the text that contains it. */
const makeTexts = (template: Effect.Effect<string>) => {
  const byAddress = new Map<string, CompressedDocument>()
  return Effect.fnUntraced(function* (address: string) {
    const existing = byAddress.get(address)
    if (existing !== undefined) return existing
    const text = (yield* template).replaceAll(baseUrlPlaceholder, address)
    const made = yield* compress("text/plain; charset=utf-8", Buffer.from(text))
    if (byAddress.size >= addressesMax) byAddress.delete(byAddress.keys().next().value!)
    byAddress.set(address, made)
    return made
  })
}

/** The Host header may contain anything; only a valid authority is used. */
const originOf = ({ headers }: HttpServerRequest.HttpServerRequest): string => {
  const host = headers["host"] ?? ""
  return /^[A-Za-z0-9.:[\]-]{1,255}$/.test(host) ? `http://${host}` : baseUrlPlaceholder
}
