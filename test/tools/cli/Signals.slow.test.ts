/** A signal is the end of a service, and a failure of every other command. */
import { createServer } from "node:net"
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { spawnProgram } from "../../support/processes/Processes.ts"

/** A database server that accepts connections and never answers. */
const silent = Effect.acquireRelease(
  Effect.callback<{ readonly url: string; readonly reached: Effect.Effect<void>; close(): void }>((resume) => {
    const server = createServer((socket) => void sockets.add(socket.on("error", () => {})))
    const sockets = new Set<{ destroy(): void }>()
    const reached = Effect.callback<void>((seen) => void server.once("connection", () => seen(Effect.void)))
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address() as { readonly port: number }
      const close = () => {
        for (const socket of sockets) socket.destroy()
        server.close()
      }
      resume(Effect.succeed({ url: `postgres://licensing@127.0.0.1:${port}/licensing`, reached, close }))
    })
  }),
  ({ close }) => Effect.sync(close)
)

it.live(
  "A command that a signal stops has not done its work, and says so by its exit code",
  () =>
    Effect.gen(function* () {
      const { reached, url } = yield* silent
      const settings = { LICENSING_DATABASE_URL: url, LICENSING_MASTER_KEY: Buffer.alloc(32, 9).toString("base64") }
      for (const [command, code] of [
        ["migrate", 130],
        ["serve", 0]
      ] as const) {
        const { child, written } = yield* Effect.acquireRelease(spawnProgram(settings, [command]), ({ child }) =>
          Effect.sync(() => child.kill("SIGKILL"))
        )
        yield* reached
        const exit = Effect.callback<number | null>((resume) => {
          child.once("exit", (code) => resume(Effect.succeed(code)))
          child.kill("SIGTERM")
        })
        assert.strictEqual(yield* exit, code, `${command}: ${written.error}`)
      }
    }).pipe(Effect.scoped),
  60_000
)
