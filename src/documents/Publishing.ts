/** Serves the documents over HTTP. Each document is generated and compressed once, at its first request. */
import { Effect, Layer } from "effect"
import { HttpRouter, HttpServerRequest } from "effect/http"
import { HttpApiScalar } from "effect/http-api"
import { Settings } from "../config/Config.ts"
import { type CompressedDocument, compress, respond } from "./CompressedDocument.ts"
import { publishedApi } from "./Document.ts"
import { llmsFullText, llmsText, openApiJson, openApiYaml } from "./Documents.ts"
import { baseUrlPlaceholder } from "./Llms.ts"

export const DocumentsHttp = Layer.unwrap(
  Settings.useSync(({ baseUrl }) =>
    Layer.mergeAll(
      document("/openapi.json", "application/json", () => openApiJson(baseUrl)),
      document("/openapi.yaml", "application/yaml", () => openApiYaml(baseUrl)),
      textWithAddress("/llms.txt", baseUrl, llmsText),
      textWithAddress("/llms-full.txt", baseUrl, llmsFullText),
      reference(baseUrl)
    )
  )
)

const add = (path: `/${string}`, make: Effect.Effect<CompressedDocument, never, HttpServerRequest.HttpServerRequest>) =>
  HttpRouter.use(
    Effect.fnUntraced(function* (router) {
      // A client that disconnects while the document is made must not leave it unmade.
      const made = yield* Effect.cached(Effect.uninterruptible(make))
      yield* router.add(
        "GET",
        path,
        Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) =>
          Effect.map(made, (document) => respond(request, document))
        )
      )
    })
  )

const document = (path: `/${string}`, contentType: string, make: () => string) =>
  add(
    path,
    Effect.suspend(() => compress(contentType, Buffer.from(make())))
  )

/** The API reference page. Its script is inline and loads nothing from other servers. */
const reference = (baseUrl: string | undefined) => {
  const scalar = { withDefaultFonts: false, showOperationId: true }
  const path = "/docs"
  const page = Effect.suspend(() =>
    Effect.flatten(Effect.scoped(HttpRouter.toHttpEffect(HttpApiScalar.layer(publishedApi(baseUrl), { path, scalar }))))
  )
  return add(
    path,
    Effect.orDie(
      Effect.flatMap(Effect.scoped(page), ({ body }) =>
        body._tag === "Uint8Array"
          ? compress("text/html; charset=utf-8", body.body)
          : Effect.die("The reference page has no bytes.")
      )
    )
  )
}

// The address is part of the text; without a configured one clients choose it.
const addressesMax = 8

/** Serves a text that contains the service's address: the configured one, otherwise the one that the request was sent to. */
const textWithAddress = (path: `/${string}`, baseUrl: string | undefined, make: () => string) =>
  HttpRouter.use(
    Effect.fnUntraced(function* (router) {
      const byAddress = new Map<string, CompressedDocument>()
      let template: string | undefined
      const at = Effect.fnUntraced(function* (address: string) {
        const existing = byAddress.get(address)
        if (existing !== undefined) return existing
        template ??= make()
        const text = Buffer.from(template.replaceAll(baseUrlPlaceholder, address))
        const made = yield* compress("text/plain; charset=utf-8", text)
        if (byAddress.size >= addressesMax) byAddress.delete(byAddress.keys().next().value!)
        byAddress.set(address, made)
        return made
      })
      yield* router.add("GET", path, (request) =>
        Effect.map(at(baseUrl ?? originOf(request)), (document) => respond(request, document))
      )
    })
  )

/** The Host header may contain anything; only a valid authority is used. */
const originOf = ({ headers }: HttpServerRequest.HttpServerRequest): string => {
  const host = headers["host"] ?? ""
  return /^[A-Za-z0-9.:[\]-]{1,255}$/.test(host) ? `http://${host}` : baseUrlPlaceholder
}
