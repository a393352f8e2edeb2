/** Which requests the fast path handles, which it leaves to the framework path, and that every request gets one answer. */
import { assert, layer } from "@effect/vitest"
import { Cause, Deferred, Effect, Exit, Fiber, References } from "effect"
import { type Refusal, refuse } from "../../../src/contract/api/Failure.ts"
import { bodyOf } from "../../../src/edge/requests/FastPath.ts"
import type { AdmittedRequest, Body, FastOperation, Outcome } from "../../../src/licensing/runtime/FastOperation.ts"
import {
  captureLogs,
  logged,
  operationPath,
  operationStartedWith,
  requestId,
  serveFastPath
} from "../../support/http/FastPath.ts"
import { assertRefused, exchange, send } from "../../support/http/Http.ts"

const body = '{"name":"\u017d"}'

const asking = (port: number, headers: { readonly [name: string]: string } = {}, more: object = {}) =>
  send(port, { method: "POST", path: operationPath, headers, body, ...more })

/** An operation that goes on with every body and ends with this outcome. */
const ending = (outcome: () => Outcome): FastOperation => operationStartedWith((answer) => answer(outcome()))

layer(captureLogs, { excludeTestServices: true })("A request", (it) => {
  it.effect("that is plain takes the fast path", () =>
    Effect.gen(function* () {
      const { counted, port } = yield* serveFastPath()
      for (const answer of [
        yield* asking(port),
        yield* asking(port, { connection: "close", cookie: "a=b", "x-forwarded-for": "203.0.113.1", accept: "*/*" }),
        yield* asking(port, { origin: "https://app.example", te: "trailers", "content-language": "en" })
      ]) {
        assert.strictEqual(answer.status, 200)
        assert.strictEqual(answer.text, `fast ${body}`)
        assert.strictEqual(answer.headers["content-type"], "application/json")
        assert.strictEqual(answer.headers["content-length"], String(Buffer.byteLength(answer.text)))
      }
      assert.deepStrictEqual(
        counted.map(({ method, route, status, refused }) => [method, route, status, refused]),
        Array(3).fill(["POST", operationPath, 200, undefined])
      )
    }).pipe(Effect.scoped)
  )

  it.effect("with other headers or targets takes the framework path, with its body", () =>
    Effect.gen(function* () {
      const { counted, opened, port } = yield* serveFastPath()
      const headers: ReadonlyArray<Record<string, string>> = [
        { "content-type": "application/json; charset=utf-8" },
        { "content-type": "application/json;" },
        { "content-type": "Application/JSON" },
        { "content-type": "application/json, application/json" },
        { "content-encoding": "identity" },
        { "content-encoding": "" },
        { expect: "100-continue" },
        { expect: "something-else" }
      ]
      for (const more of headers) {
        const { text } = yield* asking(port, more)
        assert.match(text, /^framework (\{|UNSUPPORTED)/, JSON.stringify(more))
      }
      for (const target of [
        `${operationPath}?`,
        `${operationPath}?a=b`,
        `${operationPath}/`,
        `${operationPath}#a`,
        operationPath.toUpperCase(),
        `//x${operationPath}`
      ]) {
        assert.strictEqual((yield* asking(port, {}, { path: target })).text, `framework ${body}`, target)
      }
      for (const target of [`http://x${operationPath}`, operationPath.replace("p", "%70")]) {
        assert.strictEqual((yield* asking(port, {}, { path: target })).text, `framework ${body}`, target)
      }
      for (const method of ["PUT", "PATCH", "DELETE", "OPTIONS"]) {
        assert.strictEqual((yield* asking(port, {}, { method })).text, `framework ${body}`, method)
      }
      const chunked = yield* send(port, { method: "POST", path: operationPath, chunks: [body] })
      assert.strictEqual(chunked.text, `framework ${body}`)
      assert.strictEqual(opened.length, 0, "none was looked at by the operation")
      assert.strictEqual(counted.length, 0)
    }).pipe(Effect.scoped)
  )

  it.effect("without a Host header, or with a body beyond the limit, takes the framework path", () =>
    Effect.gen(function* () {
      const { opened, port } = yield* serveFastPath()
      const head = `POST ${operationPath} HTTP/1.1\r\nConnection: close\r\nContent-Type: application/json\r\n`
      const nameless = yield* exchange(port, `${head}Content-Length: 2\r\n\r\n{}`)
      assert.strictEqual(nameless.text, "framework {}")
      const long = yield* exchange(port, `${head}Host: x\r\nContent-Length: 262145\r\n\r\n`)
      assert.strictEqual(long.text, "framework PAYLOAD_TOO_LARGE")
      assert.strictEqual(opened.length, 0)
      const whole = Buffer.alloc(32_768, " ")
      assert.strictEqual((yield* asking(port, {}, { body: whole })).text, `fast ${whole}`)
    }).pipe(Effect.scoped)
  )

  it.effect("that the operation declines after reading it takes the framework path, with the whole body", () =>
    Effect.gen(function* () {
      const bodies = ["", "{}", body, "\u0000", "x".repeat(200_000)]
      const unopened = yield* serveFastPath({ admit: () => undefined })
      const unread = yield* serveFastPath({ admit: () => () => Effect.fail("whatever") })
      const broken = yield* serveFastPath({ admit: () => () => Effect.die("whatever") })
      for (const { counted, port } of [unopened, unread, broken]) {
        for (const body of bodies) {
          assert.strictEqual((yield* asking(port, {}, { body })).text, `framework ${body}`)
        }
        assert.strictEqual(counted.length, 0)
      }
    }).pipe(Effect.scoped)
  )

  it.effect("that is logged takes the framework path", () =>
    Effect.gen(function* () {
      for (const [level, way] of [
        ["All", "framework"],
        ["Trace", "framework"],
        ["Debug", "framework"],
        ["Info", "fast"],
        ["None", "fast"]
      ] as const) {
        const { port } = yield* serveFastPath().pipe(Effect.provideService(References.MinimumLogLevel, level))
        assert.strictEqual((yield* asking(port)).text, `${way} ${body}`, level)
      }
    }).pipe(Effect.scoped)
  )
})

/** Has an operation fail on one request while another one waits for its answer, which then must come. */
const harmed = Effect.fnUntraced(function* (failing: FastOperation) {
  const release = yield* Deferred.make<() => Body>()
  const begun = yield* Deferred.make<void>()
  const waiting = operationStartedWith((answer) => {
    Effect.runSync(Deferred.succeed(begun, undefined))
    answer(Deferred.await(release))
  })
  const { counted, port, thrown } = yield* serveFastPath({
    admit: (head) => (head.headers["x-fails"] === undefined ? waiting : failing).admit(head)
  })
  const other = yield* Effect.forkChild(asking(port))
  yield* Deferred.await(begun)
  logged.length = 0
  const failed = yield* asking(port, { "x-fails": "yes" })
  yield* Deferred.succeed(release, () => bodyOf("unharmed"))
  assert.strictEqual((yield* Fiber.join(other)).text, "unharmed")
  assert.deepStrictEqual(thrown, [])
  return { failed, counted }
})

layer(captureLogs, { excludeTestServices: true })("An operation", (it) => {
  const boom = () => {
    throw new Error("boom")
  }
  const failing: ReadonlyArray<readonly [string, FastOperation]> = [
    ["throws when it looks at the body", { admit: () => boom as AdmittedRequest }],
    ["throws when it begins", operationStartedWith(boom)],
    ["dies", ending(() => Exit.die(new Error("boom")))],
    ["dies after a while", ending(() => Effect.andThen(Effect.yieldNow, Effect.die(new Error("boom"))))],
    ["answers with what is no text", ending(() => Exit.succeed(() => undefined as never))],
    ["throws when its text is made", ending(() => Exit.succeed(boom))]
  ]
  for (const [what, operation] of failing) {
    it.effect(`that ${what} gives one 500 with a record in the log, and harms no other request`, () =>
      Effect.gen(function* () {
        const { counted, failed } = yield* harmed(operation)
        assertRefused(failed, 500, "INTERNAL_ERROR")
        assert.notInclude(failed.text, "boom")
        assert.deepStrictEqual(
          counted.map(({ refused, status }) => [status, refused]),
          [
            [500, "INTERNAL_ERROR"],
            [200, undefined]
          ]
        )
        assert.strictEqual(logged.length, 1)
        assert.strictEqual(logged[0]?.level, "Error")
        assert.strictEqual(logged[0]?.requestId, failed.headers["x-request-id"])
        assert.include(logged[0]?.text, `"method":"POST","route":"${operationPath}"`)
      }).pipe(Effect.scoped)
    )
  }

  it.effect("whose answer is refused is answered in the envelope, and counted once", () =>
    Effect.gen(function* () {
      const refusal = refuse("USAGE_LIMIT_EXCEEDED", "There is no more of it: send less.", "exports")
      const { counted, port } = yield* serveFastPath(ending(() => Exit.fail(refusal as Refusal)))
      logged.length = 0
      const answer = yield* asking(port, { "x-request-id": requestId })
      assertRefused(answer, 403, "USAGE_LIMIT_EXCEEDED", "exports")
      assert.strictEqual(answer.headers["x-request-id"], requestId)
      assert.deepStrictEqual(
        counted.map(({ refused, status }) => [status, refused]),
        [[403, "USAGE_LIMIT_EXCEEDED"]]
      )
      assert.deepStrictEqual(logged, [])
    }).pipe(Effect.scoped)
  )

  it.effect("whose answer is an effect that has not ended is waited for", () =>
    Effect.gen(function* () {
      const gate = yield* Deferred.make<() => Body, Refusal>()
      const { port } = yield* serveFastPath(ending(() => Deferred.await(gate)))
      const answers = yield* Effect.forkChild(Effect.all([asking(port), asking(port)], { concurrency: 2 }))
      yield* Effect.yieldNow
      yield* Deferred.succeed(gate, () => bodyOf("late"))
      assert.deepStrictEqual(
        (yield* Fiber.join(answers)).map(({ status, text }) => [status, text]),
        [
          [200, "late"],
          [200, "late"]
        ]
      )
      const refused = yield* serveFastPath(
        ending(() => Effect.fail(refuse("NOT_READY", "Not now: try again.") as Refusal))
      )
      assertRefused(yield* asking(refused.port), 503, "NOT_READY")
    }).pipe(Effect.scoped)
  )

  it.effect("whose answer's effect is interrupted answers that the service is stopping", () =>
    Effect.gen(function* () {
      const { port } = yield* serveFastPath(ending(() => Exit.failCause(Cause.interrupt())))
      assertRefused(yield* asking(port), 503, "NOT_READY")
    }).pipe(Effect.scoped)
  )

  it.effect("answers in any characters", () =>
    Effect.gen(function* () {
      const texts = ["", "plain", "caf\u00e9", "\u017d\u20ac", "\ud83d\ude00", `${"a".repeat(70_000)}\u00ff`]
      for (const text of texts) {
        const { port } = yield* serveFastPath(ending(() => Exit.succeed(() => bodyOf(text))))
        const answer = yield* asking(port)
        assert.strictEqual(answer.text, text)
        assert.strictEqual(answer.headers["content-length"], String(Buffer.byteLength(text)))
      }
    }).pipe(Effect.scoped)
  )

  it.effect("whose client has gone meanwhile answers nobody", () =>
    Effect.gen(function* () {
      const begun = yield* Deferred.make<(outcome: Outcome) => void>()
      const { closed, counted, port, thrown } = yield* serveFastPath(
        operationStartedWith((answer) => void Effect.runSync(Deferred.succeed(begun, answer)))
      )
      const gone = yield* Effect.forkChild(Effect.exit(asking(port, { connection: "close" })))
      const answer = yield* Deferred.await(begun)
      gone.interruptUnsafe()
      closed.cut()
      yield* closed.seen
      answer(Exit.succeed(() => bodyOf("too late")))
      answer(Exit.die(new Error("too late")))
      assert.deepStrictEqual(counted, [])
      assert.deepStrictEqual(thrown, [])
    }).pipe(Effect.scoped)
  )
})
