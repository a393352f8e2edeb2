import { createHmac, createPublicKey } from "node:crypto"
import { assert, layer } from "@effect/vitest"
import { Clock, Context, Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { Oidc } from "../../../src/access/oidc/Oidc.ts"
import { ManagementScope } from "../../../src/access/Scope.ts"
import { Settings } from "../../../src/platform/config/Config.ts"
import {
  type Algorithm,
  audience,
  authenticationOf,
  defaultIdentity,
  Issuer,
  makeOidc,
  makeSigningKey
} from "../../support/http/Authentication.ts"

const base64url = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64url")

layer(Issuer.layer)("Tokens of an OIDC issuer", (it) => {
  const noon = Date.UTC(2030, 0, 1, 12)

  /** An issuer and a new token verifier at noon, and the outcome for given tokens and for tokens signed now. */
  const makeVerifier = Effect.fnUntraced(function* () {
    yield* TestClock.setTime(noon)
    const issuer = yield* Issuer
    const oidc = yield* makeOidc()
    return {
      issuer,
      outcomeOf: (token: string) => authenticationOf(oidc, token),
      signed: (...[claims]: Parameters<typeof issuer.sign> extends [number, ...infer Rest] ? Rest : never) =>
        Effect.flatMap(issuer.sign(noon, claims), (token) => authenticationOf(oidc, token))
    }
  })

  for (const alg of ["RS256", "ES256", "EdDSA"] satisfies ReadonlyArray<Algorithm>) {
    it.effect(`signed with ${alg} identify their subject, with the scopes that the service knows`, () =>
      Effect.gen(function* () {
        const issuer = yield* Issuer
        yield* issuer.publish(makeSigningKey(alg, `key-${alg}`))
        const token = yield* issuer.token("product:read unheard:of license:read")
        assert.deepStrictEqual(yield* authenticationOf(yield* makeOidc(), token), [
          "oidc_subject",
          "backoffice",
          "product:read",
          "license:read"
        ])
      })
    )
  }

  it.effect("carry scopes as a text or an array, in the configured claim", () =>
    Effect.gen(function* () {
      const { issuer } = yield* makeVerifier()
      const scopesIn = Effect.fnUntraced(function* (claim: string, payload: object) {
        const answer = yield* authenticationOf(
          yield* makeOidc(claim),
          yield* issuer.sign(noon, { payload: { ...payload } })
        )
        return answer.slice(2)
      })
      const all = ManagementScope.literals
      assert.deepStrictEqual(yield* scopesIn("scope", { scope: all.toReversed().join(" ") }), [...all])
      assert.deepStrictEqual(yield* scopesIn("permissions", { permissions: ["event:read", 7, null] }), ["event:read"])
      assert.deepStrictEqual(yield* scopesIn("https://example.com/roles", { "https://example.com/roles": "admin" }), [
        "admin"
      ])
      for (const scope of [undefined, "", "ADMIN", "admin,event:read", {}, 7, null]) {
        assert.deepStrictEqual(yield* scopesIn("scope", { scope }), [], JSON.stringify(scope))
      }
    })
  )

  it.effect("are limited to the products in the configured claim, and invalid if it cannot be read", () =>
    Effect.gen(function* () {
      const { issuer } = yield* makeVerifier()
      const productsIn = Effect.fnUntraced(function* (products: unknown) {
        const oidc = yield* makeOidc("scope", "products")
        const token = yield* issuer.sign(noon, { payload: { scope: "license:read admin", products } })
        return yield* Effect.match(oidc.authenticate(token), {
          onSuccess: ({ product_ids, scopes }) => [...scopes, product_ids],
          onFailure: ({ code }) => code
        })
      })
      const ids = (count: number) => Array.from({ length: count }, (_, index) => `prod_${index}`)
      assert.deepStrictEqual(yield* productsIn(undefined), ["admin", "license:read", undefined])
      for (const claim of ["prod_0 prod_1", ["prod_0", "prod_1", "prod_0"]])
        assert.deepStrictEqual(yield* productsIn(claim), ["license:read", ["prod_0", "prod_1"]])
      for (const claim of ["", []]) assert.deepStrictEqual(yield* productsIn(claim), ["license:read", []])
      assert.deepStrictEqual(yield* productsIn(ids(100)), ["license:read", ids(100)])
      for (const claim of [ids(101), 7, null, {}, ["prod_0", 7], ["prod_\u0000"], true])
        assert.strictEqual(yield* productsIn(claim), "TOKEN_INVALID", JSON.stringify(claim))
    })
  )

  it.effect("are valid for one minute of clock tolerance before and after their stated period", () =>
    Effect.gen(function* () {
      const { signed } = yield* makeVerifier()
      const now = noon / 1_000
      assert.deepStrictEqual(yield* signed({ payload: { exp: now - 59 } }), defaultIdentity)
      assert.strictEqual(yield* signed({ payload: { exp: now - 60 } }), "TOKEN_EXPIRED")
      assert.deepStrictEqual(yield* signed({ payload: { nbf: now + 60 } }), defaultIdentity)
      assert.strictEqual(yield* signed({ payload: { nbf: now + 61 } }), "TOKEN_INVALID")
      assert.strictEqual(yield* signed({ payload: { exp: now - 60, aud: "others" } }), "TOKEN_INVALID")
    })
  )

  it.effect("for other audiences, of other issuers, or without required claims, are invalid", () =>
    Effect.gen(function* () {
      const { issuer, signed } = yield* makeVerifier()
      assert.deepStrictEqual(yield* signed({ payload: { aud: ["others", audience] } }), defaultIdentity)
      const payloads: ReadonlyArray<Record<string, unknown>> = [
        { aud: "https://others.example.com" },
        { aud: [] },
        { aud: undefined },
        { aud: `${audience}/` },
        { iss: "https://issuer.example.com" },
        { iss: `${issuer.url}/` },
        { iss: undefined },
        { exp: undefined },
        { exp: "2099-01-01" },
        { nbf: "now" },
        { sub: undefined },
        { sub: "" },
        { sub: 7 },
        { sub: "a".repeat(256) },
        { sub: "nul\u0000" },
        { cnf: { jkt: "bound-to-a-key" } }
      ]
      for (const payload of payloads)
        assert.strictEqual(yield* signed({ payload }), "TOKEN_INVALID", JSON.stringify(payload))
    })
  )

  it.effect("of another type are invalid: an ID token grants nothing", () =>
    Effect.gen(function* () {
      const { signed } = yield* makeVerifier()
      for (const typ of [undefined, "JWT", "jwt", "at+jwt", "application/at+jwt"]) {
        const header = typ === undefined ? {} : { typ }
        assert.deepStrictEqual(yield* signed({ header }), defaultIdentity, typ)
      }
      for (const typ of ["logout+jwt", "dpop+jwt", "secevent+jwt", "application/jose", ""]) {
        assert.strictEqual(yield* signed({ header: { typ } }), "TOKEN_INVALID", typ)
      }
      for (const typ of [5, null, {}, ["JWT"]]) {
        assert.strictEqual(yield* signed({ header: { typ } as { typ: never } }), "TOKEN_INVALID", JSON.stringify(typ))
      }
      const idTokens = [{ at_hash: "x" }, { c_hash: "x" }, { s_hash: "x" }, { typ: "ID" }, { nonce: "x" }]
      for (const payload of idTokens) {
        assert.strictEqual(yield* signed({ payload }), "TOKEN_INVALID", JSON.stringify(payload))
      }
      // An access token that repeats the nonce of the sign-in, and says what it is.
      assert.deepStrictEqual(yield* signed({ payload: { nonce: "x", typ: "Bearer" } }), defaultIdentity)
      assert.deepStrictEqual(yield* signed({ header: { typ: "at+jwt" }, payload: { nonce: "x" } }), defaultIdentity)
      assert.strictEqual(yield* signed({ payload: { nonce: "x", typ: 5 } }), "TOKEN_INVALID")
    })
  )

  it.effect("that the issuer did not sign correctly are invalid", () =>
    Effect.gen(function* () {
      const { issuer, outcomeOf, signed } = yield* makeVerifier()
      yield* issuer.publish(makeSigningKey("RS256", "first"), makeSigningKey("ES256", "second"))
      const [key] = yield* issuer.keys
      const [header, payload, signature] = (yield* issuer.sign(noon)).split(".") as [string, string, string]
      const hmac = (secret: string | Buffer) => {
        const input = `${base64url({ alg: "HS256", kid: "first" })}.${payload}`
        return `${input}.${createHmac("sha256", secret).update(input).digest("base64url")}`
      }
      const publicKey = createPublicKey(key!.privateKey)
      const forged = {
        "alg none": `${base64url({ alg: "none" })}.${payload}.`,
        "alg none in other letters": `${base64url({ alg: "nOnE", kid: "first" })}.${payload}.`,
        "alg none with a signature": `${base64url({ alg: "none", kid: "first" })}.${payload}.${signature}`,
        "no signature": `${header}.${payload}.`,
        "another payload": `${header}.${base64url({ sub: "admin" })}.${signature}`,
        "another signature": `${header}.${payload}.${signature.slice(0, -4)}AAAA`,
        "the public key as a shared secret": hmac(publicKey.export({ type: "spki", format: "pem" })),
        "an empty shared secret": hmac(""),
        "an extension that must be understood": `${base64url({ alg: "RS256", kid: "first", crit: ["x"], x: 1 })}.${payload}.${signature}`
      }
      for (const [name, token] of Object.entries(forged)) {
        assert.strictEqual(yield* outcomeOf(token), "TOKEN_INVALID", name)
      }
      assert.strictEqual(yield* signed({ key: makeSigningKey("RS256", "first") }), "TOKEN_INVALID")
      assert.strictEqual(yield* signed({ header: { kid: "nobody's" } }), "TOKEN_INVALID")
      assert.strictEqual(yield* signed({ header: { kid: "second" } }), "TOKEN_INVALID")
      assert.strictEqual(yield* signed({ header: { alg: "RS512" } }), "TOKEN_INVALID")
      assert.strictEqual(yield* signed({ header: { alg: "PS256" } }), "TOKEN_INVALID")
      assert.deepStrictEqual(yield* signed(), defaultIdentity)
    })
  )

  it.effect("with other algorithms are invalid, even if the issuer's key supports them", () =>
    Effect.gen(function* () {
      const issuer = yield* Issuer
      yield* TestClock.setTime(noon)
      const key = makeSigningKey("RS256", "of-any-algorithm")
      const jwk = { ...createPublicKey(key.privateKey).export({ format: "jwk" }), kid: key.kid }
      yield* issuer.pretend(({ url }, response) =>
        response.end(
          JSON.stringify(url === "/jwks" ? { keys: [jwk] } : { issuer: issuer.url, jwks_uri: `${issuer.url}/jwks` })
        )
      )
      const oidc = yield* makeOidc()
      const by = (alg: string) =>
        Effect.flatMap(issuer.sign(noon, { key, header: { alg } }), (token) => authenticationOf(oidc, token))
      for (const alg of ["RS384", "RS512", "PS256", "PS512"]) assert.strictEqual(yield* by(alg), "TOKEN_INVALID", alg)
      assert.deepStrictEqual(yield* by("RS256"), defaultIdentity)
      yield* issuer.pretend()
    })
  )

  it.effect("that are not a JWT are malformed", () =>
    Effect.gen(function* () {
      const { issuer, outcomeOf } = yield* makeVerifier()
      const [header, payload, signature] = (yield* issuer.sign(noon)).split(".") as [string, string, string]
      const texts = [
        "a",
        "a.b",
        "a.b.c",
        ".",
        "..",
        `${header}.${payload}`,
        `${header}.${payload}.${signature}.${signature}.${signature}`,
        `${base64url([])}.${payload}.${signature}`,
        `${base64url({ kid: "first" })}.${payload}.${signature}`,
        `${Buffer.from("{").toString("base64url")}.${payload}.${signature}`,
        `${base64url({ alg: "EdDSA", "\\": 0 })}.${payload}.${signature}`,
        `${header}.${base64url({ sub: "someone", "\\": 0 })}.${signature}`,
        `${header}.${payload}.${signature}=`,
        `${header} .${payload}.${signature}`,
        "\u0000.\u0000.\u0000"
      ]
      for (const text of texts) assert.strictEqual(yield* outcomeOf(text), "TOKEN_MALFORMED", text)
    })
  )
})

layer(Issuer.layer)("Without a configured issuer", (it) => {
  it.effect("a JWT is malformed", () =>
    Effect.gen(function* () {
      const issuer = yield* Issuer
      const oidc = Context.get(yield* Layer.build(Oidc.layer.pipe(Layer.provide(Settings.layerTest()))), Oidc)
      const before = yield* issuer.fetches
      assert.strictEqual(
        yield* authenticationOf(oidc, yield* issuer.sign(yield* Clock.currentTimeMillis)),
        "TOKEN_MALFORMED"
      )
      assert.strictEqual(yield* issuer.fetches, before)
    })
  )
})
