/** A port for a test's own listener. */
import { randomInt } from "node:crypto"
import { createServer } from "node:net"
import { Effect } from "effect"

// Below the ports that Linux gives to outgoing connections and to listeners that ask for any: those of other tests, which
// could take a port before the listener does.
const [lowest, highest] = [10_000, 32_767]

/** A port that was free a moment ago. */
export const freePort: Effect.Effect<number> = Effect.callback<number | undefined>((resume) => {
  const port = randomInt(lowest, highest + 1)
  const server = createServer()
  server.on("error", () => resume(Effect.succeed(undefined)))
  server.listen(port, "127.0.0.1", () => server.close(() => resume(Effect.succeed(port))))
}).pipe(Effect.repeat({ until: (port) => port !== undefined }))
