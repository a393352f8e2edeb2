/**
 * Authorization beside API keys and license keys: every operation with tokens of an OIDC issuer, with a session of the customer's
 * page, and with the license key of another product.
 */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { ManagementScope } from "../../src/access/Scope.ts"
import { audience, Issuer, makeSigningKey } from "../support/http/Authentication.ts"
import { assertRefused } from "../support/http/Http.ts"
import { TestServer } from "../support/http/TestServer.ts"
import { Conversation } from "./cases/Conversation.ts"
import { bodyOf, type Fixture, Fixtures, layerContractWith, requestOf } from "./cases/Fixtures.ts"
import { type Case, cases } from "./cases/ProductCases.ts"
import { type Operation, operations } from "./cases/Surface.ts"

const management = operations.filter(({ credential }) => credential === "token")
const runtime = operations.filter(({ credential }) => credential === "license key")
const scopes = ManagementScope.literals.filter((scope) => scope !== "admin")
const productsClaim = "https://example.com/products"

const layerServer = Layer.unwrap(
  Issuer.useSync(({ url }) =>
    layerContractWith({
      ...{ oidcIssuer: url, oidcAudience: audience, oidcProductsClaim: productsClaim },
      portal: true,
      ratePortal: 0
    })
  )
).pipe(Layer.provideMerge(Issuer.layer))

const withBody = (operation: Operation, fixture: Fixture) => ({
  ...requestOf(operation, fixture),
  ...(operation.body !== undefined && { body: bodyOf(operation, fixture) })
})

/** A body that is no JSON is refused after the credential, and changes nothing. */
const unreadable = ({ body }: Operation) => (body === undefined ? {} : { body: '{"colour":' })

/** The service's time: the clock of a test stands at 0. */
const serviceMillis = Effect.map(
  Effect.flatMap(TestServer, ({ send }) => send({ path: "/health" })),
  ({ json }) => Date.parse((json as { readonly meta: { readonly timestamp: string } }).meta.timestamp)
)

layer(layerServer, { timeout: "1 minute" })("Tokens of an issuer", (it) => {
  const bearer = Effect.fnUntraced(function* (payload: Record<string, unknown>) {
    return `Bearer ${yield* (yield* Issuer).sign(yield* serviceMillis, { payload })}`
  })

  it.effect("are refused by every operation if they are not valid", () =>
    Effect.gen(function* () {
      const { ask } = yield* Conversation
      const issuer = yield* Issuer
      const now = yield* serviceMillis
      const forged = { key: makeSigningKey("RS256", (yield* issuer.keys)[0]!.kid) }
      const credentials: ReadonlyArray<readonly [authorization: string, code: string]> = [
        [yield* bearer({ exp: Math.floor(now / 1_000) - 3_600 }), "TOKEN_EXPIRED"],
        [yield* bearer({ aud: "https://other.example.com" }), "TOKEN_INVALID"],
        [yield* bearer({ iss: "https://other.example.com" }), "TOKEN_INVALID"],
        [`Bearer ${yield* issuer.sign(now, forged)}`, "TOKEN_INVALID"]
      ]
      for (const operation of management) {
        for (const [authorization, code] of credentials)
          assertRefused(yield* ask(operation, { ...unreadable(operation), authorization }), 401, code)
      }
    })
  )

  it.effect("admit a subject by scopes, as API keys do", () =>
    Effect.gen(function* () {
      const { ask } = yield* Conversation
      for (const operation of management) {
        for (const lacked of operation.scopes) {
          const authorization = yield* bearer({ scope: scopes.filter((scope) => scope !== lacked).join(" ") })
          const answer = yield* ask(operation, { ...unreadable(operation), authorization })
          assertRefused(answer, 403, "TOKEN_SCOPE_DENIED", operation.scopes.join(", "))
        }
        const authorization = yield* bearer({ scope: operation.scopes.join(" ") || "ops:read" })
        const own = yield* ask(operation, { ...unreadable(operation), authorization })
        const admin = yield* ask(operation, unreadable(operation))
        assert.notInclude([401, 403], own.status, `${operation.id}: ${own.text}`)
        assert.deepStrictEqual([own.status, own.error.code], [admin.status, admin.error.code], operation.id)
      }
    })
  )

  it.effect("limit a subject to the products that they name", () =>
    Effect.gen(function* () {
      const { ask } = yield* Conversation
      const [own, other] = [yield* (yield* Fixtures).make, yield* (yield* Fixtures).make]
      const authorization = yield* bearer({
        scope: ManagementScope.literals.join(" "),
        [productsClaim]: [own.ids["products"]]
      })
      const expected: Partial<Record<Case, readonly [status: number, code: string]>> = {
        ...{ record: [404, "NOT_FOUND"], hidden: [404, "NOT_FOUND"] },
        ...{ forbidden: [403, "TOKEN_SCOPE_DENIED"], admin: [403, "TOKEN_SCOPE_DENIED"] }
      }
      for (const operation of management) {
        const answer = yield* ask(operation, { ...withBody(operation, other), authorization })
        const refusal = expected[cases[operation.id]!]
        if (refusal !== undefined) {
          assertRefused(answer, ...refusal)
        } else {
          for (const [name, id] of Object.entries(other.ids))
            if (answer.status < 300) assert.notInclude(answer.text, id, `${operation.id} ${name}`)
        }
      }
    })
  )
})

layer(layerServer, { timeout: "1 minute" })("A session of the customer's page", (it) => {
  it.effect("admits to no operation", () =>
    Effect.gen(function* () {
      const { ask } = yield* Conversation
      const { send } = yield* TestServer
      const { licenseKey } = yield* (yield* Fixtures).make
      const signedIn = yield* send({
        ...{ method: "POST", path: "/portal/api/sign-in/key", anonymous: true },
        body: JSON.stringify({ license_key: licenseKey }),
        headers: { "content-type": "application/json" }
      })
      const cookie = [signedIn.headers["set-cookie"] ?? []].flat()[0]!.split(";")[0]!
      const own = yield* send({ path: "/portal/api/licenses", anonymous: true, headers: { cookie } })
      assert.strictEqual(own.status, 200, own.text)
      for (const [refused, code] of [
        [management, "TOKEN_MISSING"],
        [runtime, "LICENSE_KEY_MISSING"]
      ] as const) {
        for (const operation of refused) {
          const request = { ...unreadable(operation), authorization: null, headers: { cookie } }
          assertRefused(yield* ask(operation, request), 401, code)
        }
      }
    })
  )
})

layer(layerServer)("The license key of another product", (it) => {
  it.effect("is refused by every operation that takes the application's product", () =>
    Effect.gen(function* () {
      const { ask } = yield* Conversation
      const [own, other] = [yield* (yield* Fixtures).make, yield* (yield* Fixtures).make]
      const authorization = `License ${other.licenseKey}`
      for (const operation of runtime.filter(({ body }) => body !== undefined)) {
        const request = withBody(operation, other)
        const body = { ...(request.body as object), product_code: own.productCode }
        assertRefused(
          yield* ask(operation, { ...request, body, authorization }),
          403,
          "PRODUCT_MISMATCH",
          "product_code"
        )
      }
    })
  )
})
