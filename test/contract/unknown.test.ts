/** What no operation knows is refused by its name: a misspelt filter must not list everything, a misspelt field not be lost. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { assertRefused } from "../support/http/Http.ts"
import { Conversation } from "./cases/Conversation.ts"
import { bodyOf, Fixtures, layerContract, requestOf } from "./cases/Fixtures.ts"
import { operations } from "./cases/Surface.ts"

/** Queries with the name that is refused. */
const unknown: ReadonlyArray<readonly [query: string, name: string]> = [
  ["colour=red", "colour"],
  ["colour", "colour"],
  ["&&=", ""],
  ["__proto__=1&constructor=2", "__proto__"],
  ["LIMIT=1", "LIMIT"]
]

layer(layerContract, { timeout: "1 minute" })("An unknown query parameter", (it) => {
  it.effect("of any GET is refused", () =>
    Effect.gen(function* () {
      const { ask } = yield* Conversation
      const fixture = yield* (yield* Fixtures).make
      for (const operation of operations.filter(({ method }) => method === "GET")) {
        const right = requestOf(operation, fixture)
        for (const [text, name] of unknown) {
          const answer = yield* ask(operation, { ...right, query: `${right.query}&${text}` })
          assertRefused(answer, 400, "INVALID_QUERY", name)
        }
      }
    })
  )
})

/** Bodies for an operation without fields, with the detail of the refusal. */
const bodies: ReadonlyArray<readonly [body: string, detail: string | undefined]> = [
  ['{"reason":"late payment"}', "reason"],
  ['{"constructor":1}', "constructor"],
  ['{"__proto__":1}', "__proto__"],
  ["{", undefined],
  ["[]", undefined],
  ["null", undefined],
  ["late payment", undefined]
]

layer(layerContract, { timeout: "1 minute" })("A body for an operation without fields", (it) => {
  const fieldless = operations.filter(({ body, method }) => body === undefined && method === "POST")

  it.effect("is refused by the name of its field", () =>
    Effect.gen(function* () {
      const { ask } = yield* Conversation
      assert.isAtLeast(fieldless.length, 7)
      const fixture = yield* (yield* Fixtures).make
      for (const operation of fieldless) {
        const right = requestOf(operation, fixture)
        for (const [body, detail] of bodies) {
          for (const type of ["application/json", "text/plain"]) {
            const answer = yield* ask(operation, { ...right, body, headers: { "content-type": type } })
            assertRefused(answer, 400, "INVALID_JSON", detail)
          }
        }
        // Before the id: a wrong body is refused even where the id is unknown.
        assertRefused(yield* ask(operation, { body: { reason: 1 } }), 400, "INVALID_JSON", "reason")
      }
    })
  )

  it.effect("is taken if it is empty", () =>
    Effect.gen(function* () {
      const { data } = yield* Conversation
      const { ids } = yield* (yield* Fixtures).make
      const params = { id: ids["licenses"]! }
      for (const body of ["{}", " {} ", "", undefined]) {
        yield* data("suspendLicense", { params, body })
        yield* data("reinstateLicense", {
          params,
          body,
          headers: { "content-type": "application/x-www-form-urlencoded" }
        })
      }
    })
  )
})

layer(layerContract, { timeout: "1 minute" })("An unknown field", (it) => {
  it.effect("of any body is refused, with every other wrong field in the details", () =>
    Effect.gen(function* () {
      const { ask } = yield* Conversation
      const fixture = yield* (yield* Fixtures).make
      const taking = operations.filter(({ body }) => body !== undefined)
      assert.isAtLeast(taking.length, 30)
      for (const operation of taking) {
        const valid = bodyOf(operation, fixture) as object
        for (const name of ["colour", "constructor", "a.b"]) {
          const answer = yield* ask(operation, { ...requestOf(operation, fixture), body: { ...valid, [name]: 1 } })
          assertRefused(answer, 400, "INVALID_JSON", name)
        }
        const all = yield* ask(operation, { ...requestOf(operation, fixture), body: { ...valid, colour: 1, size: {} } })
        assert.includeMembers(
          all.error.details!.map(({ path }) => path),
          ["colour", "size"]
        )
      }
    })
  )

  it.effect("is not needed to refuse an empty object: it is taken, or what is missing is named", () =>
    Effect.gen(function* () {
      const { ask } = yield* Conversation
      const fixture = yield* (yield* Fixtures).make
      for (const operation of operations.filter(({ body }) => body !== undefined)) {
        const answer = yield* ask(operation, { ...requestOf(operation, fixture), body: {} })
        if (answer.status >= 400) assertRefused(answer, 422, "VALIDATION_ERROR")
      }
    })
  )
})
