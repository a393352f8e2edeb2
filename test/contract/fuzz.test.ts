/**
 * Requests that are wrong in every way that the published document lets one think of. Each must be refused with the code that
 * the contract has for it, and leave nothing behind; what the document allows must never fail the service.
 *
 * FUZZ_RUNS sets how many random bodies and queries each operation gets (50 unless given), FUZZ_SEED which ones.
 */
import { assert, layer } from "@effect/vitest"
import { Cause, Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import fc from "fast-check"
import { assertRefused } from "../support/Envelopes.ts"
import { bodiesNear, queryValues } from "./Arbitraries.ts"
import { contentOf } from "./Content.ts"
import { Conversation, type Request, textOf } from "./Conversation.ts"
import { bodyOf, type Fixture, Fixtures, layerContract, paramsOf, queryOf, requestOf } from "./Fixtures.ts"
import { memberMutations, wholeBodies } from "./Mutations.ts"
import { bodyFaults, isDateTime } from "./Oracle.ts"
import { type Operation, operations, type QueryParameter, resolved } from "./Surface.ts"

const runs = Number(process.env["FUZZ_RUNS"] ?? 50)
const seed = Number(process.env["FUZZ_SEED"] ?? 20_300_131)
/** A hundred runs take a second or so for each operation on a slow machine. */
const timeout = 20_000 + runs * 100

/** What every request of this file names. */
class Shared extends Context.Service<Shared, Fixture>()("licensing/test/contract/Shared") {
  static readonly layer = Layer.effect(
    Shared,
    Effect.flatMap(Fixtures, ({ make }) => make)
  )
}

const Subject = Layer.provideMerge(Shared.layer, layerContract)

/** Runs what must change nothing, and sees that it did not. */
const leavingNothing = Effect.fnUntraced(function* <A, E, R>(effect: Effect.Effect<A, E, R>) {
  const sql = yield* SqlClient.SqlClient
  const before = yield* contentOf(sql)
  yield* effect
  assert.deepStrictEqual(yield* contentOf(sql), before, "refused requests have left something behind")
})

interface Case {
  readonly name: string
  readonly request: Request
  /** How it must be refused; undefined: the document allows it, so any answer that it lists will do. */
  readonly refused?: { readonly status: number; readonly code: string; readonly paths?: ReadonlyArray<string> }
}

/** Sends requests and tells at once all that are answered otherwise than they should be. */
const send = Effect.fnUntraced(function* (operation: Operation, cases: ReadonlyArray<Case>) {
  const { ask } = yield* Conversation
  const complaints: Array<string> = []
  yield* Effect.forEach(
    cases,
    ({ name, refused, request }) =>
      Effect.map(ask(operation, request), (answer) => {
        if (refused === undefined) return
        const { code, paths, status } = refused
        assertRefused(answer, status, code)
        const { detail = "" } = answer.error
        // A detail may point deeper than the oracle does, into a list or metadata.
        if (paths !== undefined)
          assert.isTrue(
            paths.some((path) => detail.startsWith(path)),
            `detail ${detail}`
          )
      }).pipe(
        Effect.catchCause((cause) =>
          Effect.sync(() => complaints.push(`${name}: ${String(Cause.squash(cause)).slice(0, 400)}`))
        )
      ),
    { concurrency: 6, discard: true }
  )
  assert.deepStrictEqual(complaints, [], operation.id)
})

/** Sends what must be refused and sees that nothing is left of it, then the rest. */
const sendAll = Effect.fnUntraced(function* (operation: Operation, cases: ReadonlyArray<Case>) {
  yield* leavingNothing(
    send(
      operation,
      cases.filter(({ refused }) => refused !== undefined)
    )
  )
  yield* send(
    operation,
    cases.filter(({ refused }) => refused === undefined)
  )
})

const bodyCase = (operation: Operation, fixture: Fixture, name: string, body: unknown): Case => {
  const text = textOf(body)
  const faults = bodyFaults(operation.body!, text)
  const request = { ...requestOf(operation, fixture), body: text }
  const code = faults[0]?.code
  if (code === undefined) return { name, request }
  const paths = faults.map(({ path }) => path)
  return { name, request, refused: { status: code === "INVALID_JSON" ? 400 : 422, code, paths } }
}

/** Of several faults the document may not know the first: some formats are told in words only. */
const anywhere = ({ refused, ...rest }: Case): Case =>
  refused === undefined ? rest : { ...rest, refused: { ...refused, paths: [""] } }

const withBody = operations.filter(({ body }) => body !== undefined)

layer(Subject, { timeout: "1 minute" })("A body", (it) => {
  for (const operation of withBody) {
    it.effect(`of ${operation.id} is refused where one place in it is wrong`, () =>
      Effect.gen(function* () {
        const fixture = yield* Shared
        const right = bodyOf(operation, fixture) as object
        const cases = memberMutations(operation.body!, right).map(({ name, body }) =>
          bodyCase(operation, fixture, name, body)
        )
        const whole = wholeBodies.map(({ name, body }) => ({
          name,
          request: { ...requestOf(operation, fixture), body },
          refused: { status: 400, code: "INVALID_JSON" }
        }))
        yield* sendAll(operation, [...cases.filter(({ refused }) => refused !== undefined), ...whole])
      })
    )
  }

  for (const operation of withBody) {
    it.effect(
      `of ${operation.id} is taken or refused as the document says, whatever it holds`,
      () =>
        Effect.gen(function* () {
          const fixture = yield* Shared
          const near = bodiesNear(operation.body!, bodyOf(operation, fixture) as object)
          const bodies = fc.sample(near, { seed, numRuns: runs })
          yield* sendAll(
            operation,
            bodies.map((body) => bodyCase(operation, fixture, textOf(body).slice(0, 400), body)).map(anywhere)
          )
        }),
      timeout
    )
  }
})

/** How integers are written in a query, by their format: more digits make no number that the service could mean. */
const wholeNumbers: { readonly [format: string]: RegExp } = { int32: /^\d{1,9}$/, int64: /^\d{1,16}$/ }

/** Whether a parameter takes this text, as the document tells; undefined where the document leaves it to the service. */
const accepts = ({ name, schema: given }: QueryParameter, text: string): boolean | undefined => {
  const schema = resolved(given)
  if (text.includes("\u0000")) return false
  if (Array.isArray(schema["enum"])) return schema["enum"].includes(text)
  // Larger limits are clamped, however large.
  if (name === "limit") return /^0*[1-9]\d*$/.test(text)
  if (schema["type"] === "integer") {
    const isWhole = wholeNumbers[String(schema["format"])]!.test(text) && Number.isSafeInteger(Number(text))
    return isWhole && Number(text) >= Number(schema["minimum"])
  }
  if (schema["format"] === "date-time") return isDateTime(text)
  return name === "cursor" || schema["pattern"] !== undefined || schema["maxLength"] !== undefined ? undefined : true
}

const invalid = (name: string) => ({ status: 400, code: "INVALID_QUERY", paths: [name] })

const queryCase = (operation: Operation, fixture: Fixture, parameter: QueryParameter, encoded: string): Case => {
  const { [parameter.name]: _, ...others } = queryOf(operation, fixture)
  const query = `?${new URLSearchParams(others)}&${parameter.name}=${encoded}`
  const request = { ...requestOf(operation, fixture), query }
  // A plus sign is a blank in a query.
  const accepted = accepts(parameter, decodeURIComponent(encoded.replaceAll("+", " ")))
  return {
    name: query.slice(0, 200),
    request,
    ...(accepted === false && { refused: invalid(parameter.name) })
  }
}

const queryTexts = ["", "0", "-1", "1.5", "abc", "1e2", "%00", "a%00b", "ACTIVE", "2030-02-30T00:00:00Z", "2030-01-01"]
const unreadable = ["a=%", "a=%ZZ", "a=%FF", "a=%ED%A0%80"]
/** What no operation knows, and what it knows said twice: no failure of the service, whatever it makes of it. */
const ignored = ["colour=red", "", "&&=", "__proto__=1&constructor=2", "limit=200&limit=300&limit=1"]
const wrongCursors = ["abc", "", "MTIz", "MC4", "====", "x".repeat(2_000)]

layer(Subject, { timeout: "1 minute" })("A query", (it) => {
  for (const operation of operations.filter(({ query }) => query.length > 0)) {
    it.effect(
      `of ${operation.id} is taken or refused as the document says`,
      () =>
        Effect.gen(function* () {
          const fixture = yield* Shared
          const random = fc.sample(queryValues, { seed, numRuns: Math.ceil(runs / 5) })
          const cases = operation.query.flatMap((parameter) =>
            [...queryTexts, ...random].map((text) => queryCase(operation, fixture, parameter, text))
          )
          const right = requestOf(operation, fixture)
          const adding = (more: string) => ({ name: more, request: { ...right, query: `${right.query}&${more}` } })
          const cursors = operation.query.some(({ name }) => name === "cursor") ? wrongCursors : []
          const missing = operation.query.filter(({ required }) => required)
          yield* sendAll(operation, [
            ...cases,
            ...cursors.map((text) => ({ ...adding(`cursor=${text}`), refused: invalid("cursor") })),
            ...missing.map(({ name }) => ({ name, request: { ...right, query: "" }, refused: invalid(name) })),
            ...unreadable.map((text) => ({ ...adding(text), refused: { status: 400, code: "BAD_REQUEST" } })),
            ...ignored.map(adding)
          ])
        }),
      timeout
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

layer(Subject, { timeout: "1 minute" })("A path", (it) => {
  for (const operation of operations.filter(({ params }) => params.length > 0)) {
    it.effect(`of ${operation.id} that names nothing is NOT_FOUND`, () =>
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
            refused: { status: 404, code: "NOT_FOUND", paths: Object.keys(right) }
          }))
        )
        yield* sendAll(operation, cases)
      })
    )
  }
})

layer(Subject, { timeout: "1 minute" })("A request", (it) => {
  const changing = operations.filter(({ method, credential }) => method !== "GET" && credential !== "none")
  for (const operation of changing) {
    it.effect(`of ${operation.id} is refused for its size, its type, or an Idempotency-Key that is none`, () =>
      Effect.gen(function* () {
        const fixture = yield* Shared
        const request = requestOf(operation, fixture)
        const body = operation.body === undefined ? {} : { body: bodyOf(operation, fixture) }
        const refuse = (name: string, more: Request, status: number, code: string): Case => ({
          name,
          request: { ...request, ...body, ...more, headers: { ...request.headers, ...more.headers } },
          refused: { status, code }
        })
        const cases = [refuse("too large", { body: `{"a":"${"x".repeat(262_144)}"}` }, 413, "PAYLOAD_TOO_LARGE")]
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
