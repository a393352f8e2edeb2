/** Errors in a body, a key or a header have equal answers on both paths. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { Refusals } from "../../../src/insight/activities/Refusals.ts"
import * as LicenseKey from "../../../src/licensing/model/LicenseKey.ts"
import { listActivities } from "../../support/http/Activities.ts"
import { normalized, RuntimePaths, runtimePaths } from "../../support/http/FastPath.ts"
import { assertAnswered, assertRefused } from "../../support/http/Http.ts"
import { issue } from "../../support/http/IssuedLicenses.ts"

const rest = '"fingerprint":"m","feature_code":"exports","event_id":"e"'
const deep = (levels: number) => `{"fingerprint":${'{"a":'.repeat(levels)}1${"}".repeat(levels)}}`

/** Bodies of which no operation is asked, and that are refused with the same words everywhere. */
const everywhere: ReadonlyArray<readonly [string, string | Uint8Array, code: string]> = [
  ["empty", "", "INVALID_JSON"],
  ["white space", " \r\n\t", "INVALID_JSON"],
  ["no JSON", "{", "INVALID_JSON"],
  ["no JSON behind it", '{"fingerprint":"m"} x', "INVALID_JSON"],
  ["a byte order mark", '\ufeff{"fingerprint":"m"}', "INVALID_JSON"],
  ["no UTF-8", Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]), "INVALID_JSON"],
  ["an overlong encoding", Buffer.from([0x7b, 0x22, 0xc0, 0x80, 0x22, 0x3a, 0x31, 0x7d]), "INVALID_JSON"],
  ["an array", "[]", "INVALID_JSON"],
  ["an array of one", '[{"fingerprint":"m"}]', "INVALID_JSON"],
  ["null", "null", "INVALID_JSON"],
  ["a text", '"fingerprint"', "INVALID_JSON"],
  ["a number", "1", "INVALID_JSON"],
  ["too deep", deep(20), "INVALID_JSON"],
  ["too deep in arrays", `${"[".repeat(10_000)}`, "INVALID_JSON"],
  ["__proto__", '{"fingerprint":"m","__proto__":{"is_vm":true}}', "INVALID_JSON"],
  ["__proto__ in disguise", '{"fingerprint":"m","\\u005f_proto__":{}}', "INVALID_JSON"],
  ["a name with a backslash", '{"fingerprint":"m","\\\\":0}', "INVALID_JSON"],
  ["constructor", '{"fingerprint":"m","constructor":1}', "INVALID_JSON"],
  ["an unknown field", '{"fingerprint":"m","unknown":1}', "INVALID_JSON"],
  ["an unknown field twice", '{"unknown":1,"unknown":2}', "INVALID_JSON"]
]

/** A body that is right but for one byte, which a careless reader would replace. */
const spoilt = (before: string, after: string) =>
  Buffer.concat([Buffer.from(before), Buffer.from([0xff]), Buffer.from(after)])

const ofBindings: typeof everywhere = [
  ["no UTF-8 in a value", spoilt('{"fingerprint":"', '"}'), "INVALID_JSON"],
  ["a wrong type", '{"fingerprint":1}', "INVALID_JSON"],
  ["a null", '{"fingerprint":null}', "INVALID_JSON"],
  ["a deep value", deep(3), "INVALID_JSON"],
  ["no fingerprint", "{}", "VALIDATION_ERROR"],
  ["an empty fingerprint", '{"fingerprint":""}', "VALIDATION_ERROR"],
  ["a long fingerprint", `{"fingerprint":"${"f".repeat(513)}"}`, "VALIDATION_ERROR"],
  ["a container without ids", '{"is_container":true}', "VALIDATION_ERROR"],
  ["a container with a fingerprint", '{"is_container":true,"fingerprint":"m"}', "VALIDATION_ERROR"],
  ["a lone surrogate", '{"fingerprint":"\\ud800"}', "VALIDATION_ERROR"],
  ["NUL", '{"fingerprint":"a\\u0000"}', "VALIDATION_ERROR"]
]

