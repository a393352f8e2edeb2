/** Every changing management operation, repeated with the same Idempotency-Key, is executed once. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { TestServer } from "../support/http/TestServer.ts"
import { Conversation } from "./cases/Conversation.ts"
import { allowingUnrouted, bodyOf, type Fixture, Fixtures, paramsOf, requestOf } from "./cases/Fixtures.ts"
import { type Operation, operations } from "./cases/Surface.ts"

const Subject = Fixtures.layer.pipe(
  Layer.provideMerge(Conversation.layer),
  Layer.provideMerge(TestServer.layerWith(allowingUnrouted))
)

const changing = operations.filter(({ credential, method }) => method !== "GET" && credential === "token")

/** Requests that an operation needs first, beyond the fixtures. */
const before: { readonly [id: string]: ReadonlyArray<string> } = {
  reinstateLicense: ["suspendLicense"],
  unblacklistDevice: ["blacklistDevice"],
  removePolicyFeature: ["setPolicyFeature"]
}

layer(Subject, { timeout: "3 minutes" })("Every changing management operation", (it) => {
  /** The number of events and of counted usage. */
  const recorded = Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const [row] = yield* sql`SELECT last, ledger_last FROM event_sequence`
    return row
  })

  /** A deleted resource must have no dependents; an assignment is deleted by its feature. */
  const idsFor = Effect.fnUntraced(function* (operation: Operation, fixture: Fixture) {
    const last = operation.params.at(-1)
    if (operation.method !== "DELETE" || last === undefined || operation.path.includes("/licenses/")) return fixture
    const id = yield* (yield* Fixtures).another(last.kind, fixture)
    return { ...fixture, ids: { ...fixture.ids, [last.kind]: id } }
  })

  it.effect("accepts a key, answers a repetition with the same bytes and executes it once", () =>
    Effect.gen(function* () {
      const { ask, data } = yield* Conversation
      const { make } = yield* Fixtures
      for (const operation of changing) {
        const fixture = yield* idsFor(operation, yield* make)
        for (const id of before[operation.id] ?? []) {
          const first = operations.find((candidate) => candidate.id === id)!
          const body = bodyOf(first, fixture)
          yield* data(id, { ...requestOf(first, fixture), ...(body === undefined ? undefined : { body }) })
        }
        const body = bodyOf(operation, fixture)
        const request = {
          ...requestOf(operation, fixture),
          params: paramsOf(operation, fixture),
          ...(body === undefined ? undefined : { body }),
          headers: { "idempotency-key": `once-${operation.id}` }
        }
        const first = yield* ask(operation, request)
        assert.isBelow(first.status, 300, `${operation.id} ${first.text}`)
        assert.notProperty(first.headers, "idempotency-replayed", operation.id)
        const after = yield* recorded
        const again = yield* ask(operation, request)
        assert.strictEqual(again.headers["idempotency-replayed"], "true", operation.id)
        assert.deepStrictEqual([again.status, again.text], [first.status, first.text], operation.id)
        assert.deepStrictEqual(yield* recorded, after, operation.id)
        const other = yield* ask(operation, { ...request, body: '{"another":"body"}' })
        assert.strictEqual(other.error.code, "IDEMPOTENCY_KEY_REUSED", operation.id)
      }
    })
  )
})
