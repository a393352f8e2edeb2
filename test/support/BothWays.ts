/** The same runtime request on the direct way and on the general one, and what of the two answers has to agree. */
import { assert } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { type PublishedKey, verifierOf } from "../../infra/scripts/verify.ts"
import * as Listener from "../../src/http/Listener.ts"
import { layerActive } from "./Activity.ts"
import type { issue } from "./Issued.ts"
import type { Answer } from "./RawHttp.ts"
import { TestServer } from "./TestServer.ts"

export type Way = "direct" | "general"
export const ways = ["direct", "general"] as const

type Issued = Effect.Success<ReturnType<typeof issue>>
type Headers = { readonly [name: string]: string }

/** What sends a request the general way and means nothing else. */
export const types = { direct: "application/json", general: "application/json; charset=utf-8" }

export class BothWays extends Context.Service<
  BothWays,
  {
    /** The ways that the answers have come since the last time that somebody asked. */
    readonly taken: Effect.Effect<ReadonlyArray<Way>>
    /** Posts a runtime request that could go the direct way; on the general one it says so in its content type. */
    ask(way: Way, licenseKey: string, operation: string, body: unknown, headers?: Headers): Effect.Effect<Answer>
    /** The same, and makes certain that it went that way. */
    asked(way: Way, licenseKey: string, operation: string, body: unknown, headers?: Headers): Effect.Effect<Answer>
    /** Has the node remember the key of a license. */
    remember(license: Issued): Effect.Effect<void>
    /** What an answer shows apart from times, ids and signatures; a signature has to hold. */
    faceOf(answer: Answer): Effect.Effect<Face>
  }
>()("licensing/test/BothWays") {
  /** A node of its own whose workers run when a test says so. */
  static layerWith(settings: Parameters<typeof layerActive>[0] = {}) {
    return BothWays.layer.pipe(Layer.provideMerge(layerActive(settings)))
  }

  /** On the node at hand. */
  static get layer() {
    return make
  }
}

export interface Face {
  readonly status: number
  readonly headers: Headers
  readonly text: string
}

/** The platform's handler listens to the end of an answer that it gives; the direct way has no use for that. */
const watching = Effect.gen(function* () {
  const { putInFront } = yield* Listener.Requests
  const taken: Array<Way> = []
  putInFront((listener) => (request, response) => {
    const before = response.listenerCount("finish")
    const end = response.end.bind(response) as (...args: ReadonlyArray<unknown>) => typeof response
    response.end = ((...args: ReadonlyArray<unknown>) => {
      taken.push(response.listenerCount("finish") > before ? "general" : "direct")
      return end(...args)
    }) as typeof response.end
    listener(request, response)
  })
  return taken
})

const make = Layer.effect(
  BothWays,
  Effect.gen(function* () {
    const seen = yield* watching
    const { client, send } = yield* TestServer
    const keys = (yield* client.system.listPublicKeys()).items as ReadonlyArray<PublishedKey>
    const verified = verifierOf(keys)
    const taken = Effect.sync(() => seen.splice(0))

    const ask: BothWays["Service"]["ask"] = (way, licenseKey, operation, body, headers = {}) =>
      send({
        method: "POST",
        path: `/api/v1/license/${operation}`,
        headers: { authorization: `License ${licenseKey}`, "content-type": types[way], ...headers },
        body
      })
    const asked: BothWays["Service"]["asked"] = (way, licenseKey, operation, body, headers) =>
      Effect.gen(function* () {
        yield* taken
        const answer = yield* ask(way, licenseKey, operation, body, headers)
        assert.deepStrictEqual(yield* taken, [way], `${operation} ${JSON.stringify(body)}: ${answer.text}`)
        return answer
      })
    const faceOf = (answer: Answer) =>
      Effect.sync((): Face => {
        if ("signature" in (answer.json as object)) verified(Buffer.from(answer.bytes))
        return shown(answer)
      })
    const remember = ({ license_key }: Issued) =>
      Effect.asVoid(asked("general", license_key, "check", { fingerprint: "nobody" }))
    return BothWays.of({ taken, ask, asked, remember, faceOf })
  })
)

const shown = ({ headers, status, text }: Answer): Face => {
  const { date: _, ...others } = headers
  return {
    status,
    headers: Object.fromEntries(Object.entries(others).map(([name, value]) => [name, unnumbered(String(value), name)])),
    text: unnumbered(text)
  }
}

export const unnumbered = (text: string, name = ""): string =>
  (name === "ratelimit" ? text.replaceAll(/t=\d+/g, "t=?") : text)
    .replaceAll(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/g, "<time>")
    .replaceAll(/"(ciphertext|nonce|salt|value)":"[^"]*"/g, '"$1":"?"')
    .replaceAll(/\b([a-z]+)_[0-9A-Za-z_-]{16,}/g, "$1_?")
    .replaceAll(/"product_code":"issued-\d+/g, '"product_code":"issued-?')
