/** Small files beside the documents: the page at `/`, the icon, and what the light reference page loads. */
import { Effect, FileSystem, Path } from "effect"
import { compress } from "./CompressedDocument.ts"

const files = [
  ["/favicon.svg", "image/svg+xml", "Favicon.svg"],
  // Browsers request this path for pages without an icon, and use the content type.
  ["/favicon.ico", "image/svg+xml", "Favicon.svg"],
  ["/docs/reference.css", "text/css; charset=utf-8", "Reference.css"]
] as const

export const makeAssets = Effect.fnUntraced(function* (startPage: string) {
  const system = yield* FileSystem.FileSystem
  const paths = yield* Path.Path
  const folder = yield* Effect.orDie(paths.fromFileUrl(new URL("../reference/", import.meta.url)))
  const read = (name: string) => Effect.orDie(system.readFile(paths.join(folder, name)))
  const assets = [
    ["/", compress("text/html; charset=utf-8", Buffer.from(startPage))] as const,
    ...files.map(([path, type, name]) => [path, Effect.flatMap(read(name), (bytes) => compress(type, bytes))] as const)
  ]
  return yield* Effect.forEach(assets, ([path, asset]) =>
    Effect.map(Effect.cached(asset), (cached) => [path, cached] as const)
  )
})
