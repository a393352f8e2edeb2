/** Serves the documents over HTTP. Each document is generated once, at its first request. */
import { Effect, Layer } from "effect"
import { HttpRouter, type HttpServerRequest, HttpServerResponse } from "effect/http"
import { HttpApiScalar } from "effect/http-api"
import { Settings } from "../config/Config.ts"
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

/**
 * The API reference page. Its script is inline and loads nothing from other servers. Script and page take 16 MB of memory, so they
 * are made at the first request.
 */
const reference = (baseUrl: string | undefined) =>
  HttpRouter.use(
    Effect.fnUntraced(function* (router) {
      const path = "/docs"
      const scalar = { withDefaultFonts: false, showOperationId: true }
      const layer = HttpApiScalar.layer(publishedApi(baseUrl), { path, scalar })
      const page = yield* Effect.cached(Effect.scoped(HttpRouter.toHttpEffect(layer)))
      yield* router.add("GET", path, Effect.orDie(Effect.flatten(page)))
    })
  )

const response = (text: string, contentType: string) =>
  HttpServerResponse.text(text, { contentType, headers: { "cache-control": "public, max-age=300" } })

const document = (path: `/${string}`, contentType: string, make: () => string) => {
  const text = once(make)
  return HttpRouter.add(
    "GET",
    path,
    Effect.sync(() => response(text(), contentType))
  )
}

/** Serves a text that contains the service's address: the configured one, otherwise the one that the request was sent to. */
const textWithAddress = (path: `/${string}`, baseUrl: string | undefined, make: () => string) => {
  const text = once(make)
  return HttpRouter.add("GET", path, (request) =>
    Effect.sync(() =>
      response(text().replaceAll(baseUrlPlaceholder, baseUrl ?? originOf(request)), "text/plain; charset=utf-8")
    )
  )
}

const once = (make: () => string) => {
  let text: string | undefined
  return () => {
    text ??= make()
    return text
  }
}

/** The Host header may contain anything; only a valid authority is used. */
const originOf = ({ headers }: HttpServerRequest.HttpServerRequest): string => {
  const host = headers["host"] ?? ""
  return /^[A-Za-z0-9.:[\]-]{1,255}$/.test(host) ? `http://${host}` : baseUrlPlaceholder
}
