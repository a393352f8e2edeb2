/** What goes the direct way, what is left to the general one, and that whatever an operation does, there is one answer. */
import { assert, layer } from "@effect/vitest"
import { Cause, Deferred, Effect, Exit, Fiber, References, Tracer } from "effect"
import { type Refusal, refuse } from "../../src/api/Failure.ts"
import { type AdmittedRequest, type Body, bodyOf, type FastOperation, type Outcome } from "../../src/http/FastPath.ts"
import { answering, capturing, path, requestId, serving, told } from "../support/Directing.ts"
import { assertRefused } from "../support/Envelopes.ts"
import { exchange, send } from "../support/RawHttp.ts"

const body = '{"name":"\u017d"}'

const asking = (port: number, headers: { readonly [name: string]: string } = {}, more: object = {}) =>
  send(port, { method: "POST", path, headers, body, ...more })

/** An operation that goes on with every body and ends as it is told to. */
const ending = (outcome: () => Outcome): FastOperation => answering((answer) => answer(outcome()))

layer(capturing, { excludeTestServices: true })("A request", (it) => {
  it.effect("that is plain goes the direct way", () =>
    Effect.gen(function* () {
      const { counted, port } = yield* serving()
      for (const answer of [
        yield* asking(port),
        yield* asking(port, { connection: "close", cookie: "a=b", "x-forwarded-for": "203.0.113.1", accept: "*/*" }),
        yield* asking(port, { origin: "https://app.example", te: "trailers", "content-language": "en" })
      ]) {
        assert.strictEqual(answer.status, 200)
        assert.strictEqual(answer.text, `direct ${body}`)
        assert.strictEqual(answer.headers["content-type"], "application/json")
        assert.strictEqual(answer.headers["content-length"], String(Buffer.byteLength(answer.text)))
      }
      assert.deepStrictEqual(
        counted.map(({ method, route, status, refused }) => [method, route, status, refused]),
        Array(3).fill(["POST", path, 200, undefined])
      )
    }).pipe(Effect.scoped)
  )

  it.effect("that asks for more goes the general way, with its body", () =>
    Effect.gen(function* () {
      const { counted, opened, port } = yield* serving()
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
        assert.match(text, /^general (\{|UNSUPPORTED)/, JSON.stringify(more))
      }
      for (const target of [`${path}?`, `${path}?a=b`, `${path}/`, `${path}#a`, path.toUpperCase(), `//x${path}`]) {
        assert.strictEqual((yield* asking(port, {}, { path: target })).text, `general ${body}`, target)
      }
      for (const target of [`http://x${path}`, path.replace("p", "%70")]) {
        assert.strictEqual((yield* asking(port, {}, { path: target })).text, `general ${body}`, target)
      }
      for (const method of ["PUT", "PATCH", "DELETE", "OPTIONS"]) {
        assert.strictEqual((yield* asking(port, {}, { method })).text, `general ${body}`, method)
      }
      const chunked = yield* send(port, { method: "POST", path, chunks: [body] })
      assert.strictEqual(chunked.text, `general ${body}`)
      assert.strictEqual(opened.length, 0, "none was looked at by the operation")
      assert.strictEqual(counted.length, 0)
    }).pipe(Effect.scoped)
  )

  it.effect("without a Host header, or with a body beyond the limit, goes the general way", () =>
    Effect.gen(function* () {
      const { opened, port } = yield* serving()
      const head = `POST ${path} HTTP/1.1\r\nConnection: close\r\nContent-Type: application/json\r\n`
      const nameless = yield* exchange(port, `${head}Content-Length: 2\r\n\r\n{}`)
      assert.strictEqual(nameless.text, "general {}")
      const long = yield* exchange(port, `${head}Host: x\r\nContent-Length: 262145\r\n\r\n`)
      assert.strictEqual(long.text, "general PAYLOAD_TOO_LARGE")
      assert.strictEqual(opened.length, 0)
      const whole = Buffer.alloc(262_144, " ")
      assert.strictEqual((yield* asking(port, {}, { body: whole })).text, `direct ${whole}`)
    }).pipe(Effect.scoped)
  )

  it.effect("that the operation does not know after all goes the general way, with the whole body", () =>
    Effect.gen(function* () {
      const bodies = ["", "{}", body, "\u0000", "x".repeat(200_000)]
      const unopened = yield* serving({ admit: () => undefined })
      const unread = yield* serving({ admit: () => () => Effect.fail("whatever") })
      const broken = yield* serving({ admit: () => () => Effect.die("whatever") })
      for (const { counted, port } of [unopened, unread, broken]) {
        for (const body of bodies) {
          assert.strictEqual((yield* asking(port, {}, { body })).text, `general ${body}`)
        }
        assert.strictEqual(counted.length, 0)
      }
    }).pipe(Effect.scoped)
  )

  it.effect("that is traced, or told of in the log, goes the general way", () =>
    Effect.gen(function* () {
      const tracer = Tracer.make({ span: (options) => new Tracer.NativeSpan(options) })
      const traced = yield* serving().pipe(Effect.provideService(Tracer.Tracer, tracer))
      assert.strictEqual((yield* asking(traced.port)).text, `general ${body}`)
      for (const [level, way] of [
        ["All", "general"],
        ["Trace", "general"],
        ["Debug", "general"],
        ["Info", "direct"],
        ["None", "direct"]
      ] as const) {
        const { port } = yield* serving().pipe(Effect.provideService(References.MinimumLogLevel, level))
        assert.strictEqual((yield* asking(port)).text, `${way} ${body}`, level)
      }
    }).pipe(Effect.scoped)
  )
})

