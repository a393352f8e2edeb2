/**
 * The router, and a table of the methods of each path: a known path with another method gives 405 and Allow, an unknown path
 * gives 404. Adding a route to the router adds it to the table, so the table is complete.
 */
import { Context, Effect, Layer } from "effect"
import { FindMyWay, HttpRouter, HttpServerError, type HttpServerRequest } from "effect/http"
import { pathOf } from "../../contract/api/RequestHead.ts"

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
    /**
     * A path like this one: with `/api/v1`, or with `license` in place of `licenses`. One that takes the method, or a
     * runtime operation that takes another method.
     */
    similarTo(method: string, target: string): SimilarPath | undefined
    /** Whether a route's path begins with this one. */
    hasBelow(path: string): boolean
    /**
     * Keeps fixed paths from parameters: GET /licenses/batch is no license with the id `batch`, but a known path with another
     * method. To be run when all routes are added.
     */
    readonly reserveFixedPaths: Effect.Effect<void>
  }
>()("licensing/edge/requests/Routes") {
  static readonly layer: Layer.Layer<Routes | HttpRouter.HttpRouter> = Layer.effectContext(
    Effect.gen(function* () {
      const router = yield* Effect.provideService(HttpRouter.make, HttpRouter.RouterConfig, config)
      const table = FindMyWay.make<string>(config)
      const methods = new Set<string>()
      const paths = new Set<HttpRouter.PathInput>()
      const record = (method: string, path: HttpRouter.PathInput) => {
        methods.add(method)
        paths.add(path)
        table.on(method, path, path)
        // The router takes such a path without its end, too.
        if (path.endsWith("/*")) table.on(method, path.slice(0, -2) as HttpRouter.PathInput, path)
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
      const methodsOf = (target: string) => {
        // The table takes the target of OPTIONS * for the path /.
        if (!target.startsWith("/")) return []
        const found = [...methods].flatMap((method) => {
          const path = table.find(method, target)?.handler
          return path === undefined ? [] : [{ method, path }]
        })
        const fixed = found.filter(({ path }) => isFixed(path))
        return withHead((fixed.length > 0 ? fixed : found).map(({ method }) => method))
      }
      const find = (method: string, path: string): SimilarPath | undefined => {
        const found = table.find(method as "GET", path)?.handler
        return found === undefined ? undefined : { method, path: found.replaceAll(/:(\w+)/g, "{$1}") }
      }
      const similarTo = (method: string, target: string): SimilarPath | undefined => {
        const known = methodsOf(target)
        const similar = spellings(target).filter((path) => known.length === 0 || !isResource(path))
        return (
          first(similar, (path) => find(method, path)) ??
          first(similar.filter(isRuntime), (path) => (path === target ? undefined : find("POST", path)))
        )
      }
      const hasBelow = (above: string) => [...paths].some((path) => path === above || path.startsWith(`${above}/`))
      // Only the router gets these routes: the table has no method that a path does not take.
      const reserveFixedPaths = Effect.suspend(() => {
        const taken = [...paths]
          .filter(isFixed)
          .flatMap((path) => [...methods].map((method) => ({ method, path, found: table.find(method as "GET", path) })))
          .filter(({ found, path }) => found !== undefined && found.handler !== path)
        const reserve = ({ method, path }: (typeof taken)[number]) => router.add(method as "GET", path, routeNotFound)
        // The response middleware handles the failure.
        return Effect.forEach(taken, reserve, { discard: true }) as Effect.Effect<void>
      })
      return Context.make(HttpRouter.HttpRouter, recording).pipe(
        Context.add(Routes, Routes.of({ methodsOf, similarTo, hasBelow, reserveFixedPaths }))
      )
    })
  )
}

export interface SimilarPath {
  readonly method: string
  readonly path: string
}

const first = <A, B>(items: ReadonlyArray<A>, pick: (item: A) => B | undefined): B | undefined => {
  for (const item of items) {
    const picked = pick(item)
    if (picked !== undefined) return picked
  }
  return undefined
}

/** As the router fails where it finds no route. */
const routeNotFound = (request: HttpServerRequest.HttpServerRequest) =>
  Effect.fail(new HttpServerError.HttpServerError({ reason: new HttpServerError.RouteNotFound({ request }) }))

/** Without parameters. */
const isFixed = (path: string): boolean => !/[:*]/.test(path)
const isRuntime = (path: string): boolean => path.startsWith("/api/v1/license/")
/** A path under a license's id: of a known runtime path it would be another operation, with the verb as the id. */
const isResource = (path: string): boolean => path.startsWith("/api/v1/licenses/")

/** Other ways to write a path, the likely ones first. */
const spellings = (target: string): ReadonlyArray<string> => {
  const path = pathOf(target).replace(/(?!^)\/+$/, "")
  const versioned = path.startsWith("/api/v1/") ? path : `/api/v1${path}`
  return [versioned.replace("/v1/licenses/", "/v1/license/"), versioned.replace("/v1/license/", "/v1/licenses/"), path]
}

const withHead = (methods: ReadonlyArray<string>) =>
  methods.includes("GET") ? ["GET", "HEAD", ...methods.filter((method) => method !== "GET")] : methods
