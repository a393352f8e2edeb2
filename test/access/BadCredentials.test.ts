/** Authorization headers that no client library sends, written as bytes to both APIs. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import * as LicenseKey from "../../src/licensing/model/LicenseKey.ts"
import { assertAnswered, assertRefused } from "../support/http/Http.ts"
import { issue } from "../support/http/IssuedLicenses.ts"
import { TestServer } from "../support/http/TestServer.ts"

const body = '{"fingerprint":"f"}'

/** Sends one request with these header lines, after which the connection closes. */
const rawRequests = Effect.map(TestServer, ({ exchange }) => ({
  management: (...lines: ReadonlyArray<string>) =>
    exchange(
      Buffer.from(
        ["GET /api/v1/products HTTP/1.1", "Host: x", "Connection: close", ...lines, "", ""].join("\r\n"),
        "latin1"
      )
    ),
  runtime: (...lines: ReadonlyArray<string>) =>
    exchange(
      Buffer.from(
        [
          "POST /api/v1/license/check HTTP/1.1",
          "Host: x",
          "Connection: close",
          "Content-Type: application/json",
          `Content-Length: ${body.length}`,
          ...lines,
          "",
          body
        ].join("\r\n"),
        "latin1"
      )
    )
}))

layer(TestServer.layer)("A management token", (it) => {
  it.effect("is accepted with its scheme in any case and any spaces between them", () =>
    Effect.gen(function* () {
      const { management } = yield* rawRequests
      const { adminToken } = yield* TestServer
      for (const scheme of ["Bearer ", "bearer ", "BEARER ", "bEaReR ", "Bearer   ", "Bearer\t", "\t Bearer "]) {
        assertAnswered(yield* management(`Authorization: ${scheme}${adminToken}`), 200)
        assertAnswered(yield* management(`AUTHORIZATION:${scheme}${adminToken}  `), 200)
      }
    })
  )

  it.effect("is missing if there is no header, an empty one, or only the scheme", () =>
    Effect.gen(function* () {
      const { management } = yield* rawRequests
      for (const lines of [
        [],
        ["Authorization:"],
        ["Authorization:   "],
        ["Authorization: Bearer"],
        ["Authorization: bearer  "]
      ]) {
        assertRefused(yield* management(...lines), 401, "TOKEN_MISSING")
      }
    })
  )

  it.effect("is malformed if it is anything else", () =>
    Effect.gen(function* () {
      const { management } = yield* rawRequests
      const { adminToken } = yield* TestServer
      const values = [
        adminToken,
        `Basic ${adminToken}`,
        `License ${adminToken}`,
        `Bearer${adminToken}`,
        `Bearer: ${adminToken}`,
        `Bearer "${adminToken}"`,
        `Bearer ${adminToken},`,
        `Bearer ${adminToken} ${adminToken}`,
        `Bearer ${adminToken}, Bearer ${adminToken}`,
        `Bearer ${adminToken.toUpperCase()}`,
        `Bearer ${adminToken}\u00e4`,
        "Bearer \u00ff\u00fe",
        "Bearer null",
        "Bearer undefined",
        "Bearer [object Object]",
        "Bearer ' OR 1=1 --",
        "Bearer ../../etc/passwd",
        `Bearer ${"a".repeat(15_000)}`,
        `Bearer lsm_${"A".repeat(15_000)}`,
        `Bearer ${"a.".repeat(7_000)}`
      ]
      for (const value of values) assertRefused(yield* management(`Authorization: ${value}`), 401, "TOKEN_MALFORMED")
    })
  )

  it.effect("is malformed if the header is repeated, even with the same valid token", () =>
    Effect.gen(function* () {
      const { management } = yield* rawRequests
      const { adminToken } = yield* TestServer
      const right = `Authorization: Bearer ${adminToken}`
      for (const lines of [
        [right, right],
        [right, "authorization: Bearer x"],
        ["AUTHORIZATION: Basic eDp4", right],
        [right, "Authorization:"]
      ]) {
        assertRefused(yield* management(...lines), 401, "TOKEN_MALFORMED")
      }
    })
  )

  it.effect("is accepted from the header only", () =>
    Effect.gen(function* () {
      const { adminToken, send } = yield* TestServer
      const { management } = yield* rawRequests
      for (const name of ["access_token", "token", "api_key", "authorization"]) {
        assertRefused(
          yield* send({ path: `/api/v1/products?${name}=${adminToken}`, anonymous: true }),
          401,
          "TOKEN_MISSING"
        )
        assertRefused(yield* management(`Cookie: ${name}=${adminToken}`), 401, "TOKEN_MISSING")
      }
      for (const name of ["X-Api-Key", "Proxy-Authorization", "X-Authorization", "X-Forwarded-Authorization"]) {
        assertRefused(yield* management(`${name}: Bearer ${adminToken}`), 401, "TOKEN_MISSING")
      }
    })
  )

  it.effect("with a NUL, a line break or 64 KiB is rejected before routing", () =>
    Effect.gen(function* () {
      const { management, runtime } = yield* rawRequests
      const { adminToken } = yield* TestServer
      const values = [
        `\u0000`,
        `${adminToken}\u0000`,
        `\u0000${adminToken}`,
        `${adminToken}\r`,
        "\u0001",
        "a".repeat(65_536)
      ]
      for (const value of values) {
        assertRefused(yield* management(`Authorization: Bearer ${value}`), 400, "BAD_REQUEST")
        assertRefused(yield* runtime(`Authorization: License ${value}`), 400, "BAD_REQUEST")
      }
    })
  )
})

