/**
 * Serves the console, the vendor's web pages. Its files are built by `npm ci` and read at the first request
 * for one. Names of assets contain a digest, so browsers cache them; every other path is a screen of the single page.
 */
import { Context, Effect, FileSystem, Layer, Path } from "effect"
import { HttpRouter, type HttpServerRequest, HttpServerResponse } from "effect/http"
import { SignIn } from "../../../access/oidc/SignIn.ts"
import { refuse } from "../../../contract/api/Failure.ts"
import { Settings } from "../../../platform/config/Config.ts"
import { withoutDeadline } from "../../../platform/postgres/driver/Deadline.ts"
import { pathPrefix } from "../../requests/PathPrefix.ts"
import { compress, respond, respondRefusal } from "./CompressedDocument.ts"

/** The package contains JavaScript, and the console beside it. */
export const ConsoleFolder = Context.Reference<URL>("licensing/edge/documents/publishing/ConsoleFolder", {
  defaultValue: () =>
    new URL(
      import.meta.url.endsWith(".js") ? "../../../clients/console/" : "../../../../node_modules/.cache/console/",
      import.meta.url
    )
})

/**
 * Only the console's own files contain code and styles. It calls only this service and the issuer's token endpoint, and no text
 * becomes code or markup.
 */
const pageHeaders = (tokenOrigin: string | undefined) => ({
  "content-security-policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; img-src 'self' data:; " +
    `connect-src 'self'${tokenOrigin === undefined ? "" : ` ${tokenOrigin}`}; base-uri 'none'; ` +
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
  "cross-origin-opener-policy": "same-origin",
  "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
  "cache-control": "no-cache"
})
const assetHeaders = { "cache-control": "public, max-age=31536000, immutable" }

const types: Readonly<Record<string, string>> = {
  ".css": "text/css; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".svg": "image/svg+xml",
  ".woff2": "font/woff2"
}

const notBuilt = refuse(
  "NOT_READY",
  "The console is not built: run `npm ci` with the development dependencies or `npm run console`, and restart the service."
)
const noFile = refuse("NOT_FOUND", "The console has no such file: reload the page.")

const readFiles = Effect.gen(function* () {
  const files = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const folder = yield* path.fromFileUrl(yield* ConsoleFolder)
  const read = (contentType: string, name: string) =>
    Effect.flatMap(files.readFile(path.join(folder, name)), (bytes) => compress(contentType, bytes))
  const names = yield* files.readDirectory(path.join(folder, "assets"))
  const assets = yield* Effect.forEach(names, (name) =>
    read(types[path.extname(name)] ?? "application/octet-stream", `assets/${name}`)
  )
  const prefix = yield* pathPrefix
  const page = yield* files.readFileString(path.join(folder, "index.html"))
  return {
    page: yield* compress(
      "text/html; charset=utf-8",
      new TextEncoder().encode(page.replaceAll('"/console', `"${prefix}/console`))
    ),
    assets: new Map(names.map((name, index) => [name, assets[index]!]))
  }
})

const routes = HttpRouter.use(
  Effect.fnUntraced(function* (router) {
    const services = yield* Effect.context<FileSystem.FileSystem | Path.Path | Settings>()
    const { tokenOrigin, ways } = yield* SignIn
    // A client that disconnects must not interrupt the reading.
    const read = yield* readFiles.pipe(
      Effect.provideContext(services),
      Effect.orElseSucceed(() => undefined),
      Effect.uninterruptible,
      Effect.cached
    )
    const files = withoutDeadline(read)
    const page = Effect.fnUntraced(function* (request: HttpServerRequest.HttpServerRequest) {
      const found = yield* files
      return found === undefined
        ? yield* respondRefusal(notBuilt)
        : respond(request, found.page, pageHeaders(yield* withoutDeadline(tokenOrigin)))
    })
    const asset = Effect.fnUntraced(function* (request: HttpServerRequest.HttpServerRequest) {
      const { name = "" } = yield* HttpRouter.params
      const file = (yield* files)?.assets.get(name)
      return file === undefined ? yield* respondRefusal(noFile) : respond(request, file, assetHeaders)
    })
    yield* router.add("GET", "/console/assets/:name", asset)
    yield* router.add("GET", "/console/sign-in.json", Effect.map(withoutDeadline(ways), HttpServerResponse.jsonUnsafe))
    // This route also matches /console.
    yield* router.add("GET", "/console/*", page)
  })
)

export const ConsoleHttp = Layer.unwrap(Settings.useSync(({ console }) => (console ? routes : Layer.empty)))
