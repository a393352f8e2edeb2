/**
 * The deadline of requests on the framework path. It begins when the body has arrived. A request that has begun its commit,
 * or whose license's actor decides, is not given up: its outcome is reported. Any other is answered at its deadline, and ends in the background: its statement is
 * canceled, its transaction is rolled back, and it leaves every queue that it waits in. A request whose client
 * disconnects ends in the same way.
 */
import { Clock, Context, Effect, Exit, type Fiber, FiberSet, Schema } from "effect"
import { HttpRouter, HttpServerRequest } from "effect/http"
import { Deadline, makeLateCheck, monotonicMillis, RequestTimeout } from "../../platform/postgres/driver/Deadline.ts"

class DeadlinePassed extends Schema.TaggedError<DeadlinePassed>()("DeadlinePassed", {}) {}

export const isDeadlinePassed = (error: unknown): boolean => error instanceof DeadlinePassed

/** Reports have a limit of their own: their statements' (docs/OPERATIONS.md, "Deadlines"). */
const isExempt = (url: string): boolean => url.startsWith("/api/v1/reports/")

interface Running {
  at: number
  readonly deadline: Deadline
  readonly giveUp: () => void
}

/** One timer for all requests of the node. */
export const makeDeadlines = Effect.gen(function* () {
  const clock = yield* Clock.Clock
  const timeoutMillis = yield* RequestTimeout
  const fork = yield* FiberSet.makeRuntime<never>()
  // In the order of their deadlines.
  const requests = new Set<Running>()

  const startLateCheck = yield* makeLateCheck(() => {
    const now = monotonicMillis(clock)
    for (const request of requests) {
      if (request.at > now) break
      if (!request.deadline.committing) request.giveUp()
    }
    return requests.size > 0
  })

  const underDeadline = <A, E, R>(application: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.withFiber((parent) =>
      // The framework's fiber cannot be interrupted around the route, which runs in a fiber of its own here.
      Effect.interruptible(
        Effect.callback<A, E>((resume) => {
          const deadline: Deadline = {
            committing: false,
            givenUp: false,
            stop: () => void requests.delete(request),
            start: () => {
              request.at = monotonicMillis(clock) + timeoutMillis
              requests.add(request)
              startLateCheck()
            }
          }
          const handled = Effect.onExit(application, () =>
            Effect.withFiber((fiber) => Effect.sync(() => tellRoute(fiber, parent)))
          )
          const provided = Effect.provideContext(
            handled,
            Context.add(parent.context, Deadline, deadline) as Context.Context<R>
          )
          const request: Running = {
            at: 0,
            deadline,
            giveUp: () => {
              deadline.givenUp = true
              requests.delete(request)
              tellRoute(fiber, parent)
              resume(Exit.die(new DeadlinePassed()))
              fiber.interruptUnsafe()
            }
          }
          deadline.start()
          const fiber = fork(provided)
          fiber.addObserver((exit) => {
            requests.delete(request)
            resume(exit)
          })
          return Effect.sync(() => {
            if (deadline.committing) return
            deadline.givenUp = true
            requests.delete(request)
            fiber.interruptUnsafe()
          })
        })
      )
    )

  return <A, E, R>(application: Effect.Effect<A, E, R>): Effect.Effect<A, E, R | HttpServerRequest.HttpServerRequest> =>
    Effect.flatMap(HttpServerRequest.HttpServerRequest, ({ url }) =>
      isExempt(url) ? application : underDeadline(application)
    )
})

/** The router puts the route into the handler's fiber; logs and metrics read it from the request's. */
const tellRoute = (from: Fiber.Fiber<unknown, unknown>, to: Fiber.Fiber<unknown, unknown>): void => {
  const route = Context.getOrUndefined(from.context, HttpRouter.RouteContext)
  if (route !== undefined) to.setContext(Context.add(to.context, HttpRouter.RouteContext, route))
}