const ofConsume: typeof everywhere = [
  ["no UTF-8 in a value", spoilt(`{${rest},"hostname":"`, '"}'), "INVALID_JSON"],
  ["no feature", '{"fingerprint":"m","event_id":"e"}', "VALIDATION_ERROR"],
  ["an amount of 0", `{${rest},"amount":0}`, "VALIDATION_ERROR"],
  ["an amount below 0", `{${rest},"amount":-1}`, "VALIDATION_ERROR"],
  ["half an amount", `{${rest},"amount":1.5}`, "VALIDATION_ERROR"],
  ["2^53", `{${rest},"amount":9007199254740992}`, "VALIDATION_ERROR"],
  ["1e400", `{${rest},"amount":1e400}`, "VALIDATION_ERROR"],
  ["an amount as text", `{${rest},"amount":"1"}`, "INVALID_JSON"],
  ["no fingerprint, but the rest", '{"feature_code":"exports","event_id":"e"}', "VALIDATION_ERROR"]
]

const ofLeases: typeof everywhere = [
  ["no UTF-8 in a value", spoilt('{"lease_token":"', '"}'), "INVALID_JSON"],
  ["no token", "{}", "VALIDATION_ERROR"],
  ["an empty token", '{"lease_token":""}', "VALIDATION_ERROR"],
  ["a token that is none", '{"lease_token":1}', "INVALID_JSON"],
  ["a NUL in the token", '{"lease_token":"\\u0000"}', "VALIDATION_ERROR"]
]

const operations: Record<string, typeof everywhere> = {
  activate: [...everywhere, ...ofBindings],
  validate: [...everywhere, ...ofBindings],
  check: [...everywhere, ...ofBindings],
  consume: [...everywhere, ...ofConsume],
  deactivate: [...everywhere, ...ofBindings],
  offline: [...everywhere, ...ofBindings],
  "floating/checkout": [...everywhere, ...ofBindings],
  "floating/heartbeat": [...everywhere, ...ofLeases],
  "floating/checkin": [...everywhere, ...ofLeases]
}

