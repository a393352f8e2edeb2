import { assert, layer } from "@effect/vitest"
import { Effect, Layer, Redacted } from "effect"
import { IpNetwork } from "effect/net"
import * as Tokens from "../../../src/access/Tokens.ts"
import * as LicenseKey from "../../../src/licensing/model/LicenseKey.ts"
import { DatabaseProxy } from "../../support/database/Database.ts"
import type { Answer } from "../../support/http/Http.ts"
import { assertAnswered, assertRefused } from "../../support/http/Http.ts"
import { issue } from "../../support/http/IssuedLicenses.ts"
import { TestServer } from "../../support/http/TestServer.ts"

const withProxy = { trustedProxies: [IpNetwork.fromStringUnsafe("127.0.0.0/8")] }

/** The responses to sequential requests. */
const sendSeveral = <E, R>(count: number, request: Effect.Effect<Answer, E, R>) =>
  Effect.forEach(Array.from({ length: count }), () => request)

const codes = (answers: ReadonlyArray<Answer>) => answers.map(({ error, status }) => error.code ?? status)

const assertLimited = (answer: Answer, name: string, limit: number) => {
  assertRefused(answer, 429, "RATE_LIMITED", name)
  const seconds = Number(answer.headers["retry-after"])
  assert.isTrue(seconds >= 1 && seconds <= 60, `Retry-After: ${seconds}`)
  assert.include(String(answer.headers["ratelimit-policy"]), `"${name}";q=${limit};w=60`)
  assert.include(String(answer.headers["ratelimit"]), `"${name}";r=0;t=${seconds}`)
  return seconds
}

const fromAddress = (address: string) => ({ "x-forwarded-for": address })

layer(TestServer.layerWith({ ...withProxy, rateRuntime: 5, rateActivation: 2 }))("The runtime's limits", (it) => {
  const makeLicenseCaller = Effect.gen(function* () {
    const { send } = yield* TestServer
    const { license_key } = yield* issue({ max_activations: 0 })
    const call = (operation: string, address: string, fingerprint = "f") =>
      send({
        method: "POST",
        path: `/api/v1/license/${operation}`,
        headers: { authorization: `License ${license_key}`, ...fromAddress(address) },
        body: { fingerprint }
      })
    return call
  })

  it.effect("count by license and address, and report the remaining quota", () =>
    Effect.gen(function* () {
      const { advance } = yield* TestServer
      const call = yield* makeLicenseCaller
      const first = yield* call("activate", "203.0.113.1")
      assertAnswered(first, 200)
      assert.strictEqual(
        first.headers["ratelimit-policy"],
        '"runtime";q=5;w=60, "activation";q=2;w=60',
        "both limits that apply"
      )
      assert.match(String(first.headers["ratelimit"]), /^"runtime";r=4;t=60, "activation";r=1;t=60$/)
      const more = yield* sendSeveral(4, call("validate", "203.0.113.1"))
      assert.deepStrictEqual(codes(more), [200, 200, 200, 200])
      assert.match(String(more[3]?.headers["ratelimit"]), /^"runtime";r=0;t=\d+$/)
      const seconds = assertLimited(yield* call("check", "203.0.113.1"), "runtime", 5)
      assertAnswered(yield* call("check", "203.0.113.2"), 200)
      yield* advance(seconds)
      assertAnswered(yield* call("check", "203.0.113.1"), 200)
    })
  )

  it.effect("count all addresses of a 64-bit IPv6 network together", () =>
    Effect.gen(function* () {
      const call = yield* makeLicenseCaller
      yield* call("activate", "2001:db8:1:2::1")
      for (const last of ["2", "ffff", "1:2:3:4", "aaaa::1"])
        yield* call("check", `2001:db8:1:2:${last.length > 4 ? last : `:${last}`}`)
      assertLimited(yield* call("check", "2001:db8:1:2:9999:8888:7777:6666"), "runtime", 5)
      assertAnswered(yield* call("check", "2001:db8:1:3::1"), 200)
      assertAnswered(yield* call("check", "2001:db8::1"), 200)
    })
  )

  it.effect("count activations by license, from any address; refused requests are not counted", () =>
    Effect.gen(function* () {
      const { advance } = yield* TestServer
      const call = yield* makeLicenseCaller
      yield* call("activate", "203.0.113.1", "a")
      yield* call("activate", "203.0.113.2", "b")
      for (let index = 0; index < 3; index++) {
        assertLimited(yield* call("activate", `203.0.113.${10 + index}`, "c"), "activation", 2)
      }
      assertAnswered(yield* call("validate", "203.0.113.2", "b"), 200)
      yield* advance(60)
      assert.deepStrictEqual(codes(yield* sendSeveral(3, call("activate", "203.0.113.3", "c"))), [
        200,
        200,
        "RATE_LIMITED"
      ])
    })
  )

  it.effect("count refusals of the license's state, each license separately", () =>
    Effect.gen(function* () {
      const one = yield* makeLicenseCaller
      const other = yield* makeLicenseCaller
      const unknown = yield* sendSeveral(6, one("check", "203.0.113.1", "unknown"))
      assert.deepStrictEqual(codes(unknown), [...Array(5).fill("DEVICE_NOT_FOUND"), "RATE_LIMITED"])
      assert.include(String(unknown[0]?.headers["ratelimit"]), '"runtime";r=4')
      assert.deepStrictEqual(codes([yield* other("check", "203.0.113.1", "unknown")]), ["DEVICE_NOT_FOUND"])
    })
  )
})

