/** Authorization: every operation with every kind of credential. */
import { assert, describe, it, layer } from "@effect/vitest"
import { Effect } from "effect"
import { ManagementScope } from "../../src/access/Scope.ts"
import * as Tokens from "../../src/access/Tokens.ts"
import * as LicenseKey from "../../src/licensing/model/LicenseKey.ts"
import type { Answer } from "../support/http/Http.ts"
import { assertAnswered, assertRefused } from "../support/http/Http.ts"
import { TestServer } from "../support/http/TestServer.ts"
import { Conversation } from "./cases/Conversation.ts"
import { bodyOf, Fixtures, layerContract, requestOf } from "./cases/Fixtures.ts"
import { routes } from "./cases/Routes.ts"
import { type Operation, operations } from "./cases/Surface.ts"

const all = ManagementScope.literals
const routeOf = ({ method, path }: Operation) => `${method} ${path}`
const management = operations.filter(({ credential }) => credential === "token")
const runtime = operations.filter(({ credential }) => credential === "license key")
const open = operations.filter(({ credential }) => credential === "none")

describe("The table of routes", () => {
  for (const operation of operations) {
    it(`lists ${operation.id}, which enforces and publishes the same scopes`, () => {
      const expected = routes[routeOf(operation)]
      assert.isDefined(expected, `say in Routes.ts who may call ${routeOf(operation)}`)
      const found = { "license key": "license", none: "public", token: operation.scopes.join(", ") }
      assert.strictEqual(found[operation.credential], expected)
      if (operation.credential === "token") assert.strictEqual(operation.publishedScopes.join(", "), expected)
      else assert.deepStrictEqual(operation.publishedScopes, [])
    })
  }
})

/** A request with a wrong query, body and ids, which are checked after the credential. */
const wrongAfterwards = ({ body, query }: Operation) => ({
  query: query.length === 0 ? "" : "?limit=0&cursor=nonsense",
  ...(body === undefined ? undefined : { body: '{"colour":' })
})

interface Refused {
  readonly status: number
  readonly code: string
}

const assertChallenged = (answer: Answer, { status, code }: Refused, detail?: string) => {
  assertRefused(answer, status, code, detail)
  assert.isNotEmpty(answer.headers["www-authenticate"])
}

const unknownToken = Tokens.fromBytes(new Uint8Array(32).fill(3))
const mistyped = (credential: string) => credential.slice(0, -1) + (credential.endsWith("0") ? "1" : "0")

layer(layerContract, { timeout: "1 minute" })("Management operations", (it) => {
  const tokenWith = Effect.fnUntraced(function* (scopes: ReadonlyArray<string>, more: object = {}) {
    const body = { name: scopes.join().slice(0, 255), scopes, ...more }
    return yield* (yield* Conversation).data<{ readonly token: string; readonly api_key: { readonly id: string } }>(
      "createApiKey",
      { body }
    )
  })

  it.effect("refuse a missing or wrong token before they check anything else", () =>
    Effect.gen(function* () {
      const { ask, data } = yield* Conversation
      const revoked = yield* tokenWith(["admin"])
      yield* data("deleteApiKey", { params: { id: revoked.api_key.id } })
      const inactive = yield* tokenWith(["admin"])
      yield* data("updateApiKey", { params: { id: inactive.api_key.id }, body: { is_active: false } })
      const expired = yield* tokenWith(["admin"], { expires_at: "2000-01-01T00:00:00Z" })
      const blocked = yield* tokenWith(["admin"], { allowed_cidrs: ["203.0.113.0/24"] })
      const credentials: ReadonlyArray<readonly [authorization: string | null, code: string]> = [
        [null, "TOKEN_MISSING"],
        ["Bearer", "TOKEN_MISSING"],
        [`License ${LicenseKey.fromBytes(new Uint8Array(28))}`, "TOKEN_MALFORMED"],
        ["Bearer nonsense", "TOKEN_MALFORMED"],
        [`Bearer ${mistyped(unknownToken)}`, "TOKEN_MALFORMED"],
        [`Bearer ${unknownToken}`, "TOKEN_INVALID"],
        [`Bearer ${revoked.token}`, "TOKEN_INVALID"],
        [`Bearer ${inactive.token}`, "TOKEN_INACTIVE"],
        [`Bearer ${expired.token}`, "TOKEN_EXPIRED"],
        [`Bearer ${blocked.token}`, "TOKEN_ADDRESS_BLOCKED"]
      ]
      yield* Effect.forEach(
        management.flatMap((operation) => credentials.map((credential) => [operation, ...credential] as const)),
        ([operation, authorization, code]) =>
          Effect.map(ask(operation, { ...wrongAfterwards(operation), authorization }), (answer) =>
            assertChallenged(answer, { status: 401, code })
          ),
        { concurrency: 6, discard: true }
      )
    })
  )

  it.effect("refuse tokens without their scopes before they check anything else", () =>
    Effect.gen(function* () {
      const { ask } = yield* Conversation
      const tokens = new Map<string, string>()
      for (const operation of management) {
        // A token that lacks any one of the needed scopes must be refused, whatever other scopes it has.
        for (const lacked of operation.scopes) {
          const token =
            tokens.get(lacked) ?? (yield* tokenWith(all.filter((scope) => scope !== "admin" && scope !== lacked))).token
          tokens.set(lacked, token)
          const answer = yield* ask(operation, { ...wrongAfterwards(operation), authorization: `Bearer ${token}` })
          assertChallenged(answer, { status: 403, code: "TOKEN_SCOPE_DENIED" }, operation.scopes.join(", "))
        }
      }
    })
  )

  it.effect("accept exactly their own scopes, and admin, with equal answers", () =>
    Effect.gen(function* () {
      const { ask } = yield* Conversation
      const tokens = new Map<string, string>()
      for (const operation of management) {
        const scopes = operation.scopes.join()
        const token = tokens.get(scopes) ?? (yield* tokenWith(scopes === "" ? ["ops:read"] : operation.scopes)).token
        tokens.set(scopes, token)
        // No resource has the id `unknown`; operations without ids get a body that is not JSON.
        const request = operation.body === undefined ? {} : { body: '{"colour":' }
        const own = yield* ask(operation, { ...request, authorization: `Bearer ${token}` })
        const admin = yield* ask(operation, request)
        assert.notInclude([401, 403], own.status, `${operation.id}: ${own.text}`)
        assert.deepStrictEqual([own.status, own.error.code], [admin.status, admin.error.code], operation.id)
      }
    })
  )
})

