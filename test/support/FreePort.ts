/** A port for a test's own listener. */
import { createServer } from "node:net"
import { Effect } from "effect"

/** A port that was free a moment ago. */
export const freePort = Effect.callback<number>((resume) => {
  const server = createServer().listen(0, "127.0.0.1", () => {
    const { port } = server.address() as { readonly port: number }
    server.close(() => resume(Effect.succeed(port)))
  })
})