layer(TestServer.layerWith({ ...withProxy, rateManagement: 3 }))("The management's limit", (it) => {
  it.effect("counts by token, including refused scopes, and does not affect other tokens", () =>
    Effect.gen(function* () {
      const { client, send } = yield* TestServer
      const tokenOf = (name: string) =>
        Effect.map(
          client["api-keys"].create({ payload: { name, scopes: ["product:read"] } }),
          ({ token }) =>
            (path: string) =>
              send({ path, headers: { authorization: `Bearer ${token}` } })
        )
      const one = yield* tokenOf("one")
      const other = yield* tokenOf("other")
      const [first, ...rest] = yield* sendSeveral(3, one("/api/v1/products"))
      assert.deepStrictEqual(codes(rest), [200, 200])
      assert.match(String(first?.headers["ratelimit"]), /^"management";r=2;t=60$/)
      assertLimited(yield* one("/api/v1/products"), "management", 3)
      assert.notProperty((yield* one("/api/v1/products")).headers, "www-authenticate")
      assert.deepStrictEqual(codes(yield* sendSeveral(4, other("/api/v1/licenses"))), [
        ...Array(3).fill("TOKEN_SCOPE_DENIED"),
        "RATE_LIMITED"
      ])
    })
  )

  it.effect("does not count operations without a token", () =>
    Effect.gen(function* () {
      const { send } = yield* TestServer
      const answers = yield* sendSeveral(10, send({ path: "/api/v1/system/public-keys", anonymous: true }))
      for (const answer of answers) assertAnswered(answer, 200)
      assert.notProperty(answers[0]!.headers, "ratelimit")
    })
  )
})

const unknownToken = Tokens.fromBytes(new Uint8Array(32).fill(3))
const unknownKey = LicenseKey.fromBytes(new Uint8Array(28))

const guessing = { ...withProxy, rateFailures: 3, metricsToken: Redacted.make("the-token-for-metrics") }

