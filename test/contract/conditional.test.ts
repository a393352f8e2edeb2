/** Changes with If-Match (RFC 9110, section 13.1.1): every operation that takes it changes only the state that the caller has read. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { ifMatchMax } from "../../src/access/preconditions/Conditional.ts"
import { openApiDocument } from "../../src/edge/documents/Document.ts"
import { Conversation, operationOf } from "./cases/Conversation.ts"
import { bodyOf, type Fixture, Fixtures, layerContract, paramsOf } from "./cases/Fixtures.ts"
import { type Operation, operations, resolved } from "./cases/Surface.ts"

const conditional = operations.filter(({ takesIfMatch }) => takesIfMatch)
const concurrent = 8
const noTags = ["", "abc", `"abc`, "*, *", '"a b"']

interface Components {
  readonly parameters: {
    readonly IfMatch: { readonly schema: { readonly maxLength: number; readonly pattern: string } }
  }
}

const readOf = ({ path }: Operation) => operations.find((other) => other.method === "GET" && other.path === path)!

let serial = 0

/** A body with another value than any before. */
const changeOf = ({ body }: Operation) => {
  const fields = resolved(body!)["properties"] as object
  const value = `value ${++serial}`
  const name = ["name", "customer_name"].find((name) => name in fields)
  return name === undefined ? { metadata: { note: value } } : { [name]: value }
}

const conversationOn = Effect.fnUntraced(function* (operation: Operation, fixture: Fixture) {
  const { ask } = yield* Conversation
  const params = paramsOf(operation, fixture)
  return {
    read: Effect.map(ask(readOf(operation), { params }), ({ headers }) => headers["etag"]!),
    change: (ifMatch: string, body: object = changeOf(operation)) =>
      ask(operation, { params, body, headers: { "if-match": ifMatch } })
  }
})

layer(layerContract, { timeout: "1 minute" })("With If-Match", (it) => {
  const walk = (
    title: string,
    test: (operation: Operation) => Effect.Effect<void, unknown, Conversation | Fixtures>
  ) => {
    it.effect(title, () => Effect.forEach(conditional, test, { discard: true }))
  }

  it("every PATCH can be conditional", () => {
    assert.deepStrictEqual(
      conditional.map(({ id }) => id),
      operations.filter(({ method }) => method === "PATCH").map(({ id }) => id)
    )
  })

  walk("a record that was read is changed, and one that was changed meanwhile is not", (operation) =>
    Effect.gen(function* () {
      const fixture = yield* (yield* Fixtures).make
      const { change, read } = yield* conversationOn(operation, fixture)
      const tag = yield* read
      assert.match(tag, /^"[\w-]{22}"$/)
      const changed = yield* change(tag)
      assert.strictEqual(changed.status, 200, changed.text)
      assert.notStrictEqual(changed.headers["etag"], tag)
      assert.strictEqual(changed.headers["etag"], yield* read)

      const refused = yield* change(tag)
      assert.strictEqual(refused.status, 409, operation.id)
      assert.strictEqual(refused.error.code, "CONFLICT")
      assert.strictEqual(refused.error.detail, "If-Match")
      assert.strictEqual(yield* read, changed.headers["etag"], "the refused change was made")
    })
  )

  it("the document has the pattern of tags", () => {
    const { parameters } = openApiDocument().components as unknown as Components
    const { maxLength, pattern } = parameters.IfMatch.schema
    assert.strictEqual(maxLength, ifMatchMax)
    const isTag = (text: string) => new RegExp(pattern).test(text)
    assert.isTrue(['"other", "tag"', "*", 'W/"tag"', '"other",W/"tag"', '""'].every(isTag))
    assert.deepStrictEqual(noTags.filter(isTag), [])
  })

  walk("a list of tags, * and a weak tag match, and other text is refused", (operation) =>
    Effect.gen(function* () {
      const { change, read } = yield* conversationOn(operation, yield* (yield* Fixtures).make)
      const statusOf = (ifMatch: string) => Effect.map(change(ifMatch), ({ status }) => status)
      assert.strictEqual(yield* statusOf(`"other", ${yield* read}`), 200)
      assert.strictEqual(yield* statusOf("*"), 200)
      // A proxy that compresses responses makes tags weak.
      assert.strictEqual(yield* statusOf(`W/${yield* read}`), 200)
      assert.strictEqual(yield* statusOf(`"other",W/${yield* read}`), 200)
      assert.strictEqual(yield* statusOf('W/"other"'), 409)
      assert.strictEqual(yield* statusOf('"a,*,b"'), 409)
      for (const text of [...noTags, `"${"x".repeat(ifMatchMax)}"`]) {
        assert.strictEqual(yield* statusOf(text), 400, text)
      }
    })
  )

  walk("of changes of one state at the same time, one is made", (operation) =>
    Effect.gen(function* () {
      const { change, read } = yield* conversationOn(operation, yield* (yield* Fixtures).make)
      const tag = yield* read
      const statuses = yield* Effect.forEach(
        Array.from({ length: concurrent }),
        () => Effect.map(change(tag), ({ status }) => status),
        { concurrency: "unbounded" }
      )
      const made = statuses.filter((status) => status === 200)
      assert.lengthOf(made, 1, `${operation.id}: ${statuses}`)
      assert.lengthOf(
        statuses.filter((status) => status === 409),
        concurrent - 1
      )
    })
  )

  it.effect("the use of a license does not refuse its edit", () =>
    Effect.gen(function* () {
      const fixture = yield* (yield* Fixtures).make
      const { data } = yield* Conversation
      const { change, read } = yield* conversationOn(operationOf("updateLicense"), fixture)
      const tag = yield* read
      yield* data("consumeLicense", {
        authorization: `License ${fixture.licenseKey}`,
        body: bodyOf(operationOf("consumeLicense"), fixture)
      })
      assert.strictEqual(yield* read, tag)
      assert.strictEqual((yield* change(tag)).status, 200)
    })
  )

  it.effect("an Idempotency-Key is for one state", () =>
    Effect.gen(function* () {
      const { ask } = yield* Conversation
      const fixture = yield* (yield* Fixtures).make
      const update = operationOf("updateProduct")
      const params = paramsOf(update, fixture)
      const { headers } = yield* ask(readOf(update), { params })
      const rename = (tag: string) =>
        ask(update, { params, body: { name: "Other" }, headers: { "if-match": tag, "idempotency-key": "one state" } })
      assert.strictEqual((yield* rename('"older"')).error.code, "CONFLICT")
      assert.strictEqual((yield* rename(headers["etag"]!)).error.code, "IDEMPOTENCY_KEY_REUSED")
    })
  )
})