layer(layerContract, { timeout: "1 minute" })("Runtime operations", (it) => {
  it.effect("refuse a missing or wrong key before they check anything else", () =>
    Effect.gen(function* () {
      const { ask, data } = yield* Conversation
      const { adminToken } = yield* TestServer
      const fixture = yield* (yield* Fixtures).make
      const key = fixture.licenseKey
      yield* data("rotateLicenseKey", { params: { id: fixture.ids["licenses"]! } })
      const unknown = LicenseKey.fromBytes(new Uint8Array(28).fill(3))
      const credentials: ReadonlyArray<readonly [authorization: string | null, code: string]> = [
        [null, "LICENSE_KEY_MISSING"],
        ["License", "LICENSE_KEY_MISSING"],
        [`Bearer ${adminToken}`, "LICENSE_KEY_MISSING"],
        [`Bearer ${key}`, "LICENSE_KEY_MISSING"],
        ["License nonsense", "LICENSE_KEY_INVALID"],
        [`License ${mistyped(unknown)}`, "LICENSE_KEY_INVALID"],
        [`License ${unknown}`, "LICENSE_KEY_INVALID"]
      ]
      for (const operation of runtime) {
        for (const [authorization, code] of credentials) {
          const answer = yield* ask(operation, { body: '{"colour":', authorization })
          assertChallenged(answer, { status: 401, code })
        }
        // The license itself detects a rotated key, after the body was read.
        const rotated = yield* ask(operation, { body: bodyOf(operation, fixture), authorization: `License ${key}` })
        assertChallenged(rotated, { status: 401, code: "LICENSE_KEY_INVALID" })
      }
    })
  )

  it.effect("do not find the devices and leases of another license", () =>
    Effect.gen(function* () {
      const { ask, data } = yield* Conversation
      const { make } = yield* Fixtures
      const [own, other] = [yield* make, yield* make]
      const admitting = ["activateLicense", "checkoutFloatingLicense"]
      const inOrder = runtime.toSorted((a, b) => Number(admitting.includes(a.id)) - Number(admitting.includes(b.id)))
      const show = data("getLicense", { params: { id: other.ids["licenses"]! } })
      const before = yield* show
      // A list shows the devices of its own license only.
      for (const operation of inOrder.filter(({ method }) => method === "POST")) {
        const answer = yield* ask(operation, {
          params: requestOf(operation, other).params ?? {},
          body: {
            ...(bodyOf(operation, other) as object),
            ...(operation.id === "consumeLicense" && { feature_code: own.featureCode })
          },
          authorization: `License ${own.licenseKey}`
        })
        if (admitting.includes(operation.id)) {
          const { license_id } = assertAnswered(answer, 200) as { readonly license_id: string }
          assert.strictEqual(license_id, own.ids["licenses"])
        } else {
          assertRefused(answer, 404, /heartbeat|checkin/.test(operation.id) ? "LEASE_NOT_FOUND" : "DEVICE_NOT_FOUND")
        }
      }
      assert.deepStrictEqual(yield* show, before)
    })
  )
})

layer(layerContract)("Public operations", (it) => {
  it.effect("need no credential", () =>
    Effect.gen(function* () {
      const { ask } = yield* Conversation
      const fixture = yield* (yield* Fixtures).make
      for (const operation of open) {
        for (const authorization of [null, "Bearer nonsense", `Bearer ${unknownToken}`, "License nonsense"]) {
          const body = bodyOf(operation, fixture)
          const answer = yield* ask(operation, { authorization, ...(body === undefined ? undefined : { body }) })
          assert.strictEqual(answer.status, 200, operation.id)
        }
      }
    })
  )
})
