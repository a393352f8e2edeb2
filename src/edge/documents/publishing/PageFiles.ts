/**
 * The files of a web page, the console's or the customer's. They are built by `npm ci` and read at the first request for one. Names
 * of assets contain a digest, so browsers cache them.
 */
import { Effect, FileSystem, Path } from "effect"
import { HttpRouter, type HttpServerRequest } from "effect/http"
import { refuse } from "../../../contract/api/Failure.ts"
import type { Settings } from "../../../platform/config/Config.ts"
import { withoutDeadline } from "../../../platform/postgres/driver/Deadline.ts"
import { pathPrefix } from "../../requests/PathPrefix.ts"
import { compress, respond, respondRefusal } from "./CompressedDocument.ts"

interface WebPage {
  /** As in the paths: `console`. */
  readonly name: string
  readonly folder: URL
  /** What the page says in elements `<meta name="…" content="" />`. */
  readonly facts?: { readonly [name: string]: string }
}

/** The folder of a page: beside the package's JavaScript, or where `npm ci` builds it. */
export const pageFolder = (name: string): URL =>
  new URL(
    import.meta.url.endsWith(".js") ? `../../../clients/${name}/` : `../../../../node_modules/.cache/${name}/`,
    import.meta.url
  )

/**
 * Only the page's own files contain code and styles. It calls only this service and `others`, and no text becomes code or
 * markup.
 */
export const pageHeaders = (camera: "()" | "(self)", ...others: ReadonlyArray<string>) => ({
  "content-security-policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; img-src 'self' data:; " +
    `connect-src ${["'self'", ...others].join(" ")}; base-uri 'none'; ` +
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
  "cross-origin-opener-policy": "same-origin",
  "permissions-policy": `camera=${camera}, geolocation=(), microphone=(), payment=(), usb=()`,
  "cache-control": "no-cache"
})

const assetHeaders = { "cache-control": "public, max-age=31536000, immutable" }

const types: Readonly<Record<string, string>> = {
  ".css": "text/css; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".svg": "image/svg+xml",
  ".woff2": "font/woff2"
}

/** The routes' handlers: of the page itself, and of an asset by its name. */
export const makePageFiles = Effect.fnUntraced(function* ({ facts = {}, folder, name }: WebPage) {
  const services = yield* Effect.context<FileSystem.FileSystem | Path.Path | Settings>()
  const notBuilt = refuse(
    "NOT_READY",
    "The page is not built: run `npm ci` with the development dependencies or `npm run console`, and restart the service."
  )
  const noFile = refuse("NOT_FOUND", "The page has no such file: reload it.")
  // A client that disconnects must not interrupt the reading.
  const read = yield* readFiles(name, folder, facts).pipe(
    Effect.provideContext(services),
    Effect.orElseSucceed(() => undefined),
    Effect.uninterruptible,
    Effect.cached
  )
  const files = withoutDeadline(read)
  const page = Effect.fnUntraced(function* (
    request: HttpServerRequest.HttpServerRequest,
    headers: { readonly [name: string]: string }
  ) {
    const found = yield* files
    return found === undefined ? yield* respondRefusal(notBuilt) : respond(request, found.page, headers)
  })
  const asset = Effect.fnUntraced(function* (request: HttpServerRequest.HttpServerRequest) {
    const { name = "" } = yield* HttpRouter.params
    const file = (yield* files)?.assets.get(name)
    return file === undefined ? yield* respondRefusal(noFile) : respond(request, file, assetHeaders)
  })
  return { page, asset }
})

const readFiles = Effect.fnUntraced(function* (name: string, url: URL, facts: NonNullable<WebPage["facts"]>) {
  const files = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const folder = yield* path.fromFileUrl(url)
  const read = (contentType: string, file: string) =>
    Effect.flatMap(files.readFile(path.join(folder, file)), (bytes) => compress(contentType, bytes))
  const names = yield* files.readDirectory(path.join(folder, "assets"))
  const assets = yield* Effect.forEach(names, (file) =>
    read(types[path.extname(file)] ?? "application/octet-stream", `assets/${file}`)
  )
  const prefix = yield* pathPrefix
  const page = yield* files.readFileString(path.join(folder, "index.html"))
  return {
    page: yield* compress(
      "text/html; charset=utf-8",
      new TextEncoder().encode(withFacts(page.replaceAll(`"/${name}`, `"${prefix}/${name}`), facts))
    ),
    assets: new Map(names.map((file, index) => [file, assets[index]!]))
  }
})

const withFacts = (page: string, facts: NonNullable<WebPage["facts"]>): string =>
  Object.entries(facts).reduce(
    (text, [name, value]) =>
      text.replace(`<meta name="${name}" content=""`, () => `<meta name="${name}" content="${escaped(value)}"`),
    page
  )

const escaped = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll('"', "&quot;").replaceAll("<", "&lt;")
