/**
 * The router, and a table of the methods of each path: a known path with another method gives 405 and Allow, an unknown path
 * gives 404. Adding a route to the router adds it to the table, so the table is complete.
 */
import { Context, Effect, Layer } from "effect"
import { FindMyWay, HttpRouter } from "effect/http"

// Paths are compared exactly: another spelling is another path. Ids of any length match their operation, so that the caller
// is authenticated first; the listener limits the length of a request's head.
const config = {
  caseSensitive: true,
  ignoreTrailingSlash: false,
  ignoreDuplicateSlashes: false,
  maxParamLength: 65_536
}

export class Routes extends Context.Service<
  Routes,
  {
    /** The methods of this request target's path; empty if the path is unknown. */
    methodsOf(target: string): ReadonlyArray<string>
    /** A path like this one that takes the method: with `/api/v1`, or with `license` in place of `licenses`. */
    similarTo(method: string, target: string): string | undefined
  }
>()("licensing/http/Routes") {
  static readonly layer: Layer.Layer<Routes | HttpRouter.HttpRouter> = Layer.effectContext(
    Effect.gen(function* () {
      const router = yield* Effect.provideService(HttpRouter.make, HttpRouter.RouterConfig, config)
      const table = FindMyWay.make<string>(config)
      const methods = new Set<string>()
      const record = (method: string, path: HttpRouter.PathInput) => {
        methods.add(method)
        table.on(method, path, path)
      }
      const recording = HttpRouter.HttpRouter.of({
        ...router,
        add: (method, path, ...rest) => {
          record(method, path)
          return router.add(method, path, ...rest)
        },
        addAll: (routes) => {
          for (const route of routes) record(route.method, route.path)
          return router.addAll(routes)
        }
      })
      const methodsOf = (target: string) =>
        withHead([...methods].filter((method) => table.find(method, target) !== undefined))
      const similarTo = (method: string, target: string) =>
        spellings(target)
          .flatMap((path) => table.find(method as "GET", path)?.handler ?? [])[0]
          ?.replaceAll(/:(\w+)/g, "{$1}")
      return Context.make(HttpRouter.HttpRouter, recording).pipe(
        Context.add(Routes, Routes.of({ methodsOf, similarTo }))
      )
    })
  )
}

/** Other ways to write a path, the likely ones first. */
const spellings = (target: string): ReadonlyArray<string> => {
  const path = target.split("?", 1)[0]!.replace(/(?!^)\/+$/, "")
  const versioned = path.startsWith("/api/v1/") ? path : `/api/v1${path}`
  return [versioned.replace("/v1/licenses/", "/v1/license/"), versioned.replace("/v1/license/", "/v1/licenses/"), path]
}

const withHead = (methods: ReadonlyArray<string>) =>
  methods.includes("GET") ? ["GET", "HEAD", ...methods.filter((method) => method !== "GET")] : methods