layer(TestServer.layerWith(guessing))("Failed credentials", (it) => {
  const attempt = (authorization: string | undefined, address: string, path = "/api/v1/products") =>
    Effect.flatMap(TestServer, ({ send }) =>
      send({
        path,
        method: path.includes("/license/") ? "POST" : "GET",
        anonymous: true,
        headers: { ...(authorization === undefined ? undefined : { authorization }), ...fromAddress(address) },
        ...(path.includes("/license/") ? { body: {} } : undefined)
      })
    )
  const runtime = "/api/v1/license/check"

  it.effect(
    "are answered with the reason up to a limit per address, then with 429, and a minute later with the reason again",
    () =>
      Effect.gen(function* () {
        const { advance } = yield* TestServer
        const invalidRequest = attempt(`Bearer ${unknownToken}`, "203.0.113.1")
        const answers = yield* sendSeveral(5, invalidRequest)
        assert.deepStrictEqual(codes(answers), [...Array(3).fill("TOKEN_INVALID"), "RATE_LIMITED", "RATE_LIMITED"])
        assert.match(String(answers[0]?.headers["ratelimit"]), /^"failures";r=2;t=60$/)
        yield* advance(assertLimited(answers[4]!, "failures", 3))
        assertRefused(yield* invalidRequest, 401, "TOKEN_INVALID")
      })
  )

  it.effect("of every kind and of both APIs count together, and each address separately", () =>
    Effect.gen(function* () {
      const credentials = [
        [`Bearer ${unknownToken}`, undefined],
        ["Bearer nonsense", undefined],
        [`License ${unknownKey}`, runtime],
        ["License LK-nonsense", runtime],
        [`Bearer ${unknownToken.slice(0, -1)}`, undefined]
      ] as const
      const answers = yield* Effect.forEach(credentials, ([credential, path]) =>
        attempt(credential, "203.0.113.2", path)
      )
      assert.deepStrictEqual(codes(answers), [
        "TOKEN_INVALID",
        "TOKEN_MALFORMED",
        "LICENSE_KEY_INVALID",
        "RATE_LIMITED",
        "RATE_LIMITED"
      ])
      assertRefused(yield* attempt("License LK-nonsense", "203.0.113.3", runtime), 401, "LICENSE_KEY_INVALID")
    })
  )

  it.effect("never block a valid credential from the same address", () =>
    Effect.gen(function* () {
      const { adminToken } = yield* TestServer
      const { license_key } = yield* issue()
      yield* sendSeveral(10, attempt(`Bearer ${unknownToken}`, "203.0.113.4"))
      assertLimited(yield* attempt(`Bearer ${unknownToken}`, "203.0.113.4"), "failures", 3)
      assertAnswered(yield* attempt(`Bearer ${adminToken}`, "203.0.113.4"), 200)
      const check = yield* attempt(`License ${license_key}`, "203.0.113.4", runtime)
      assertRefused(check, 422, "VALIDATION_ERROR")
    })
  )

  it.effect("do not include a missing credential or a missing scope", () =>
    Effect.gen(function* () {
      const { client } = yield* TestServer
      const { token } = yield* client["api-keys"].create({ payload: { name: "narrow", scopes: ["event:read"] } })
      const address = "203.0.113.5"
      assert.deepStrictEqual(codes(yield* sendSeveral(5, attempt(undefined, address))), Array(5).fill("TOKEN_MISSING"))
      assert.deepStrictEqual(
        codes(yield* sendSeveral(5, attempt(undefined, address, runtime))),
        Array(5).fill("LICENSE_KEY_MISSING")
      )
      assert.deepStrictEqual(
        codes(yield* sendSeveral(5, attempt(`Bearer ${token}`, address))),
        Array(5).fill("TOKEN_SCOPE_DENIED")
      )
      assertRefused(yield* attempt("Bearer nonsense", address), 401, "TOKEN_MALFORMED")
    })
  )

  it.effect("include wrong tokens for /metrics, and never block the right one", () =>
    Effect.gen(function* () {
      const scrape = (authorization?: string) => attempt(authorization, "203.0.113.7", "/metrics")
      assert.deepStrictEqual(codes(yield* sendSeveral(4, scrape())), Array(4).fill("TOKEN_MISSING"))
      const guesses = ["Bearer wrong", "Basic wrong", `Bearer ${unknownToken}`, "Bearer wrong"]
      const answers = yield* Effect.forEach(guesses, scrape)
      assert.deepStrictEqual(codes(answers), ["TOKEN_INVALID", "TOKEN_MALFORMED", "TOKEN_INVALID", "RATE_LIMITED"])
      assertLimited(answers[3]!, "failures", 3)
      assert.strictEqual((yield* scrape(`Bearer ${Redacted.value(guessing.metricsToken)}`)).status, 200)
    })
  )

  it.effect("include uses of a rotated key while a node still caches it", () =>
    Effect.gen(function* () {
      const license = yield* issue()
      const address = "203.0.113.6"
      const check = attempt(`License ${license.license_key}`, address, runtime)
      assertRefused(yield* check, 422, "VALIDATION_ERROR")
      assertAnswered(yield* license.post("rotate-key"), 200)
      const body = { fingerprint: "f" }
      const { send } = yield* TestServer
      const used = send({
        method: "POST",
        path: runtime,
        body,
        headers: { authorization: `License ${license.license_key}`, ...fromAddress(address) }
      })
      assert.deepStrictEqual(codes(yield* sendSeveral(4, used)), [
        ...Array(3).fill("LICENSE_KEY_INVALID"),
        "RATE_LIMITED"
      ])
    })
  )
})

layer(TestServer.layerOver({ ...withProxy, rateFailures: 3 }).pipe(Layer.provideMerge(DatabaseProxy.layer)))(
  "Failed credentials without a database",
  (it) => {
    it.effect("are still counted, and malformed ones refused", () =>
      Effect.gen(function* () {
        const { send } = yield* TestServer
        const wire = yield* DatabaseProxy
        // The bootstrap token is cached from here on.
        yield* send({ path: "/api/v1/products", headers: { authorization: "Bearer nonsense" } })
        yield* wire.disconnect
        const invalidRequest = send({ path: "/api/v1/products", headers: { authorization: "Bearer nonsense" } })
        assert.deepStrictEqual(codes(yield* sendSeveral(4, invalidRequest)), [
          "TOKEN_MALFORMED",
          "TOKEN_MALFORMED",
          "RATE_LIMITED",
          "RATE_LIMITED"
        ])
        yield* wire.reconnect
      })
    )
  }
)

layer(TestServer.layerWith({ rateFailures: 0 }))("A limit of 0", (it) => {
  it.effect("disables the limit and its headers", () =>
    Effect.gen(function* () {
      const { send } = yield* TestServer
      const answers = yield* sendSeveral(
        100,
        send({ path: "/api/v1/products", headers: { authorization: `Bearer ${unknownToken}` } })
      )
      for (const answer of answers) assertRefused(answer, 401, "TOKEN_INVALID")
      assert.notProperty(answers[0]!.headers, "ratelimit")
    })
  )
})
