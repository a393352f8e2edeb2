/** Every request is counted once by each limit that concerns it, whichever way it went, or began to go. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { IpNetwork } from "effect/net"
import { RuntimePaths, runtimePaths } from "../../support/http/FastPath.ts"
import type { Answer } from "../../support/http/Http.ts"
import { assertAnswered, assertRefused } from "../../support/http/Http.ts"
import { issue } from "../../support/http/IssuedLicenses.ts"

const standing = ({ headers }: Answer) => String(headers["ratelimit"]).replaceAll(/;t=\d+/g, "")

layer(RuntimePaths.layerWith({ rateRuntime: 8, rateActivation: 3 }))("The limits of a license", (it) => {
  it.effect("count alike on both paths and have equal activities", () =>
    Effect.gen(function* () {
      const { asked, faceOf } = yield* RuntimePaths
      const twins = { fast: yield* issue({ max_activations: 0 }), framework: yield* issue({ max_activations: 0 }) }
      const faces = yield* Effect.forEach(runtimePaths, (way) =>
        Effect.gen(function* () {
          const { license_key } = twins[way]
          const call = (operation: string, as = way) =>
            asked(as, license_key, operation, { fingerprint: "m" }, { "x-request-id": "counted-alike" })
          const first = yield* call("check", "framework")
          assert.strictEqual(standing(first), '"runtime";r=7')
          const answers = [
            yield* call("check"),
            yield* call("activate"),
            yield* call("activate"),
            yield* call("activate"),
            yield* call("activate"),
            yield* call("validate"),
            yield* call("validate"),
            yield* call("validate"),
            yield* call("activate")
          ]
          assert.deepStrictEqual(
            answers.map((answer) => [answer.error.code ?? answer.status, standing(answer)]),
            [
              ["DEVICE_NOT_FOUND", '"runtime";r=6'],
              [200, '"runtime";r=5, "activation";r=2'],
              [200, '"runtime";r=4, "activation";r=1'],
              [200, '"runtime";r=3, "activation";r=0'],
              ["RATE_LIMITED", '"runtime";r=2, "activation";r=0'],
              [200, '"runtime";r=1'],
              [200, '"runtime";r=0'],
              ["RATE_LIMITED", '"runtime";r=0'],
              ["RATE_LIMITED", '"runtime";r=0']
            ]
          )
          return yield* Effect.forEach(answers, (answer) =>
            Effect.map(faceOf(answer), ({ headers: { "retry-after": _, ...headers }, ...face }) => ({
              ...face,
              headers
            }))
          )
        })
      )
      assert.deepStrictEqual(faces[0], faces[1])
    })
  )

  it.effect("count a request once if it began on the fast path and was left to the framework path", () =>
    Effect.gen(function* () {
      const { ask } = yield* RuntimePaths
      const { license_key } = yield* issue()
      const left: Array<string> = []
      for (const body of [{ fingerprint: "m" }, "{", {}, { unknown: 1 }, { is_container: true }, ""]) {
        left.push(standing(yield* ask("fast", license_key, "validate", body)))
      }
      const headers = { "content-type": "application/json; charset=utf-8" }
      left.push(standing(yield* ask("fast", license_key, "validate", { fingerprint: "m" }, headers)))
      left.push(standing(yield* ask("fast", license_key, "validate", { fingerprint: "m" })))
      assert.deepStrictEqual(
        left,
        [7, 6, 5, 4, 3, 2, 1, 0].map((remaining) => `"runtime";r=${remaining}`)
      )
      assertRefused(yield* ask("fast", license_key, "validate", "{"), 429, "RATE_LIMITED")
    })
  )
})

const proxied = { trustedProxies: [IpNetwork.fromStringUnsafe("127.0.0.0/8")] }

layer(RuntimePaths.layerWith({ ...proxied, rateRuntime: 3, rateFailures: 3 }))("Behind a proxy", (it) => {
  it.effect("a plain request is counted by the address that the proxy tells, as any other is", () =>
    Effect.gen(function* () {
      const { asked, remember } = yield* RuntimePaths
      const license = yield* issue()
      yield* remember(license)
      for (const [address, remaining] of [
        ["203.0.113.1", 2],
        ["203.0.113.1", 1],
        ["203.0.113.2", 2],
        ["198.51.100.1, 203.0.113.2", 1],
        ["2001:db8::1", 2],
        ["2001:db8::2", 1]
      ] as const) {
        const headers = { "x-forwarded-for": address }
        const answer = yield* asked("fast", license.license_key, "check", { fingerprint: "m" }, headers)
        assert.strictEqual(standing(answer), `"runtime";r=${remaining}`, address)
      }
    })
  )

  it.effect("the uses of a key that was rotated are failed credentials of that address, on both ways", () =>
    Effect.gen(function* () {
      const { ask, asked, faceOf } = yield* RuntimePaths
      const faces = yield* Effect.forEach(runtimePaths, (way, index) =>
        Effect.gen(function* () {
          const license = yield* issue()
          const headers = { "x-forwarded-for": `203.0.113.${10 + index}`, "x-request-id": "rotated-away" }
          const elsewhere = { "x-forwarded-for": "203.0.113.9" }
          yield* asked("framework", license.license_key, "check", { fingerprint: "m" }, elsewhere)
          assertAnswered(yield* license.post("rotate-key"), 200)
          const use = ask(way, license.license_key, "check", { fingerprint: "m" }, headers)
          const answers = [yield* use, yield* use, yield* use, yield* use]
          assert.deepStrictEqual(
            answers.map(({ error }) => error.code),
            [...Array(3).fill("LICENSE_KEY_INVALID"), "RATE_LIMITED"]
          )
          // The first one is the license's request as well: it was remembered then.
          assert.strictEqual(standing(answers[0]!), '"runtime";r=2, "failures";r=2')
          assert.strictEqual(standing(answers[1]!), '"failures";r=1')
          return yield* Effect.forEach(answers, (answer) =>
            Effect.map(faceOf(answer), ({ headers: { "retry-after": _, ...headers }, ...face }) => ({
              ...face,
              headers
            }))
          )
        })
      )
      assert.deepStrictEqual(faces[0], faces[1])
    })
  )

  it.effect("a wrong body under a key that was rotated is one failed credential", () =>
    Effect.gen(function* () {
      const { ask, asked } = yield* RuntimePaths
      const license = yield* issue()
      const elsewhere = { "x-forwarded-for": "203.0.113.9" }
      yield* asked("framework", license.license_key, "check", { fingerprint: "m" }, elsewhere)
      assertAnswered(yield* license.post("rotate-key"), 200)
      const headers = { "x-forwarded-for": "203.0.113.20" }
      const answer = yield* ask("fast", license.license_key, "check", "{", headers)
      assertRefused(answer, 401, "LICENSE_KEY_INVALID")
      assert.strictEqual(standing(answer), '"runtime";r=2, "failures";r=2')
    })
  )
})