layer(TestServer.layer)("A license key", (it) => {
  it.effect("is accepted with its scheme in any case, and with the key in any typed form", () =>
    Effect.gen(function* () {
      const { runtime } = yield* rawRequests
      const { license_key } = yield* issue()
      const spellings = [license_key, license_key.toLowerCase(), license_key.replaceAll("-", ""), `  ${license_key}`]
      for (const spelling of spellings) {
        for (const scheme of ["License", "license", "LICENSE"]) {
          assertRefused(yield* runtime(`Authorization: ${scheme} ${spelling}`), 404, "DEVICE_NOT_FOUND")
        }
      }
    })
  )

  it.effect("is missing without a header, under another scheme, or with only the scheme", () =>
    Effect.gen(function* () {
      const { runtime } = yield* rawRequests
      const { adminToken } = yield* TestServer
      const { license_key } = yield* issue()
      for (const value of ["", "License", "license  ", `Bearer ${adminToken}`, `Bearer ${license_key}`, license_key]) {
        const answer = yield* runtime(`Authorization: ${value}`)
        assertRefused(answer, 401, "LICENSE_KEY_MISSING")
        assert.strictEqual(answer.headers["www-authenticate"], 'License realm="licensing"')
      }
      assertRefused(yield* runtime(), 401, "LICENSE_KEY_MISSING")
    })
  )

  it.effect("is asked for by its scheme, however the path is written", () =>
    Effect.gen(function* () {
      const { send } = yield* TestServer
      const answer = yield* send({ method: "POST", path: "/api/v1/l%69cense/validate", body: {}, anonymous: true })
      assertRefused(answer, 401, "LICENSE_KEY_MISSING")
      assert.strictEqual(answer.headers["www-authenticate"], 'License realm="licensing"')
    })
  )

  it.effect("is invalid if it is mistyped, unknown, or sent twice", () =>
    Effect.gen(function* () {
      const { runtime } = yield* rawRequests
      const { license_key } = yield* issue()
      const right = `Authorization: License ${license_key}`
      const unknown = LicenseKey.fromBytes(new Uint8Array(28))
      const other = license_key.endsWith("0") ? "1" : "0"
      for (const value of [
        unknown,
        license_key.slice(0, -1) + other,
        `${license_key}0`,
        "LK-",
        "x".repeat(15_000),
        "\u00e4"
      ]) {
        assertRefused(yield* runtime(`Authorization: License ${value}`), 401, "LICENSE_KEY_INVALID")
      }
      for (const lines of [
        [right, right],
        [right, "Authorization: License x"],
        ["authorization: Bearer x", right]
      ]) {
        assertRefused(yield* runtime(...lines), 401, "LICENSE_KEY_INVALID")
      }
    })
  )

  it.effect("that was rotated is invalid, even if the body is invalid too", () =>
    Effect.gen(function* () {
      const { send } = yield* TestServer
      const license = yield* issue()
      const ask = (body: unknown) =>
        send({
          method: "POST",
          path: "/api/v1/license/check",
          headers: { authorization: `License ${license.license_key}` },
          body
        })
      const faults = [
        ["{", 400, "INVALID_JSON"],
        [{ unknown: 1 }, 400, "INVALID_JSON"],
        [{}, 422, "VALIDATION_ERROR"],
        [{ fingerprint: "" }, 422, "VALIDATION_ERROR"]
      ] as const
      for (const [body, status, code] of faults) assertRefused(yield* ask(body), status, code)
      // The instance caches the key, and this is its last valid use.
      assertRefused(yield* ask({ fingerprint: "f" }), 404, "DEVICE_NOT_FOUND")
      assertAnswered(yield* license.post("rotate-key"), 200)
      for (const [body] of faults) assertRefused(yield* ask(body), 401, "LICENSE_KEY_INVALID")
    })
  )
})
