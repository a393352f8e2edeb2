/**
 * Changes made at one instance of the service apply at the others. `KnownKeys.test.ts` proves how soon, by a test
 * clock.
 */
import { layer } from "@effect/vitest"
import { Effect } from "effect"
import type { ApiKeyCreate, ApiKeyUpdate } from "../../src/vendor/apiKeys/ApiKey.ts"
import { Database } from "../support/database/Database.ts"
import { assertAnswered, assertRefused } from "../support/http/Http.ts"
import { issue } from "../support/http/IssuedLicenses.ts"
import { startServer, TestServer } from "../support/http/TestServer.ts"
import { poll } from "../support/rules/Poll.ts"

/** Two instances; a key created on the first, and a request with it to the second. */
const twoNodes = Effect.fnUntraced(function* (input: Partial<typeof ApiKeyCreate.Type> = {}) {
  const [first, second] = [yield* startServer(), yield* startServer()]
  const { api_key, token } = yield* first.client["api-keys"].create({
    payload: { name: "tested", scopes: ["product:read"], ...input }
  })
  const headers = { authorization: `Bearer ${token}` }
  const request = second.send({ path: "/api/v1/products", headers })
  assertAnswered(yield* request, 200)
  return { first, second, request, params: { id: api_key.id } }
})

/** Sends requests until one is refused, and checks the refusal. */
const untilRefused = Effect.fnUntraced(function* (
  { request }: Effect.Success<ReturnType<typeof twoNodes>>,
  status: number,
  code: string
) {
  const answer = yield* poll(request, (answer) => answer.status !== 200)
  assertRefused(answer, status, code)
})

layer(Database.layer, { timeout: 60_000 })("On another instance", (it) => {
  it.effect("a revoked token is invalid", () =>
    Effect.gen(function* () {
      const nodes = yield* twoNodes()
      yield* nodes.first.client["api-keys"].delete({ params: nodes.params })
      yield* untilRefused(nodes, 401, "TOKEN_INVALID")
    }).pipe(Effect.scoped)
  )

  const changes: ReadonlyArray<
    readonly [what: string, payload: typeof ApiKeyUpdate.Type, status: number, code: string]
  > = [
    ["a key that was switched off is inactive", { is_active: false }, 401, "TOKEN_INACTIVE"],
    ["a key whose scopes were reduced lacks the scope", { scopes: ["event:read"] }, 403, "TOKEN_SCOPE_DENIED"],
    ["a key for other networks is blocked", { allowed_cidrs: ["203.0.113.0/24"] }, 401, "TOKEN_ADDRESS_BLOCKED"],
    ["a key whose expiry was moved to the past has expired", { expires_at: 0 }, 401, "TOKEN_EXPIRED"]
  ]
  for (const [what, payload, status, code] of changes) {
    it.effect(what, () =>
      Effect.gen(function* () {
        const nodes = yield* twoNodes()
        yield* nodes.first.client["api-keys"].update({ params: nodes.params, payload })
        yield* untilRefused(nodes, status, code)
      }).pipe(Effect.scoped)
    )
  }

  it.effect("an enabled key is accepted again", () =>
    Effect.gen(function* () {
      const { request, first, params } = yield* twoNodes()
      yield* first.client["api-keys"].update({ params, payload: { is_active: false } })
      yield* poll(request, ({ status }) => status === 401)
      yield* first.client["api-keys"].update({ params, payload: { is_active: true } })
      assertAnswered(yield* poll(request, ({ status }) => status === 200), 200)
    }).pipe(Effect.scoped)
  )

  it.effect("each instance evaluates expiry by its own clock", () =>
    Effect.gen(function* () {
      const { first } = yield* twoNodes()
      const soon = Date.now() + 3_600_000
      const { request, second } = yield* twoNodes({ expires_at: soon })
      yield* second.advance(3_700)
      assertRefused(yield* request, 401, "TOKEN_EXPIRED")
      assertAnswered(yield* first.send({ path: "/health" }), 200)
    }).pipe(Effect.scoped)
  )
})

layer(Database.layer, { timeout: 60_000 })("On another instance immediately", (it) => {
  it.effect("a suspended license is refused, and a rotated key is invalid", () =>
    Effect.gen(function* () {
      const [first, second] = [yield* startServer(), yield* startServer()]
      const license = yield* issue().pipe(Effect.provideService(TestServer, first))
      const check = (authorization: string) =>
        second.send({
          method: "POST",
          path: "/api/v1/license/activate",
          headers: { authorization },
          body: { fingerprint: "f" }
        })
      const old = `License ${license.license_key}`
      assertAnswered(yield* check(old), 200)
      yield* license.post("suspend")
      assertRefused(yield* check(old), 403, "LICENSE_SUSPENDED")
      yield* license.post("reinstate")
      assertAnswered(yield* check(old), 200)
      const rotated = yield* license.post("rotate-key")
      const { license_key } = assertAnswered(rotated, 200) as { readonly license_key: string }
      assertRefused(yield* check(old), 401, "LICENSE_KEY_INVALID")
      assertAnswered(yield* check(`License ${license_key}`), 200)
    }).pipe(Effect.scoped)
  )
})
