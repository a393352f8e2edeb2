import { createServer, type Server } from "node:net"
import { assert, layer } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { Database } from "../../support/database/Database.ts"
import { assertAnswered, assertRefused, hold, send } from "../../support/http/Http.ts"
import { spawnProgram } from "../../support/processes/Processes.ts"
import { poll } from "../../support/rules/Poll.ts"

/** For several starts one after the other, beside others on a busy machine. */
const minute = 60_000

const masterKey = Buffer.alloc(32, 9).toString("base64")

/** The service as a process: what it writes, line by line, and how it exits. */
const start = (settings: Record<string, string>, ...args: ReadonlyArray<string>) =>
  Effect.acquireRelease(
    Effect.map(spawnProgram(settings, args), ({ child, written }) => {
      const exit = Effect.callback<number | null>((resume) => {
        if (child.exitCode !== null) return resume(Effect.succeed(child.exitCode))
        child.on("exit", (code) => resume(Effect.succeed(code)))
      })
      const wrote = (pattern: RegExp) =>
        Effect.callback<RegExpExecArray>((resume) => {
          const matchOutput = () => {
            const match = pattern.exec(written.out)
            if (match !== null) resume(Effect.succeed(match))
          }
          child.stdout.on("data", matchOutput)
          matchOutput()
        })
      return { child, written, exit, wrote }
    }),
    ({ child }) => Effect.sync(() => child.kill("SIGKILL"))
  )

const onDatabase = Effect.map(Database, ({ url }) => ({
  LICENSING_DATABASE_URL: Redacted.value(url),
  LICENSING_MASTER_KEY: masterKey,
  LICENSING_LOG_FORMAT: "json"
}))

/** A service that has reported that it is ready, and the port that it reported. */
const started = Effect.fnUntraced(function* (settings: Record<string, string>, ...args: ReadonlyArray<string>) {
  const service = yield* start(settings, ...args)
  const [, port] = yield* service.wrote(/http:\/\/127\.0\.0\.1:(\d+)\/api\/v1/)
  return { ...service, port: Number(port) }
})

/** The first response of the readiness probe that is not 200. */
const untilStopping = (port: number) => poll(send(port, { path: "/readyz" }), ({ status }) => status !== 200)

/** A port that another program listens on. */
const occupied = Effect.acquireRelease(
  Effect.callback<{ server: Server; port: number }>((resume) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const address = server.address()
      resume(Effect.succeed({ server, port: typeof address === "object" ? (address?.port ?? 0) : 0 }))
    })
  }),
  ({ server }) => Effect.callback<void>((resume) => void server.close(() => resume(Effect.void)))
)

layer(Database.layerUrlEmpty, { excludeTestServices: true })("The first start", (it) => {
  it.effect(
    "that cannot listen shows no token; later ones show it until it is used, and say what runs where",
    () =>
      Effect.gen(function* () {
        const settings = yield* onDatabase
        const { port } = yield* occupied
        const failed = yield* start({ ...settings, LICENSING_PORT: String(port) })
        assert.strictEqual(yield* failed.exit, 1)
        assert.match(
          failed.written.error,
          /^LICENSING_HOST and LICENSING_PORT cannot be listened on: .*EADDRINUSE.*\n$/
        )
        assert.notInclude(failed.written.out, "lsm_")

        const first = yield* started(settings)
        const [, token] = yield* first.wrote(/^Admin token, shown until it is used: (lsm_\S+)$/m)
        const authorized = { path: "/api/v1/products", headers: { authorization: `Bearer ${token}` } }
        assertAnswered(yield* send(first.port, authorized), 200)
        first.child.kill("SIGTERM")
        assert.strictEqual(yield* first.exit, 0)
        assert.strictEqual(first.written.error, "")
        assert.match(first.written.out, /"message":"Created the tables, by \d+ migrations\."/)
        assert.notInclude(first.written.out, "Applied the migration")
        assert.strictEqual(first.written.out.split(token!).length, 2)
        assert.notInclude(first.written.out, masterKey)

        const second = yield* started({ ...settings, LICENSING_LOG_FORMAT: "pretty" }, "serve")
        assertAnswered(yield* send(second.port, authorized), 200)
        second.child.kill("SIGINT")
        assert.strictEqual(yield* second.exit, 0)
        assert.include(second.written.out, "The licensing service is ready.")
        assert.notInclude(second.written.out, "Admin token")
      }).pipe(Effect.scoped),
    minute
  )
})

layer(Database.layerUrlEmpty, { excludeTestServices: true })("On a terminal", (it) => {
  it.effect(
    "the first start prints one screen with the token once, and warns of a misspelled setting",
    () =>
      Effect.gen(function* () {
        const settings = { ...(yield* onDatabase), LICENSING_LOG_FORMAT: "pretty", LICENSING_PROT: "1" }
        const service = yield* start(settings, "serve")
        const [, token] = yield* service.wrote(/^Admin token, shown until it is used: (lsm_\S+)$/m)
        yield* service.wrote(/Ctrl-C stops the service\.\n/)
        service.child.kill("SIGTERM")
        assert.strictEqual(yield* service.exit, 0)
        const [warning, ...screen] = service.written.out.split("\n")
        assert.match(warning!, /LICENSING_PROT is not a setting and is ignored: did you mean LICENSING_PORT\?/)
        assert.isAtMost(screen.length, 20, service.written.out)
        assert.notInclude(service.written.out, "migration")
        assert.strictEqual(service.written.out.split(token!).length, 2)
      }).pipe(Effect.scoped),
    minute
  )
})

