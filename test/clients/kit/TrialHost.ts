/** Serves the kit's trial to another platform: the bundle, its input, a page; and receives the result. */
import { createServer } from "node:http"
import { fileURLToPath } from "node:url"
import { Deferred, Effect } from "effect"
import { type OutputChunk, rolldown } from "rolldown"
import type { TrialInput, TrialResult } from "./Trial.ts"

/** A bundle for browsers of one entry file of the project, as text. */
export const bundle = Effect.fnUntraced(function* (entry: string, minify = false) {
  const input = fileURLToPath(new URL(`../../../${entry}`, import.meta.url))
  return yield* Effect.promise(async () => {
    const built = await rolldown({ input, platform: "browser", external: [] })
    try {
      const { output } = await built.generate({ format: "esm", minify, codeSplitting: false })
      return output as [OutputChunk, ...Array<OutputChunk>]
    } finally {
      await built.close()
    }
  })
})

/** `inputOf` is given the address that the trial runs at. */
export const hostTrial = Effect.fnUntraced(function* <E, R>(inputOf: (url: string) => Effect.Effect<TrialInput, E, R>) {
  const [{ code }] = yield* bundle("test/clients/kit/Trial.ts")
  const result = yield* Deferred.make<TrialResult>()
  const page = `<!doctype html><script type="module">import { trialOver } from "/trial.js"; trialOver(location.origin)</script>`
  const files = new Map([
    ["/", { type: "text/html", text: page }],
    ["/trial.js", { type: "text/javascript", text: code }],
    ["/favicon.ico", { type: "image/x-icon", text: "" }]
  ])
  const server = createServer((request, response) => {
    const file = files.get(request.url ?? "")
    if (file !== undefined) return void response.setHeader("content-type", file.type).end(file.text)
    const chunks: Array<Buffer> = []
    request.on("data", (chunk) => chunks.push(chunk))
    request.on("end", () => {
      response.end()
      if (request.url === "/result") {
        Effect.runSync(Deferred.succeed(result, JSON.parse(Buffer.concat(chunks).toString())))
      }
    })
  })
  yield* Effect.acquireRelease(
    Effect.callback<void>((resume) => void server.listen(0, "127.0.0.1", () => resume(Effect.void))),
    () => Effect.sync(() => server.closeAllConnections() ?? server.close())
  )
  const { port } = server.address() as { readonly port: number }
  const url = `http://127.0.0.1:${port}`
  files.set("/input", { type: "application/json", text: JSON.stringify(yield* inputOf(url)) })
  return { url, result: Deferred.await(result), code }
})
