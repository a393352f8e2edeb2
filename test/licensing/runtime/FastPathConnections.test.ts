/** Plain requests as bytes: in pieces, in rows, half, and on connections that end. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { converse, statuses } from "../../support/http/Conversation.ts"
import { contentTypes, type RuntimePath, RuntimePaths, runtimePaths } from "../../support/http/FastPath.ts"
import { assertRefused, hold } from "../../support/http/Http.ts"
import { issue } from "../../support/http/IssuedLicenses.ts"
import { TestServer } from "../../support/http/TestServer.ts"

const remembered = Effect.gen(function* () {
  const license = yield* issue({ max_activations: 0 })
  yield* (yield* RuntimePaths).remember(license)
  return license.license_key
})

const bodyOf = (name: string) => `{"fingerprint":"${name}"}`

/** The bytes of a request that activates this machine, with these header lines. */
const request = (
  key: string,
  name: string,
  lines: ReadonlyArray<string> = [],
  way: RuntimePath = "fast",
  version = "1.1"
) =>
  [
    `POST /api/v1/license/activate HTTP/${version}`,
    "Host: x",
    `Authorization: License ${key}`,
    `Content-Type: ${contentTypes[way]}`,
    `Content-Length: ${bodyOf(name).length}`,
    ...lines,
    "",
    bodyOf(name)
  ].join("\r\n")

const closing = ["Connection: close"]

