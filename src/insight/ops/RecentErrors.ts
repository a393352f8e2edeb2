/**
 * This node's refusals and failures since its start: counts by code, and the last internal errors by request id, time and route.
 * The cause is only in the log, under the request id.
 */
import { Clock, Context, Effect, Layer } from "effect"
import type { Code } from "../../contract/api/ErrorCode.ts"

/** Enough to see a pattern, and little memory. */
const recentMax = 100

export interface RecentError {
  readonly request_id: string
  readonly occurred_at: number
  readonly method: string
  /** The path template; absent if the request failed before its route was found. */
  readonly route?: string
  readonly code: Code
}

interface Refused {
  readonly request_id: string
  readonly occurred_at: number
  readonly method: string
  readonly route: string | undefined
  readonly refused: Code | undefined
}

export class RecentErrors extends Context.Service<
  RecentErrors,
  {
    /** Counts a refusal and stores an internal error. Runs for each refusal, so it is a plain function. */
    note(refused: Refused): void
    readonly report: {
      readonly since: number
      /** Newest first. */
      readonly recent: ReadonlyArray<RecentError>
      readonly counts: ReadonlyMap<Code, number>
    }
  }
>()("licensing/insight/ops/RecentErrors") {
  static readonly layer = Layer.effect(
    RecentErrors,
    Effect.map(Clock.currentTimeMillis, (since) => {
      const counts = new Map<Code, number>()
      const recent: Array<RecentError> = []
      return RecentErrors.of({
        note: ({ request_id, occurred_at, method, route, refused }) => {
          if (refused === undefined) return
          counts.set(refused, (counts.get(refused) ?? 0) + 1)
          if (refused !== "INTERNAL_ERROR") return
          const error = { request_id, occurred_at, method, code: refused }
          recent.unshift(route === undefined ? error : { ...error, route })
          if (recent.length > recentMax) recent.pop()
        },
        get report() {
          return { since, recent, counts }
        }
      })
    })
  )
}
