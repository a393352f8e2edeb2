/** A process that is told to stop while many connections consume: what was acknowledged was counted, and nothing else was. */
import { connect } from "node:net"
import { assert, layer } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import { Database } from "../../support/database/Database.ts"
import { contentTypes, type RuntimePath, runtimePaths } from "../../support/http/FastPath.ts"
import type { Answer } from "../../support/http/Http.ts"
import { assertAnswered } from "../../support/http/Http.ts"
import { startService } from "../../support/processes/Processes.ts"

const dataOf = ({ json }: Answer) => (json as { readonly data: Record<string, unknown> }).data

type Program = Effect.Success<ReturnType<typeof startService>>

let products = 0

/** A license of which as much may be used as anybody likes. */
const metered = Effect.fnUntraced(function* ({ call, manage }: Program) {
  const made = (path: string, body: object) => Effect.map(manage("POST", path, body), dataOf)
  const product = yield* made("/products", { name: "P", code: `p-${++products}` })
  const { id: policy_id } = yield* made(`/products/${product["id"]}/policies`, {
    name: "P",
    code: "p",
    license_type: "perpetual"
  })
  const feature = yield* made(`/products/${product["id"]}/features`, { name: "F", code: "f" })
  const { license, license_key } = (yield* made("/licenses", { product_id: product["id"], policy_id })) as {
    readonly license: { readonly id: string }
    readonly license_key: string
  }
  yield* made(`/licenses/${license.id}/features`, { feature_id: feature["id"] })
  assertAnswered(yield* call(license_key, "activate", { fingerprint: "m" }), 200)
  return { id: license.id, license_key }
})

/** Consumes one thing after the other until the connection ends: how often it was asked, and what was answered. */
const consuming = (port: number, way: RuntimePath, key: string, name: number, answered: () => void) =>
  Effect.callback<{ readonly asked: number; readonly statuses: ReadonlyArray<string> }>((resume) => {
    let asked = 0
    let received = ""
    const statuses: Array<string> = []
    const socket = connect(port, "127.0.0.1", () => ask())
    const ask = () => {
      const body = JSON.stringify({ fingerprint: "m", feature_code: "f", event_id: `${name}-${++asked}` })
      socket.write(
        `POST /api/v1/license/consume HTTP/1.1\r\nHost: x\r\nAuthorization: License ${key}\r\n` +
          `Content-Type: ${contentTypes[way]}\r\nContent-Length: ${body.length}\r\n\r\n${body}`
      )
    }
    socket.on("data", (chunk) => {
      received += chunk.toString()
      const [, length] = /content-length: (\d+)/i.exec(received) ?? []
      const head = received.indexOf("\r\n\r\n")
      if (head < 0 || length === undefined || received.length < head + 4 + Number(length)) return
      statuses.push(received.slice(9, 12))
      answered()
      const isLast = /connection: close/i.test(received)
      received = ""
      if (!isLast) ask()
    })
    socket.on("error", () => {})
    socket.on("close", () => resume(Effect.succeed({ asked, statuses })))
  })

layer(Database.layerUrl, { excludeTestServices: true, timeout: 120_000 })("A process that is stopped", (it) => {
  for (const way of runtimePaths) {
    it.effect(`has counted exactly what it has acknowledged: the ${way} path`, () =>
      Effect.gen(function* () {
        const program = yield* startService({ LICENSING_RATE_RUNTIME: "0" })
        const { id, license_key } = yield* metered(program)
        const port = Number(/"api":"http:\/\/127\.0\.0\.1:(\d+)\//.exec(program.written.out)?.[1])
        const many = yield* Deferred.make<void>()
        let count = 0
        const answered = () => {
          if (++count === 2_000) Effect.runSync(Deferred.succeed(many, undefined))
        }
        const connections = yield* Effect.forkChild(
          Effect.forEach(
            Array.from({ length: 64 }, (_, name) => name),
            (name) => consuming(port, way, license_key, name, answered),
            { concurrency: 64 }
          )
        )
        yield* Deferred.await(many)
        yield* program.stop
        const ended = yield* Fiber.join(connections)
        const acknowledged = ended.flatMap(({ statuses }) => statuses)
        assert.deepStrictEqual(new Set(acknowledged), new Set(["200"]))
        const asked = ended.reduce((sum, one) => sum + one.asked, 0)
        assert.strictEqual(acknowledged.length, asked, "nobody was left without an answer")
        const later = yield* startService()
        const { total_consumptions } = dataOf(yield* later.manage("GET", `/licenses/${id}`))
        assert.strictEqual(total_consumptions, acknowledged.length)
      }).pipe(Effect.scoped)
    )
  }
})