/** Has an operation fail on one request while another one waits for its answer, which then must come. */
const harmed = Effect.fnUntraced(function* (failing: FastOperation) {
  const release = yield* Deferred.make<() => Body>()
  const begun = yield* Deferred.make<void>()
  const waiting = answering((answer) => {
    Effect.runSync(Deferred.succeed(begun, undefined))
    answer(Deferred.await(release))
  })
  const { counted, port, thrown } = yield* serving({
    admit: (head) => (head.headers["x-fails"] === undefined ? waiting : failing).admit(head)
  })
  const other = yield* Effect.forkChild(asking(port))
  yield* Deferred.await(begun)
  told.length = 0
  const failed = yield* asking(port, { "x-fails": "yes" })
  yield* Deferred.succeed(release, () => bodyOf("unharmed"))
  assert.strictEqual((yield* Fiber.join(other)).text, "unharmed")
  assert.deepStrictEqual(thrown, [])
  return { failed, counted }
})

layer(capturing, { excludeTestServices: true })("An operation", (it) => {
  const boom = () => {
    throw new Error("boom")
  }
  const failing: ReadonlyArray<readonly [string, FastOperation]> = [
    ["throws when it looks at the body", { admit: () => boom as AdmittedRequest }],
    ["throws when it begins", answering(boom)],
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
        assert.strictEqual(told.length, 1)
        assert.strictEqual(told[0]?.level, "Error")
        assert.strictEqual(told[0]?.requestId, failed.headers["x-request-id"])
        assert.include(told[0]?.text, `"method":"POST","route":"${path}"`)
      }).pipe(Effect.scoped)
    )
  }

  it.effect("whose answer is refused is answered in the envelope, and counted once", () =>
    Effect.gen(function* () {
      const refusal = refuse("USAGE_LIMIT_EXCEEDED", "There is no more of it.", "exports")
      const { counted, port } = yield* serving(ending(() => Exit.fail(refusal as Refusal)))
      told.length = 0
      const answer = yield* asking(port, { "x-request-id": requestId })
      assertRefused(answer, 403, "USAGE_LIMIT_EXCEEDED", "exports")
      assert.strictEqual(answer.headers["x-request-id"], requestId)
      assert.deepStrictEqual(
        counted.map(({ refused, status }) => [status, refused]),
        [[403, "USAGE_LIMIT_EXCEEDED"]]
      )
      assert.deepStrictEqual(told, [])
    }).pipe(Effect.scoped)
  )

  it.effect("whose answer is an effect that has not ended is waited for", () =>
    Effect.gen(function* () {
      const gate = yield* Deferred.make<() => Body, Refusal>()
      const { port } = yield* serving(ending(() => Deferred.await(gate)))
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
      const refused = yield* serving(ending(() => Effect.fail(refuse("NOT_READY", "Not now.") as Refusal)))
      assertRefused(yield* asking(refused.port), 503, "NOT_READY")
    }).pipe(Effect.scoped)
  )

  it.effect("whose answer's effect is interrupted answers that the service is stopping", () =>
    Effect.gen(function* () {
      const { port } = yield* serving(ending(() => Exit.failCause(Cause.interrupt())))
      assertRefused(yield* asking(port), 503, "NOT_READY")
    }).pipe(Effect.scoped)
  )

  it.effect("answers in any characters", () =>
    Effect.gen(function* () {
      const texts = ["", "plain", "caf\u00e9", "\u017d\u20ac", "\ud83d\ude00", `${"a".repeat(70_000)}\u00ff`]
      for (const text of texts) {
        const { port } = yield* serving(ending(() => Exit.succeed(() => bodyOf(text))))
        const answer = yield* asking(port)
        assert.strictEqual(answer.text, text)
        assert.strictEqual(answer.headers["content-length"], String(Buffer.byteLength(text)))
      }
    }).pipe(Effect.scoped)
  )

  it.effect("whose client has gone meanwhile answers nobody", () =>
    Effect.gen(function* () {
      const begun = yield* Deferred.make<(outcome: Outcome) => void>()
      const { closed, counted, port, thrown } = yield* serving(
        answering((answer) => void Effect.runSync(Deferred.succeed(begun, answer)))
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
