/**
 * Random requests and their checks: what the document allows must never make the service fail; everything else must be refused
 * with the code in the contract and change nothing.
 *
 * FUZZ_SEED sets the random bodies and queries.
 */
import { assert, layer } from "@effect/vitest"
import { Cause, Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import fc from "fast-check"
import { assertRefused } from "../../support/http/Http.ts"
import { bodiesNear, queryValues } from "./Arbitraries.ts"
import { contentOf } from "./Content.ts"
import { Conversation, type Request, textOf } from "./Conversation.ts"
import { bodyOf, type Fixture, Fixtures, layerContract, queryOf, requestOf } from "./Fixtures.ts"
import { bodyFaults, isDateTime } from "./Oracle.ts"
import { type Operation, operations, type QueryParameter, resolved } from "./Surface.ts"

const seed = Number(process.env["FUZZ_SEED"] ?? 20_300_131)
/** A hundred runs take about a second for each operation on a slow machine. */
const timeoutOf = (runs: number) => 20_000 + runs * 100

/** The resources that all requests of this file refer to. */
export class Shared extends Context.Service<Shared, Fixture>()("licensing/test/contract/Shared") {
  static readonly layer = Layer.effect(
    Shared,
    Effect.flatMap(Fixtures, ({ make }) => make)
  )
}

export const Subject = Layer.provideMerge(Shared.layer, layerContract)

/** What each database held after its last request, if that was refused. */
const unchanged = new WeakMap<SqlClient.SqlClient, Effect.Success<ReturnType<typeof contentOf>>>()

/** Runs an effect and checks that it changes nothing. */
const leavingNothing = Effect.fnUntraced(function* <A, E, R>(effect: Effect.Effect<A, E, R>) {
  const sql = yield* SqlClient.SqlClient
  const before = unchanged.get(sql) ?? (yield* contentOf(sql))
  unchanged.delete(sql)
  yield* effect
  const after = yield* contentOf(sql)
  assert.deepStrictEqual(after, before, "refused requests have left something behind")
  unchanged.set(sql, after)
})

export interface Case {
  readonly name: string
  readonly request: Request
  /** The expected refusal; undefined if the document allows the request: then any documented answer is right. */
  readonly refused?: { readonly status: number; readonly code: string; readonly paths?: ReadonlyArray<string> }
}

/** Sends requests and reports all wrong answers together. */
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
        // A detail may point deeper into a list or metadata than the oracle.
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

/** Sends the requests that must be refused and checks that they change nothing, then the others. */
export const sendAll = Effect.fnUntraced(function* (operation: Operation, cases: ReadonlyArray<Case>) {
  yield* leavingNothing(
    send(
      operation,
      cases.filter(({ refused }) => refused !== undefined)
    )
  )
  const allowed = cases.filter(({ refused }) => refused === undefined)
  if (allowed.length > 0) unchanged.delete(yield* SqlClient.SqlClient)
  yield* send(operation, allowed)
})

export const bodyCase = (operation: Operation, fixture: Fixture, name: string, body: unknown): Case => {
  const text = textOf(body)
  const faults = bodyFaults(operation.body!, text)
  const request = { ...requestOf(operation, fixture), body: text }
  const code = faults[0]?.code
  if (code === undefined) return { name, request }
  const paths = faults.map(({ path }) => path)
  return { name, request, refused: { status: code === "INVALID_JSON" ? 400 : 422, code, paths } }
}

/** With several faults the first is unknown: the document describes some formats in words only. */
const anywhere = ({ refused, ...rest }: Case): Case =>
  refused === undefined ? rest : { ...rest, refused: { ...refused, paths: [""] } }

export const withBody = operations.filter(({ body }) => body !== undefined)

/** Random bodies for every operation, this many for each. */
export const fuzzBodies = (runs: number) =>
  layer(Subject, { timeout: "1 minute" })("A random body", (it) => {
    for (const operation of withBody) {
      it.effect(
        `of ${operation.id} with random values is accepted or refused as documented`,
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
        timeoutOf(runs)
      )
    }
  })

/** Integers in a query by their format; more digits are out of range. */
const wholeNumbers: { readonly [format: string]: RegExp } = { int32: /^\d{1,9}$/, int64: /^\d{1,16}$/ }

/** Whether a parameter accepts this text by the document; undefined if the document does not say. */
const accepts = ({ name, schema: given }: QueryParameter, text: string): boolean | undefined => {
  const schema = resolved(given)
  if (text.includes("\u0000")) return false
  if (Array.isArray(schema["enum"])) return schema["enum"].includes(text)
  // Larger limits are clamped.
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
  // A plus sign is a space in a query.
  const accepted = accepts(parameter, decodeURIComponent(encoded.replaceAll("+", " ")))
  return {
    name: query.slice(0, 200),
    request,
    ...(accepted === false && { refused: invalid(parameter.name) })
  }
}

const queryTexts = ["", "0", "-1", "1.5", "abc", "1e2", "%00", "a%00b", "ACTIVE", "2030-02-30T00:00:00Z", "2030-01-01"]
const unreadable = ["a=%", "a=%ZZ", "a=%FF", "a=%ED%A0%80"]
/** Separators without a parameter. unknown.test.ts sends unknown parameters. */
const ignored = ["", "&&"]
const wrongCursors = ["abc", "", "MTIz", "MC4", "====", "x".repeat(2_000)]

/** Wrong and random queries for every operation, this many random ones for each parameter. */
export const fuzzQueries = (runs: number) =>
  layer(Subject, { timeout: "1 minute" })("A query", (it) => {
    for (const operation of operations.filter(({ query }) => query.length > 0)) {
      it.effect(
        `of ${operation.id} is accepted or refused as documented`,
        () =>
          Effect.gen(function* () {
            const fixture = yield* Shared
            const random = fc.sample(queryValues, { seed, numRuns: runs })
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
        timeoutOf(operation.query.length * (queryTexts.length + runs))
      )
    }
  })