layer(RuntimePaths.layerWith(), { timeout: 60_000 })("A connection", (it) => {
  it.effect("answers pipelined requests in order, on either path", () =>
    Effect.gen(function* () {
      const { taken } = yield* RuntimePaths
      const key = yield* remembered
      yield* taken
      const row = Array.from({ length: 16 }, (_, index) =>
        request(
          key,
          `m${index}`,
          [`X-Request-Id: in-a-row-${index}`, ...(index === 15 ? closing : [])],
          index % 3 === 1 ? "framework" : "fast"
        )
      )
      const text = yield* converse([row.join("")])
      assert.deepStrictEqual(statuses(text), Array(16).fill(200))
      assert.deepStrictEqual(
        Array.from(text.matchAll(/x-request-id: (\S+)/gi), ([, id]) => id),
        row.map((_, index) => `in-a-row-${index}`)
      )
      const went = yield* taken
      assert.strictEqual(went.filter((way) => way === "fast").length, 11)
    })
  )

  it.effect("answers a request that arrives byte by byte, or with its body in pieces", () =>
    Effect.gen(function* () {
      const { taken } = yield* RuntimePaths
      const key = yield* remembered
      yield* taken
      const whole = request(key, "bytewise", closing)
      for (const pieces of [
        [...whole],
        [whole.slice(0, -5), whole.slice(-5)],
        [whole.slice(0, -20), whole.slice(-20, -10), whole.slice(-10)]
      ]) {
        assert.deepStrictEqual(statuses(yield* converse(pieces)), [200])
      }
      assert.deepStrictEqual(yield* taken, Array(3).fill("fast"))
    })
  )

  it.effect("harms no other client when it is closed at any point", () =>
    Effect.gen(function* () {
      const { ask } = yield* RuntimePaths
      const { abandon } = yield* TestServer
      const key = yield* remembered
      for (const way of runtimePaths) {
        const whole = request(key, "gone", [], way)
        for (const end of [1, whole.length - 200, whole.length - 10, whole.length - 1, whole.length])
          for (let time = 0; time < 5; time++) yield* abandon(whole.slice(0, end))
        yield* Effect.forEach(Array(50).fill(whole + whole), abandon, { concurrency: 50 })
        assert.strictEqual((yield* ask(way, key, "validate", { fingerprint: "gone" })).status, 200)
      }
    })
  )

  it.effect("of HTTP/1.0, or that is to be closed, is closed after the answer, and else kept", () =>
    Effect.gen(function* () {
      const key = yield* remembered
      const faces = yield* Effect.forEach(runtimePaths, (way) =>
        Effect.gen(function* () {
          const id = "X-Request-Id: kept-or-closed"
          const old = yield* converse([request(key, "m", [id], way, "1.0")])
          const kept = yield* converse([
            request(key, "m", [id, "Connection: keep-alive"], way, "1.0") + request(key, "m", [id], way, "1.0")
          ])
          const closed = yield* converse([request(key, "m", [id, ...closing], way)])
          const both = yield* converse([request(key, "m", [id], way) + request(key, "m", [id, ...closing], way)])
          assert.deepStrictEqual([old, kept, closed, both].map(statuses), [[200], [200, 200], [200], [200, 200]])
          return [old, kept, closed, both].map((text) =>
            text
              .replaceAll(/Date: .*/g, "")
              .split("\r\n")
              .filter((line) => !line.startsWith("{"))
              .map((line) => line.toLowerCase())
              .toSorted()
          )
        })
      )
      assert.deepStrictEqual(faces[0], faces[1])
    })
  )

  it.effect("on which headers are repeated is answered alike on both ways", () =>
    Effect.gen(function* () {
      const key = yield* remembered
      const authorization = `Authorization: License ${key}`
      const length = `Content-Length: ${bodyOf("m").length}`
      const cases: ReadonlyArray<readonly [ReadonlyArray<string>, number]> = [
        [[authorization], 401],
        [["authorization: License x"], 401],
        [["AUTHORIZATION:"], 401],
        [[length], 400],
        [["Content-Length: 0"], 400],
        [["Content-Length: 99"], 400],
        [["Transfer-Encoding: chunked"], 400],
        [["Transfer-Encoding: identity"], 400],
        [["Content-Type: text/plain"], 200],
        [["Host: y"], 400],
        [["hOST:"], 400],
        [["X-Request-Id: first-first", "X-Request-Id: second-second"], 200],
        [["X-Forwarded-For: 1.1.1.1", "X-Forwarded-For: x"], 200],
        [["Upgrade: h2c"], 200],
        [["Idempotency-Key: a", "Idempotency-Key: b"], 200]
      ]
      for (const [lines, status] of cases) {
        for (const way of runtimePaths) {
          const text = yield* converse([request(key, "m", [...lines, ...closing], way)])
          assert.deepStrictEqual(statuses(text), [status], `${way} ${lines.join()} ${text}`)
        }
      }
    })
  )

  it.effect("does not treat the rest of a body as a second request", () =>
    Effect.gen(function* () {
      const { taken } = yield* RuntimePaths
      const key = yield* remembered
      const inner = request(key, "smuggled", closing)
      const head = `POST /api/v1/license/activate HTTP/1.1\r\nHost: x\r\nAuthorization: License ${key}\r\n`
      yield* taken
      // What stands in a body is the body, however much it looks like a request.
      const outer = `${head}Content-Type: application/json\r\nConnection: close\r\nContent-Length: ${inner.length}\r\n\r\n${inner}`
      assert.deepStrictEqual(statuses(yield* converse([outer])), [400])
      // A length that is none, with the inner request where a body would be.
      for (const length of ["+5", "0x5", "5,5", "-1", " ", "5 5", "1e1", "18446744073709551617"]) {
        const text = yield* converse([
          `${head}Content-Type: application/json\r\nContent-Length: ${length}\r\n\r\n${inner}`
        ])
        assert.deepStrictEqual(statuses(text), [400], length)
      }
      assert.deepStrictEqual(yield* taken, ["framework"])
    })
  )

  it.effect("with a target in absolute form or with a query is answered alike", () =>
    Effect.gen(function* () {
      const key = yield* remembered
      for (const target of [
        "http://x/api/v1/license/activate",
        "/api/v1/license/activate?",
        "/api/v1/license/activate?a=b"
      ]) {
        const answers = yield* Effect.forEach(runtimePaths, (way) =>
          converse([request(key, "m", closing, way).replace("/api/v1/license/activate", target)])
        )
        assert.deepStrictEqual(answers.map(statuses), [[200], [200]], target)
      }
      for (const target of [
        "/api/v1/license/activate/",
        "//api/v1/license/activate",
        "/API/v1/license/activate",
        "/api/v1/license/activate#a",
        "*"
      ]) {
        const answers = yield* Effect.forEach(runtimePaths, (way) =>
          converse([request(key, "m", closing, way).replace("/api/v1/license/activate", target)])
        )
        assert.deepStrictEqual(answers[0]?.slice(0, 12), answers[1]?.slice(0, 12), target)
        assert.notDeepInclude(answers.map(statuses), [200])
      }
    })
  )

  it.effect("answers a request with a late body when it has arrived, and others meanwhile", () =>
    Effect.gen(function* () {
      const { asked } = yield* RuntimePaths
      const { port } = yield* TestServer
      const key = yield* remembered
      const whole = request(key, "late", closing)
      const slow = yield* Effect.forEach(Array(20).fill(0), () => hold(port, whole.slice(0, -3)))
      assertRefused(yield* asked("fast", key, "validate", { fingerprint: "late" }), 404, "DEVICE_NOT_FOUND")
      for (const { write } of slow) yield* write(whole.slice(-3))
      for (const { answer } of slow) assert.strictEqual((yield* answer).status, 200)
    })
  )
})