layer(Database.layerUrl, { excludeTestServices: true })("The process", (it) => {
  it.effect("becomes not ready on the first signal, and serves a little longer", () =>
    Effect.gen(function* () {
      const { child, exit, port } = yield* started(yield* onDatabase)
      child.kill("SIGTERM")
      assertRefused(yield* untilStopping(port), 503, "NOT_READY", "shutdown")
      const late = yield* send(port, { path: "/health", headers: { connection: "keep-alive" } })
      assertAnswered(late, 200)
      assert.strictEqual(late.headers["connection"], "close")
      assert.strictEqual(yield* exit, 0)
    }).pipe(Effect.scoped)
  )

  it.effect("runs ahead by the configured clock offset", () =>
    Effect.gen(function* () {
      const { port } = yield* started({ ...(yield* onDatabase), LICENSING_CLOCK_OFFSET_SECONDS: "31536000" })
      const answer = yield* send(port, { path: "/health" })
      const { timestamp } = (answer.json as { meta: { timestamp: string } }).meta
      const aheadMillis = Date.parse(timestamp) - Date.now()
      assert.isTrue(Math.abs(aheadMillis - 31_536_000_000) < 60_000)
    }).pipe(Effect.scoped)
  )

  const failing: ReadonlyArray<readonly [Record<string, string>, RegExp]> = [
    [
      { LICENSING_PORT: "x", LICENSING_SWEEP_SECONDS: "x" },
      /^LICENSING_PORT must .*\nLICENSING_SWEEP_SECONDS must .*\n$/
    ],
    [{ LICENSING_HOST: "256.0.0.1" }, /^LICENSING_HOST and LICENSING_PORT cannot be listened on: .*\n$/]
  ]
  for (const [wrong, message] of failing) {
    it.effect(`that cannot start prints why in plain lines and exits with 1: ${Object.keys(wrong)}`, () =>
      Effect.gen(function* () {
        const { exit, written } = yield* start({ ...(yield* onDatabase), ...wrong })
        assert.strictEqual(yield* exit, 1)
        assert.match(written.error, message)
      }).pipe(Effect.scoped)
    )
  }

  it.effect("reports an unreachable database without its password", () =>
    Effect.gen(function* () {
      const settings = yield* onDatabase
      const address = new URL(settings.LICENSING_DATABASE_URL)
      address.pathname = "/none"
      address.password ||= "s3cret"
      const { exit, written } = yield* start({ ...settings, LICENSING_DATABASE_URL: address.href })
      assert.strictEqual(yield* exit, 1)
      assert.match(written.error, /^PostgreSQL at \S+\/none cannot be used: .*\n$/)
      assert.notInclude(written.error + written.out, address.password)
    }).pipe(Effect.scoped)
  )

  it.effect("refuses a master key other than the one under which the database was written", () =>
    Effect.gen(function* () {
      const settings = yield* onDatabase
      yield* Effect.scoped(started(settings))
      const { exit, written } = yield* start({
        ...settings,
        LICENSING_MASTER_KEY: Buffer.alloc(32, 8).toString("base64")
      })
      assert.strictEqual(yield* exit, 1)
      assert.match(written.error, /^A stored secret is encrypted with the master key .*\n$/)
    }).pipe(Effect.scoped)
  )
})

// With a database of its own: the token of the settings is used by the first start only.
layer(Database.layerUrl, { excludeTestServices: true })("A process that is stopped", (it) => {
  it.effect(
    "answers the requests that it has begun to read before it stops, and closes connections of clients that never finish",
    () =>
      Effect.gen(function* () {
        const token = "in-flight-token-of-more-than-32-characters"
        const { child, exit, port } = yield* started({ ...(yield* onDatabase), LICENSING_BOOTSTRAP_TOKEN: token })
        const body = '{"name":"Editor","code":"in-flight"}'
        const begin = (fields: string) => {
          const head = `POST /api/v1/products HTTP/1.1\r\nHost: x\r\n${fields}Content-Length: ${body.length}\r\n\r\n`
          return hold(port, head + body.slice(0, 10))
        }
        // A request without a valid token may be answered before its body has arrived.
        const inFlight = yield* begin(`Authorization: Bearer ${token}\r\nContent-Type: application/json\r\n`)
        yield* begin("")
        child.kill("SIGTERM")
        yield* untilStopping(port)
        child.kill("SIGTERM")
        yield* inFlight.write(body.slice(10))
        const answer = yield* inFlight.answer
        assert.strictEqual(answer.status, 201, answer.text)
        assert.strictEqual(answer.headers["connection"], "close")
        assert.strictEqual(yield* exit, 0)
      }).pipe(Effect.scoped)
  )
})
