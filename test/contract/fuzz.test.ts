/** Invalid requests of every kind that the published document implies. The slow tests send random ones, and every wrong query. */
import { layer } from "@effect/vitest"
import { Effect } from "effect"
import type { Request } from "./cases/Conversation.ts"
import { bodyOf, paramsOf, requestOf } from "./cases/Fixtures.ts"
import { bodyCase, type Case, Shared, Subject, sendAll, withBody } from "./cases/Fuzz.ts"
import { memberMutations, wholeBodies } from "./cases/Mutations.ts"
import { type Operation, operations } from "./cases/Surface.ts"

layer(Subject, { timeout: "1 minute" })("A body", (it) => {
  for (const operation of withBody) {
    it.effect(`of ${operation.id} with one wrong value is refused`, () =>
      Effect.gen(function* () {
        const fixture = yield* Shared
        const right = bodyOf(operation, fixture) as object
        const cases = memberMutations(operation.body!, right).map(({ name, body }) =>
          bodyCase(operation, fixture, name, body)
        )
        const invalid = wholeBodies.filter(({ body }) => body !== "" || !operation.hasOptionalBody)
        const whole = invalid.map(({ name, body }) => ({
          name,
          request: { ...requestOf(operation, fixture), body },
          refused: { status: 400, code: "INVALID_JSON" }
        }))
        yield* sendAll(operation, [...cases.filter(({ refused }) => refused !== undefined), ...whole])
      })
    )
  }
})

const unknownIds = [
  "unknown",
  "\u0000",
  "a\u0000b",
  "😀",
  "../products",
  "%",
  "' OR 1=1 --",
  "x".repeat(8_000),
  "__proto__"
]

/** The license decides about its devices. It is not asked about an id that nothing can have. */
const unknownOf = ({ credential }: Operation, id: string, paths: ReadonlyArray<string>) =>
  credential === "license key" && !id.includes("\u0000")
    ? { status: 404, code: "DEVICE_NOT_FOUND" }
    : { status: 404, code: "NOT_FOUND", paths }

layer(Subject, { timeout: "1 minute" })("A path", (it) => {
  for (const operation of operations.filter(({ params }) => params.length > 0)) {
    it.effect(`of ${operation.id} with an unknown id is NOT_FOUND`, () =>
      Effect.gen(function* () {
        const fixture = yield* Shared
        const right = paramsOf(operation, fixture)
        const cases = Object.keys(right).flatMap((name) =>
          unknownIds.map((id) => ({
            name: `${name} ${id.slice(0, 20)}`,
            request: {
              ...requestOf(operation, fixture),
              params: { ...right, [name]: id },
              ...(operation.body === undefined ? undefined : { body: bodyOf(operation, fixture) })
            },
            refused: unknownOf(operation, id, Object.keys(right))
          }))
        )
        yield* sendAll(operation, cases)
      })
    )
  }
})

layer(Subject, { timeout: "1 minute" })("A request", (it) => {
  const changing = operations.filter(({ method }) => method !== "GET")
  /** Bytes that operations take beyond the limit of all others. */
  const bytesMax: { readonly [id: string]: number } = { createLicenseBatch: 4_194_304 }
  for (const operation of changing) {
    it.effect(`of ${operation.id} is refused for its size, its type, or an invalid Idempotency-Key`, () =>
      Effect.gen(function* () {
        const fixture = yield* Shared
        const request = requestOf(operation, fixture)
        const body = operation.body === undefined ? {} : { body: bodyOf(operation, fixture) }
        const refuse = (name: string, more: Request, status: number, code: string): Case => ({
          name,
          request: { ...request, ...body, ...more, headers: { ...request.headers, ...more.headers } },
          refused: { status, code }
        })
        const large = `{"a":"${"x".repeat(bytesMax[operation.id] ?? 262_144)}"}`
        const cases = [refuse("too large", { body: large }, 413, "PAYLOAD_TOO_LARGE")]
        const typed = [
          refuse("another type", { headers: { "content-type": "text/plain" } }, 415, "UNSUPPORTED_MEDIA_TYPE"),
          refuse("another encoding", { headers: { "content-encoding": "gzip" } }, 415, "UNSUPPORTED_MEDIA_TYPE")
        ]
        const long = refuse("a long key", { headers: { "idempotency-key": "k".repeat(256) } }, 400, "BAD_REQUEST")
        const keyless = refuse("no key", { headers: { "idempotency-key": "" } }, 400, "IDEMPOTENCY_KEY_REQUIRED")
        yield* sendAll(operation, [
          ...cases,
          ...(operation.takesKey ? [long] : []),
          ...(operation.body === undefined ? [] : typed),
          ...(operation.keyRequired ? [keyless] : [])
        ])
      })
    )
  }
})
