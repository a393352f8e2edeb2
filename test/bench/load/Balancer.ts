/** HAProxy in front of up to eight nodes, with the configuration that the project delivers. */
import { spawn } from "node:child_process"
import { once } from "node:events"
import { createServer } from "node:net"
import { join } from "node:path"
import { Effect } from "effect"
import { root } from "../../../infra/scripts/service.ts"

/** A port that was free a moment ago. */
export const freePort = async (): Promise<number> => {
  const server = createServer().listen(0, "127.0.0.1")
  await once(server, "listening")
  const { port } = server.address() as { readonly port: number }
  server.close()
  await once(server, "close")
  return port
}

const isReady = async (base: string): Promise<boolean> => {
  const answer = await fetch(`${base}/health`).catch(() => undefined)
  return answer?.status === 200
}

/** Starts it and returns its address once it has found a node. */
export const startHaproxy = Effect.fnUntraced(function* (bases: ReadonlyArray<string>) {
  const [port, metrics] = [yield* Effect.promise(freePort), yield* Effect.promise(freePort)]
  const environment = {
    PATH: `${process.env["PATH"]}:/usr/sbin`,
    ...Object.fromEntries(bases.map((base, index) => [`NODE_${index + 1}`, new URL(base).host])),
    BIND: `127.0.0.1:${port}`,
    METRICS_BIND: `127.0.0.1:${metrics}`
  }
  yield* Effect.acquireRelease(
    Effect.sync(() =>
      // Its log has a line for each request.
      spawn("haproxy", ["-db", "-f", join(root, "infra/balancers/haproxy.cfg")], {
        env: environment,
        stdio: ["ignore", "ignore", "inherit"]
      })
    ),
    (child) => Effect.sync(() => child.kill())
  )
  const base = `http://127.0.0.1:${port}`
  yield* Effect.promise(async () => {
    for (let attempt = 0; attempt < 100; attempt++) {
      if (await isReady(base)) return
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
    throw new Error("HAProxy found no node")
  })
  return base
})
