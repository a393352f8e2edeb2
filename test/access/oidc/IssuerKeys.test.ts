import { createPublicKey, generateKeyPairSync } from "node:crypto"
import type { RequestListener } from "node:http"
import { assert, layer } from "@effect/vitest"
import { Clock, Deferred, Effect, Fiber, Queue } from "effect"
import { TestClock } from "effect/testing"
import {
  authenticationOf,
  defaultIdentity,
  Issuer,
  makeOidc,
  makeSigningKey
} from "../../support/http/Authentication.ts"

layer(Issuer.layer)("The keys of an OIDC issuer", (it) => {
  const now = Clock.currentTimeMillis

  it.effect("are fetched once, and again ten minutes later", () =>
    Effect.gen(function* () {
      const issuer = yield* Issuer
      const oidc = yield* makeOidc()
      const before = yield* issuer.fetches
      const ask = Effect.flatMap(Effect.flatMap(now, issuer.sign), (token) => authenticationOf(oidc, token))
      yield* Effect.replicateEffect(ask, 20, { concurrency: "unbounded" })
      yield* TestClock.adjust("599 seconds")
      assert.deepStrictEqual(yield* ask, defaultIdentity)
      assert.strictEqual((yield* issuer.fetches) - before, 1)
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(yield* ask, defaultIdentity)
      assert.strictEqual((yield* issuer.fetches) - before, 2)
    })
  )

  it.effect("follow a rotation: a new key within ten seconds, a withdrawn one for at most ten minutes", () =>
    Effect.gen(function* () {
      const issuer = yield* Issuer
      const oidc = yield* makeOidc()
      const [oldKey, newKey] = [makeSigningKey("ES256", "old"), makeSigningKey("ES256", "fresh")]
      const by = (key: typeof oldKey) =>
        Effect.flatMap(
          Effect.flatMap(now, (at) => issuer.sign(at, { key })),
          (token) => authenticationOf(oidc, token)
        )
      yield* issuer.publish(oldKey)
      assert.deepStrictEqual(yield* by(oldKey), defaultIdentity)
      yield* issuer.publish(newKey, oldKey)
      assert.strictEqual(yield* by(newKey), "TOKEN_INVALID")
      yield* TestClock.adjust("10 seconds")
      assert.deepStrictEqual(yield* by(newKey), defaultIdentity)
      assert.deepStrictEqual(yield* by(oldKey), defaultIdentity)
      yield* issuer.publish(newKey)
      yield* TestClock.adjust("10 minutes")
      assert.strictEqual(yield* by(oldKey), "TOKEN_INVALID")
      assert.deepStrictEqual(yield* by(newKey), defaultIdentity)
    })
  )

  it.effect("are tried in turn for a token that names none of them, and fetched again if none has signed it", () =>
    Effect.gen(function* () {
      const issuer = yield* Issuer
      const oidc = yield* makeOidc()
      const [older, newer, other] = ["older", "newer", "other"].map((kid) => makeSigningKey("ES256", kid))
      yield* issuer.publish(older!, newer!)
      const judged = Effect.fnUntraced(function* (key = other!, payload = {}) {
        const { kid: _, ...header } = key
        const token = yield* issuer.sign(yield* now, { key: header as typeof key, payload })
        return yield* authenticationOf(oidc, token)
      })
      assert.deepStrictEqual([yield* judged(older), yield* judged(newer)], [defaultIdentity, defaultIdentity])
      assert.strictEqual(yield* judged(other), "TOKEN_INVALID")
      for (const key of [older, newer]) assert.strictEqual(yield* judged(key, { exp: 1 }), "TOKEN_EXPIRED")
      yield* issuer.publish(other!)
      assert.strictEqual(yield* judged(other), "TOKEN_INVALID")
      const before = yield* issuer.fetches
      yield* TestClock.adjust("10 seconds")
      assert.deepStrictEqual(yield* judged(other), defaultIdentity)
      for (let forged = 0; forged < 3; forged++) assert.strictEqual(yield* judged(newer), "TOKEN_INVALID")
      assert.strictEqual((yield* issuer.fetches) - before, 1)
    })
  )

  it.effect("are not fetched for every invented key id", () =>
    Effect.gen(function* () {
      const issuer = yield* Issuer
      const oidc = yield* makeOidc()
      const ask = (kid: string) =>
        Effect.flatMap(
          Effect.flatMap(now, (at) => issuer.sign(at, { header: { kid } })),
          (token) => authenticationOf(oidc, token)
        )
      yield* ask("before")
      const before = yield* issuer.fetches
      yield* TestClock.adjust("10 seconds")
      const answers = yield* Effect.forEach(
        Array.from({ length: 50 }, (_, index) => `made-up-${index}`),
        ask,
        { concurrency: 10 }
      )
      assert.isTrue(answers.every((answer) => answer === "TOKEN_INVALID"))
      assert.strictEqual((yield* issuer.fetches) - before, 1)
    })
  )

  it.effect("are cached for an hour while the issuer is unreachable, and fetched again every ten seconds", () =>
    Effect.gen(function* () {
      const issuer = yield* Issuer
      const withKeys = yield* makeOidc()
      const withoutKeys = yield* makeOidc()
      const ask = (oidc: typeof withKeys) =>
        Effect.flatMap(Effect.flatMap(now, issuer.sign), (token) => authenticationOf(oidc, token))
      assert.deepStrictEqual(yield* ask(withKeys), defaultIdentity)
      yield* issuer.stop
      assert.strictEqual(yield* ask(withoutKeys), "NOT_READY")
      for (let minutes = 0; minutes < 59; minutes++) {
        yield* TestClock.adjust("1 minute")
        assert.deepStrictEqual(yield* ask(withKeys), defaultIdentity)
      }
      yield* TestClock.adjust("1 minute")
      assert.strictEqual(yield* ask(withKeys), "NOT_READY")
      yield* issuer.start
      assert.strictEqual(yield* ask(withKeys), "NOT_READY")
      yield* TestClock.adjust("10 seconds")
      assert.deepStrictEqual([yield* ask(withKeys), yield* ask(withoutKeys)], [defaultIdentity, defaultIdentity])
    })
  )

  it.effect("delay only the first request when the issuer hangs", () =>
    Effect.gen(function* () {
      const issuer = yield* Issuer
      const oidc = yield* makeOidc()
      const ask = Effect.flatMap(Effect.flatMap(now, issuer.sign), (token) => authenticationOf(oidc, token))
      assert.deepStrictEqual(yield* ask, defaultIdentity)
      const fetches = yield* Queue.unbounded<void>()
      yield* issuer.pretend(() => Queue.offerUnsafe(fetches, undefined))
      yield* TestClock.adjust("10 minutes")
      const first = yield* Effect.forkChild(ask)
      yield* Queue.take(fetches)
      yield* TestClock.adjust("5 seconds")
      assert.deepStrictEqual(yield* Fiber.join(first), defaultIdentity)
      for (let attempt = 0; attempt < 3; attempt++) {
        yield* TestClock.adjust("10 seconds")
        assert.deepStrictEqual(yield* ask, defaultIdentity)
        yield* Queue.take(fetches)
      }
      yield* issuer.publish(makeSigningKey("ES256", "after the outage"))
      yield* issuer.pretend()
      yield* TestClock.adjust("10 seconds")
      assert.deepStrictEqual(yield* ask, defaultIdentity)
    })
  )

  it.effect("are known although the client that asked first has disconnected", () =>
    Effect.gen(function* () {
      const { pretend, sign, url } = yield* Issuer
      const oidc = yield* makeOidc()
      const ask = Effect.flatMap(Effect.flatMap(now, sign), (token) => authenticationOf(oidc, token))
      const asked = yield* Deferred.make<() => void>()
      yield* pretend((_, response) =>
        Deferred.doneUnsafe(
          asked,
          Effect.succeed(() => response.end(JSON.stringify({ issuer: url, jwks_uri: `${url}/jwks` })))
        )
      )
      const first = yield* Effect.forkChild(ask)
      const answer = yield* Deferred.await(asked)
      yield* pretend()
      const disconnected = yield* Effect.forkChild(Fiber.interrupt(first), { startImmediately: true })
      answer()
      yield* Fiber.join(disconnected)
      assert.deepStrictEqual(yield* ask, defaultIdentity)
    })
  )

  it.effect("that are unusable count as unknown, and do not affect other keys", () =>
    Effect.gen(function* () {
      const issuer = yield* Issuer
      const good = makeSigningKey("RS256", "good")
      const short = {
        ...good,
        kid: "short",
        privateKey: generateKeyPairSync("rsa", { modulusLength: 1_024 }).privateKey
      }
      const jwks = [
        ...[short, good].map(({ kid, privateKey }) => ({
          ...createPublicKey(privateKey).export({ format: "jwk" }),
          kid
        })),
        { kty: "RSA", kid: "without a number", alg: "RS256" },
        { kty: "EC", crv: "P-256", x: "AA", y: "AA", kid: "not on the curve", alg: "ES256" },
        { kty: "OKP", crv: "Ed25519", x: "AA", kid: "too little", alg: "EdDSA" },
        { kty: "oct", k: "c2VjcmV0", kid: "shared", alg: "RS256" },
        { kty: 5, kid: "of no kind" }
      ]
      yield* issuer.pretend(({ url }, response) =>
        response.end(
          JSON.stringify(url === "/jwks" ? { keys: jwks } : { issuer: issuer.url, jwks_uri: `${issuer.url}/jwks` })
        )
      )
      const oidc = yield* makeOidc()
      const judged = (header: { readonly alg?: string; readonly kid?: string }, key = good) =>
        Effect.flatMap(
          Effect.flatMap(now, (at) => issuer.sign(at, { key, header })),
          (token) => authenticationOf(oidc, token)
        )
      assert.deepStrictEqual(yield* judged({}), defaultIdentity)
      assert.strictEqual(yield* judged({ kid: "short" }), "TOKEN_INVALID")
      assert.strictEqual(yield* judged({ kid: "without a number" }), "TOKEN_INVALID")
      assert.strictEqual(yield* judged({ kid: "shared" }), "TOKEN_INVALID")
      assert.strictEqual(yield* judged({}, makeSigningKey("ES256", "not on the curve")), "TOKEN_INVALID")
      assert.strictEqual(yield* judged({}, makeSigningKey("EdDSA", "too little")), "TOKEN_INVALID")
      yield* issuer.pretend()
    })
  )

  it.effect("are fetched only from the address in the issuer's own document", () =>
    Effect.gen(function* () {
      const issuer = yield* Issuer
      const token = yield* issuer.sign(yield* now)
      const keys = yield* Effect.promise(() => fetch(`${issuer.url}/jwks`).then((response) => response.text()))
      const discovery = (document: object) =>
        JSON.stringify({ issuer: issuer.url, jwks_uri: `${issuer.url}/jwks`, ...document })
      const path = "/.well-known/openid-configuration"
      const documentPointingTo = (prefix: string): RequestListener => {
        const texts: Record<string, string> = { [path]: discovery({}), "/jwks": keys }
        return ({ url = "" }, response) => {
          const text = texts[url.replace("/elsewhere", "")]
          if (url === prefix) response.writeHead(302, { location: `${issuer.url}/elsewhere${url}` }).end()
          else response.end(text)
        }
      }
      const respondWith =
        (document: string, jwks = keys): RequestListener =>
        ({ url }, response) =>
          response.end(url === path ? document : jwks)
      const wrongResponses: Record<string, RequestListener> = {
        "another issuer": respondWith(discovery({ issuer: "https://issuer.example.com" })),
        "nearly the same issuer": respondWith(discovery({ issuer: `${issuer.url}/` })),
        // An address of this machine, but not one that may be used without TLS.
        "keys in the open": respondWith(discovery({ jwks_uri: `${issuer.url.replace("127.0.0.1", "0.0.0.0")}/jwks` })),
        "keys in a file": respondWith(discovery({ jwks_uri: "file:///etc/hostname" })),
        "no address of keys": respondWith(discovery({ jwks_uri: undefined })),
        "no JSON": respondWith("no JSON"),
        "no list of keys": respondWith(discovery({}), `{"keys": "none"}`),
        "a document without end": respondWith(discovery({ padding: "x".repeat(300_000) })),
        "keys without end": respondWith(discovery({}), `${keys}${" ".repeat(300_000)}`),
        "a redirect": documentPointingTo(path),
        "a redirect to keys": documentPointingTo("/jwks")
      }
      for (const [name, listener] of Object.entries(wrongResponses)) {
        yield* issuer.pretend(listener)
        assert.strictEqual(yield* authenticationOf(yield* makeOidc(), token), "NOT_READY", name)
      }
      yield* issuer.pretend(documentPointingTo(""))
      assert.deepStrictEqual(yield* authenticationOf(yield* makeOidc(), token), defaultIdentity)
      yield* issuer.pretend()
    })
  )
})
