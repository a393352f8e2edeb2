/** The document is true: every operation lists its refusals, and answers its example as documented. */
import { assert, describe, it, layer } from "@effect/vitest"
import { Effect } from "effect"
import { Conversation, operationOf } from "./cases/Conversation.ts"
import { bodyOf, type Fixture, Fixtures, layerContract, requestOf } from "./cases/Fixtures.ts"
import { type Operation, operations } from "./cases/Surface.ts"

/** Codes that every operation of this kind can answer with. */
const codesOf = ({
  body,
  credential,
  keyRequired,
  method,
  params,
  query,
  scopes
}: Operation): ReadonlyArray<string> => [
  "INTERNAL_ERROR",
  "NOT_READY",
  "BAD_REQUEST",
  ...(credential === "none" ? [] : ["RATE_LIMITED"]),
  ...(credential === "token"
    ? [
        "TOKEN_MISSING",
        "TOKEN_MALFORMED",
        "TOKEN_INVALID",
        "TOKEN_EXPIRED",
        "TOKEN_INACTIVE",
        "TOKEN_ADDRESS_BLOCKED",
        ...(scopes.length === 0 ? [] : ["TOKEN_SCOPE_DENIED"])
      ]
    : []),
  ...(credential === "license key" ? ["LICENSE_KEY_MISSING", "LICENSE_KEY_INVALID"] : []),
  ...(params.length > 0 ? ["NOT_FOUND"] : []),
  ...(query.length > 0 || method === "GET" ? ["INVALID_QUERY"] : []),
  ...(method === "GET" || method === "DELETE" ? [] : ["INVALID_JSON"]),
  ...(body === undefined ? [] : ["VALIDATION_ERROR", "UNSUPPORTED_MEDIA_TYPE"]),
  ...(method === "GET" ? [] : ["PAYLOAD_TOO_LARGE"]),
  ...(method === "GET" || credential !== "token" ? [] : ["IDEMPOTENCY_IN_PROGRESS", "IDEMPOTENCY_KEY_REUSED"]),
  ...(keyRequired ? ["IDEMPOTENCY_KEY_REQUIRED"] : [])
]

describe("The document", () => {
  for (const operation of operations.filter(({ path }) => path.startsWith("/api/v1/"))) {
    it(`lists for ${operation.id} every refusal of its kind of operation`, () => {
      const listed = [...operation.answers.values()].flatMap(({ codes }) => codes)
      assert.includeMembers(listed, codesOf(operation) as Array<string>)
    })
  }
})

/** Names of generated clients' methods. */
const named: { readonly [route: string]: string } = {
  "POST /api/v1/license/activate": "activateLicense",
  "POST /api/v1/license/validate": "validateLicense",
  "POST /api/v1/license/check": "checkLicense",
  "POST /api/v1/license/consume": "consumeLicense",
  "POST /api/v1/license/deactivate": "deactivateLicense",
  "POST /api/v1/license/offline": "issueOfflineLicense",
  "POST /api/v1/license/floating/checkout": "checkoutFloatingLicense",
  "POST /api/v1/license/floating/heartbeat": "heartbeatFloatingLicense",
  "POST /api/v1/license/floating/checkin": "checkinFloatingLicense",
  "POST /api/v1/reports/exports": "createReportExport"
}

describe("Operations", () => {
  it("have unique names, and those of the contract", () => {
    assert.strictEqual(new Set(operations.map(({ id }) => id)).size, operations.length)
    const names = new Map(operations.map(({ id, method, path }) => [`${method} ${path}`, id]))
    for (const [route, name] of Object.entries(named)) assert.strictEqual(names.get(route), name, route)
  })
})

/** Requests that must precede the example. */
const before: { readonly [operationId: string]: string } = {
  unblacklistDevice: "blacklistDevice",
  removePolicyFeature: "setPolicyFeature"
}

/** A request that must succeed, on new resources. */
const rightRequest = Effect.fnUntraced(function* (operation: Operation) {
  const { data } = yield* Conversation
  const { another, make } = yield* Fixtures
  let fixture: Fixture = yield* make
  const [param, second] = operation.params
  // A resource that others depend on cannot be deleted.
  if (operation.method === "DELETE" && param !== undefined && second === undefined) {
    fixture = { ...fixture, ids: { ...fixture.ids, [param.kind]: yield* another(param.kind, fixture) } }
  }
  const first = before[operation.id]
  if (first !== undefined) {
    const body = bodyOf(operationOf(first), fixture)
    yield* data(first, { ...requestOf(operationOf(first), fixture), ...(body === undefined ? undefined : { body }) })
  }
  const request = requestOf(operation, fixture)
  return operation.body === undefined ? request : { ...request, body: bodyOf(operation, fixture) }
})

const successOf = ({ answers }: Operation) => [...answers.keys()].filter((status) => status < 300)

layer(layerContract, { timeout: "1 minute" })("A valid request", (it) => {
  const reading = operations.filter(({ method }) => method === "GET")
  it.effect("that reads is answered as documented", () =>
    Effect.gen(function* () {
      const { ask } = yield* Conversation
      const fixture = yield* (yield* Fixtures).make
      for (const operation of reading) {
        const answer = yield* ask(operation, requestOf(operation, fixture))
        assert.include(successOf(operation), answer.status, `${operation.id}: ${answer.text}`)
      }
    })
  )

  for (const operation of operations.filter(({ method }) => method !== "GET")) {
    it.effect(`of ${operation.id} is answered as documented`, () =>
      Effect.gen(function* () {
        const { ask } = yield* Conversation
        const answer = yield* ask(operation, yield* rightRequest(operation))
        assert.include(successOf(operation), answer.status, `${operation.id}: ${answer.text}`)
      })
    )
  }
})
