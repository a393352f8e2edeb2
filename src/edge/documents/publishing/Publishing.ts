/** Serves the documents over HTTP. They are made and compressed once, on a thread of their own, at the first request for one. */
import { Effect, Fiber, FiberSet, Option } from "effect"
import { HttpRouter, type HttpServerRequest, HttpServerResponse } from "effect/http"
import { refuse } from "../../../contract/api/Failure.ts"
import { originOf, pathOf } from "../../../contract/api/RequestHead.ts"
import { Settings } from "../../../platform/config/Config.ts"
import { withoutDeadline } from "../../../platform/postgres/driver/Deadline.ts"
import { startPage } from "../reference/ReferencePages.ts"
import { baseUrlPlaceholder } from "../texts/Llms.ts"
import { makeAssets } from "./Assets.ts"
import { type CompressedDocument, compress, respond, respondRefusal } from "./CompressedDocument.ts"
import { openApiPaths, referencePath, textPaths } from "./DocumentPaths.ts"
import { makeDocuments } from "./DocumentsThread.ts"
import { makeSite } from "./Site.ts"

export const DocumentsHttp = HttpRouter.use(
  Effect.fnUntraced(function* (router) {
    const { baseUrl, console } = yield* Settings
    const site = yield* makeSite
    const assets = yield* makeAssets(startPage(console))
    // On a busy machine the first request takes longer than the deadline.
    const documents = withoutDeadline(yield* makeOnce(makeDocuments({ baseUrl, pages: site.pages })))
    const text = makeTexts(Effect.map(documents, ({ templates }) => templates))
    const textOf = (request: HttpServerRequest.HttpServerRequest, path: string) =>
      text(path, baseUrl ?? originOf(request.headers) ?? baseUrlPlaceholder)

    for (const path of openApiPaths) {
      yield* router.add("GET", path, (request) =>
        Effect.map(documents, ({ byPath }) => respond(request, byPath.get(path)!))
      )
    }
    for (const path of textPaths) {
      yield* router.add("GET", path, (request) => Effect.flatMap(textOf(request, path), orMissing(request)))
    }
    for (const [path, asset] of assets)
      yield* router.add("GET", path, (request) => Effect.map(asset, (it) => respond(request, it)))
    yield* router.add("GET", "/docs/*", (request) => {
      const path = pathOf(request.url)
      // Relative, because the public address may have a path.
      if (path === "/docs") return Effect.succeed(HttpServerResponse.redirect("docs/"))
      if (path.startsWith("/docs/operations/")) return Effect.flatMap(textOf(request, path), orMissing(request))
      const light = path === referencePath ? Effect.map(documents, ({ byPath }) => byPath.get(path)) : Effect.undefined
      return Effect.flatMap(site.find(path.slice(referencePath.length)), (file) =>
        Effect.flatMap(Option.isSome(file) ? Effect.succeed(file.value) : light, orMissing(request))
      )
    })
  })
)

/**
 * Runs the effect at its first use, and shares its result. It runs on its own fiber: a client that
 * disconnects must not interrupt it. After a failure the next use runs it again.
 */
const makeOnce = Effect.fnUntraced(function* <A>(make: Effect.Effect<A>) {
  const fork = yield* FiberSet.makeRuntime<never>()
  let making: Fiber.Fiber<A> | undefined
  const forget = Effect.sync(() => {
    making = undefined
  })
  return Effect.suspend(() => {
    making ??= fork(Effect.tapCause(make, () => forget))
    return Fiber.join(making)
  })
})

const noSuchPage = refuse("NOT_FOUND", "There is no such page: /docs/ lists all pages.")

const orMissing = (request: HttpServerRequest.HttpServerRequest) => (document: CompressedDocument | undefined) =>
  document === undefined ? respondRefusal(noSuchPage) : Effect.succeed(respond(request, document))

// The texts contain the address, which clients choose if none is configured.
const textsMax = 16

const makeTexts = (templates: Effect.Effect<ReadonlyMap<string, string>>) => {
  const kept = new Map<string, CompressedDocument>()
  return Effect.fnUntraced(function* (path: string, address: string) {
    const name = `${path} ${address}`
    const existing = kept.get(name)
    if (existing !== undefined) return existing
    const template = (yield* templates).get(path)
    if (template === undefined) return undefined
    const type = path.endsWith(".md") ? "text/markdown; charset=utf-8" : "text/plain; charset=utf-8"
    const made = yield* compress(type, Buffer.from(template.replaceAll(baseUrlPlaceholder, address)))
    if (kept.size >= textsMax) kept.delete(kept.keys().next().value!)
    kept.set(name, made)
    return made
  })
}