layer(RuntimePaths.layerWith(), { timeout: 60_000 })("A plain request", (it) => {
  for (const [operation, faults] of Object.entries(operations)) {
    it.effect(`with a body that is wrong is answered, and told of in the feed, as any other is: ${operation}`, () =>
      Effect.gen(function* () {
        const { ask, faceOf, remember } = yield* RuntimePaths
        const twins = { fast: yield* issue(), framework: yield* issue() }
        for (const way of runtimePaths) yield* remember(twins[way])
        for (const [what, body, code] of faults) {
          const headers = { "x-request-id": "a-wrong-body" }
          const plain = yield* ask("fast", twins.fast.license_key, operation, body, headers)
          const other = yield* ask("framework", twins.framework.license_key, operation, body, headers)
          assertRefused(plain, code === "INVALID_JSON" ? 400 : 422, code)
          assert.deepStrictEqual(yield* faceOf(plain), yield* faceOf(other), what)
        }
        yield* (yield* Refusals).pass
        const told = (id: string) =>
          Effect.map(listActivities({ license_id: id, source: "runtime" }), (rows) =>
            rows.map(({ sequence: _, ...row }) => normalized(JSON.stringify(row)).replaceAll(/issued-\d+/g, ""))
          )
        const rows = yield* told(twins.fast.id)
        assert.strictEqual(rows.length, faults.length + 1)
        assert.deepStrictEqual(rows, yield* told(twins.framework.id))
      })
    )
  }

  it.effect("with a key that is mistyped, unknown, missing or of another scheme is refused as any other is", () =>
    Effect.gen(function* () {
      const { ask, faceOf } = yield* RuntimePaths
      const { license_key } = yield* issue()
      const mistyped = license_key.slice(0, -1) + (license_key.endsWith("0") ? "1" : "0")
      const unknown = LicenseKey.fromBytes(new Uint8Array(28))
      for (const authorization of [
        `License ${mistyped}`,
        `License ${unknown}`,
        "License",
        "",
        `Bearer ${license_key}`
      ]) {
        const headers = { authorization, "x-request-id": "a-wrong-key" }
        for (const body of [{ fingerprint: "m" }, "{"]) {
          const plain = yield* ask("fast", "", "validate", body, headers)
          assert.strictEqual(plain.status, 401)
          assert.deepStrictEqual(
            yield* faceOf(plain),
            yield* faceOf(yield* ask("framework", "", "validate", body, headers))
          )
        }
      }
    })
  )

  it.effect("with a key that was rotated is refused as any other is, whatever its body, and the new key is not", () =>
    Effect.gen(function* () {
      const { ask, asked, faceOf, remember } = yield* RuntimePaths
      for (const body of [{ fingerprint: "m" }, "{", { unknown: 1 }, {}]) {
        const twins = { fast: yield* issue(), framework: yield* issue() }
        for (const way of runtimePaths) {
          yield* remember(twins[way])
          assertAnswered(yield* twins[way].post("rotate-key"), 200)
        }
        const headers = { "x-request-id": "a-rotated-key" }
        // The first time the node remembers the key, the second time it does not.
        for (const _ of ["first", "second"]) {
          const plain = yield* ask("fast", twins.fast.license_key, "validate", body, headers)
          const other = yield* ask("framework", twins.framework.license_key, "validate", body, headers)
          assertRefused(plain, 401, "LICENSE_KEY_INVALID")
          assert.deepStrictEqual(yield* faceOf(plain), yield* faceOf(other))
        }
      }
      const license = yield* issue()
      yield* remember(license)
      const { json } = yield* license.post("rotate-key")
      const { license_key } = (json as { readonly data: { readonly license_key: string } }).data
      assertRefused(
        yield* asked("fast", license.license_key, "check", { fingerprint: "m" }),
        401,
        "LICENSE_KEY_INVALID"
      )
      assertRefused(
        yield* asked("framework", license.license_key, "check", { fingerprint: "m" }),
        401,
        "LICENSE_KEY_INVALID"
      )
      const first = yield* ask("fast", license_key, "check", { fingerprint: "m" })
      assertRefused(first, 404, "DEVICE_NOT_FOUND")
      assertRefused(yield* asked("fast", license_key, "check", { fingerprint: "m" }), 404, "DEVICE_NOT_FOUND")
    })
  )

  it.effect("has the request's id if it is well-formed, otherwise a new one", () =>
    Effect.gen(function* () {
      const { asked, remember } = yield* RuntimePaths
      const license = yield* issue()
      yield* remember(license)
      for (const id of ["12345678", "a".repeat(64), "1234567", "a".repeat(65), "semi;colon", "", "<script>"]) {
        for (const way of runtimePaths) {
          const answer = yield* asked(way, license.license_key, "check", { fingerprint: "m" }, { "x-request-id": id })
          assertRefused(answer, 404, "DEVICE_NOT_FOUND")
          if (/^\w{8,64}$/.test(id)) assert.strictEqual(answer.headers["x-request-id"], id)
          else assert.match(String(answer.headers["x-request-id"]), /^req_[0-9A-Za-z]{10,}$/)
        }
      }
    })
  )
})

const origin = "https://app.example"

layer(RuntimePaths.layerWith({ corsOrigins: [origin], baseUrl: "https://licensing.example" }))("With CORS", (it) => {
  it.effect("a plain request has the headers of its origin, and those of TLS, as any other has", () =>
    Effect.gen(function* () {
      const { asked, faceOf, remember } = yield* RuntimePaths
      const license = yield* issue()
      yield* remember(license)
      for (const headers of [{ origin }, { origin: "https://evil.example" }, { origin: "null" }, {}]) {
        const more = { ...headers, "x-request-id": "across-origins" }
        const [fast, framework] = yield* Effect.forEach(runtimePaths, (way) =>
          Effect.flatMap(asked(way, license.license_key, "check", { fingerprint: "m" }, more), faceOf)
        )
        assert.deepStrictEqual(fast, framework)
        assert.strictEqual(fast?.headers["access-control-allow-origin"], headers.origin === origin ? origin : undefined)
        assert.strictEqual(fast?.headers["vary"], "Origin")
        assert.property(fast?.headers, "strict-transport-security")
      }
    })
  )
})
