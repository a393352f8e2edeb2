/**
 * Serves the documentation site that `npm run docs` builds, below /docs/. A service without it shows the light
 * reference page. What must stay true: only files that were in the folder at the start are read, so that no path leads elsewhere.
 */
import { Context, Effect, FileSystem, Option, Path, Schema } from "effect"
import { type CompressedDocument, compress } from "./CompressedDocument.ts"

/** Beside `src`; the package has the site in `dist`. */
export const SiteFolder = Context.Reference<URL>("licensing/edge/documents/publishing/SiteFolder", {
  defaultValue: () => new URL(import.meta.url.endsWith(".js") ? "../../../site/" : "../../../../site/", import.meta.url)
})

// The site has some hundred files.
const filesMax = 5_000

const contentTypes: { readonly [extension: string]: string } = {
  css: "text/css; charset=utf-8",
  html: "text/html; charset=utf-8",
  js: "text/javascript; charset=utf-8",
  json: "application/json",
  md: "text/markdown; charset=utf-8",
  png: "image/png",
  svg: "image/svg+xml"
}

/** Names in assets/ contain a digest of the content. */
const cacheControlOf = (name: string): string | undefined =>
  name.startsWith("assets/") ? "public, max-age=31536000, immutable" : undefined

const Pages = Schema.fromJsonString(
  Schema.Array(
    Schema.Struct({
      path: Schema.String,
      title: Schema.String,
      description: Schema.String,
      section: Schema.String
    })
  )
)

export const makeSite = Effect.gen(function* () {
  const files = yield* FileSystem.FileSystem
  const paths = yield* Path.Path
  const folder = yield* Effect.orDie(paths.fromFileUrl(yield* SiteFolder))
  const listed = yield* Effect.orElseSucceed(files.readDirectory(folder, { recursive: true }), () => [])
  const names = new Set(listed.slice(0, filesMax).map((name) => name.replaceAll("\\", "/")))
  const made = new Map<string, CompressedDocument>()

  const find = Effect.fnUntraced(function* (path: string) {
    const name = path === "" || path.endsWith("/") ? `${path}index.html` : path
    const existing = made.get(name)
    if (existing !== undefined) return Option.some(existing)
    if (!names.has(name)) return Option.none()
    // A folder, or a removed file.
    const bytes = yield* Effect.option(files.readFile(paths.join(folder, name)))
    if (Option.isNone(bytes)) return Option.none()
    const type = contentTypes[name.slice(name.lastIndexOf(".") + 1)] ?? "text/plain; charset=utf-8"
    const document = yield* compress(type, bytes.value, cacheControlOf(name))
    made.set(name, document)
    return Option.some(document)
  })

  const pages = yield* files.readFileString(paths.join(folder, "pages.json")).pipe(
    Effect.flatMap(Schema.decodeUnknownEffect(Pages)),
    Effect.orElseSucceed(() => [])
  )
  return { find, pages }
})
