/** HAProxy with the configuration that the project delivers, before a server that takes everything. A machine without it skips this. */
import { spawnSync } from "node:child_process"
import { once } from "node:events"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { startHaproxy } from "../bench/load/Balancer.ts"
import { send } from "../support/http/Http.ts"

const isMissing = spawnSync("haproxy", ["-v"], { env: { PATH: `${process.env["PATH"]}:/usr/sbin` } }).status !== 0

const node = Effect.acquireRelease(
  Effect.promise(async () => {
    const server = createServer((_, response) => response.end("node")).listen(0, "127.0.0.1")
    await once(server, "listening")
    return server
  }),
  (server) =>
    Effect.sync(() => {
      server.close()
      server.closeAllConnections()
    })
)

it.live("HAProxy publishes no metrics and no probe but /health", ({ skip }) =>
  Effect.gen(function* () {
    if (isMissing) return skip("this machine lacks HAProxy")
    const base = `http://127.0.0.1:${((yield* node).address() as AddressInfo).port}`
    const port = Number(new URL(yield* startHaproxy([base, base])).port)
    const statusOf = (path: string) => Effect.map(send(port, { path }), ({ status }) => status)
    for (const path of ["/metrics", "/metrics?a", "/licensing/metrics", "/licensing/licensing/metrics?a=b"].concat([
      "/readyz",
      "/readyz?a",
      "/licensing/readyz",
      "/healthz",
      "/%72eadyz",
      "/%6detrics"
    ]))
      assert.strictEqual(yield* statusOf(path), 404, path)
    for (const path of ["/api/v1/me", "/licensing/api/v1/me?q=/metrics", "/health"])
      assert.strictEqual(yield* statusOf(path), 200, path)
  })
)
