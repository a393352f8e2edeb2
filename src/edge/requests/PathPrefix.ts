/**
 * The path of the service's public address. A balancer may remove it from requests or leave it: the service takes both. What must
 * stay true: no path of the service's own is shortened, and nothing becomes a path that balancers keep to themselves.
 */
import type { RequestListener } from "node:http"
import { Effect } from "effect"
import { pathOf } from "../../contract/api/RequestHead.ts"
import { Settings } from "../../platform/config/Config.ts"
import { Routes } from "./Routes.ts"

/** The path of the public address, as `/licensing`; empty if it has none. */
export const pathPrefix = Settings.useSync(({ baseUrl }) =>
  baseUrl === undefined ? "" : new URL(baseUrl).pathname.replace(/\/$/, "")
)

/** Makes a function that removes the path in front of a listener. Without such a path it changes nothing. */
export const makePathPrefix = Effect.gen(function* () {
  const prefix = yield* pathPrefix
  const { hasBelow } = yield* Routes
  // With https://example.com/api as the address, /api/v1 could mean either.
  if (prefix === "" || hasBelow(prefix)) return (listener: RequestListener) => listener
  return (listener: RequestListener): RequestListener =>
    (request, response) => {
      const target = request.url ?? ""
      if (target.startsWith(prefix)) request.url = withoutPrefix(target, prefix)
      listener(request, response)
    }
})

/** For the balancer and the operator, who ask the nodes. */
const inside = new Set(["/metrics", "/healthz", "/readyz"])

const withoutPrefix = (target: string, prefix: string): string => {
  const rest = target.slice(prefix.length)
  if (inside.has(pathOf(rest))) return target
  return rest.startsWith("/") ? rest : rest === "" || rest.startsWith("?") ? `/${rest}` : target
}
