/**
 * Many changes, a few at a time. Each is sent under an Idempotency-Key of its own, so that one whose response was lost is not made
 * twice. If the service accepts no more requests for now, all of them wait for as long as it says.
 */
import { Cause, Clock, Effect, Exit, Schema } from "effect"
import { FetchHttpClient } from "effect/http"
import type { Code } from "../../../contract/api/ErrorCode.ts"
import { isRefusal } from "../../../contract/api/Failure.ts"
import { newKey } from "../../client/Attempts.ts"
import { Client } from "../../client/Client.ts"

/** So few that the reader's colleagues notice nothing. */
const concurrency = 4
/** How often a change is sent whose response did not come. Waiting for a rate limit does not count. */
const attemptsMax = 3
const attemptWaitMillis = 1_000
/** If the service does not say how long to wait. */
const throttleMillis = 1_000

export interface Attempt<A> {
  readonly item: A
  /** Under which the change was sent before without an answer. */
  readonly idempotencyKey?: string
}

export interface Failure<A> extends Attempt<A> {
  readonly cause: Cause.Cause<unknown>
}

/** What a run has done so far. Both lists grow while it goes on. */
export interface Progress<A, B> {
  readonly succeeded: ReadonlyArray<{ readonly before: A; readonly after: B }>
  readonly failed: ReadonlyArray<Failure<A>>
  /** The instant until which the service accepts no more requests. */
  readonly waitsUntil?: number
}

interface Plan<A, B> {
  readonly attempts: ReadonlyArray<Attempt<A>>
  readonly send: (item: A) => Effect.Effect<B, unknown, Client>
  /** Ends the run: what is being sent is awaited, nothing else is sent. */
  readonly signal: AbortSignal
  readonly report: (progress: Progress<A, B>) => void
}

/** Makes the changes. What is neither among the succeeded nor the failed was not sent. */
export const runBatch = Effect.fnUntraced(function* <A, B>({ attempts, report, send, signal }: Plan<A, B>) {
  const succeeded: Array<{ readonly before: A; readonly after: B }> = []
  const failed: Array<Failure<A>> = []
  const pace = new Pace(signal)
  const told = () => report({ succeeded, failed, ...(pace.until === undefined ? {} : { waitsUntil: pace.until }) })

  const attemptOne = Effect.fnUntraced(function* ({ idempotencyKey, item }: Attempt<A>) {
    const key = idempotencyKey ?? (yield* newKey)
    for (let attempt = 1; ; attempt++) {
      yield* pace.open
      if (signal.aborted) return
      const exit = yield* Effect.exit(pace.watched(Client.withIdempotencyKey(key)(send(item))))
      if (Exit.isSuccess(exit)) {
        succeeded.push({ before: item, after: exit.value })
        return told()
      }
      const verdict = verdictOf(exit.cause)
      if (verdict === "throttled") {
        attempt--
        yield* pace.close
        told()
      } else if (verdict === "final" || attempt >= attemptsMax) {
        // A refusal is stored under its key: another attempt needs a new one.
        failed.push({ item, cause: exit.cause, ...(verdict === "final" ? {} : { idempotencyKey: key }) })
        return told()
      } else yield* pace.sleep(attemptWaitMillis * attempt)
    }
  })
  yield* Effect.forEach(attempts, attemptOne, { concurrency, discard: true })
  return { succeeded, failed } satisfies Progress<A, B>
})

/** Refusals after which the same request can succeed. */
const healing: ReadonlySet<Code> = new Set(["NOT_READY", "INTERNAL_ERROR", "IDEMPOTENCY_IN_PROGRESS"])

const verdictOf = (cause: Cause.Cause<unknown>): "throttled" | "again" | "final" => {
  const error = Cause.squash(cause)
  if (Schema.isSchemaError(error)) return "final"
  if (!isRefusal(error)) return "again"
  if (error.code === "RATE_LIMITED") return "throttled"
  return healing.has(error.code) ? "again" : "final"
}

/** Whether requests may be sent now. */
class Pace {
  until: number | undefined = undefined
  private retryAfterMillis = throttleMillis
  private readonly aborted: Effect.Effect<void>

  private readonly signal: AbortSignal

  constructor(signal: AbortSignal) {
    this.signal = signal
    this.aborted = Effect.callback<void>((resume) => {
      const end = () => resume(Effect.void)
      if (signal.aborted) return end()
      signal.addEventListener("abort", end)
      return Effect.sync(() => signal.removeEventListener("abort", end))
    })
  }

  /** Ends early if the run does. */
  sleep(millis: number) {
    return Effect.raceFirst(Effect.sleep(millis), this.aborted)
  }

  readonly close = Effect.suspend(() =>
    Effect.map(Clock.currentTimeMillis, (now) => {
      this.until = Math.max(this.until ?? 0, now + this.retryAfterMillis)
    })
  )

  /** Waits for as long as the service asked for. */
  readonly open: Effect.Effect<void> = Effect.suspend(() =>
    this.until === undefined ? Effect.void : Effect.flatMap(Clock.currentTimeMillis, (now) => this.openAfter(now))
  )

  private openAfter(now: number): Effect.Effect<void> {
    const millis = (this.until ?? 0) - now
    if (millis > 0 && !this.signal.aborted) return Effect.andThen(this.sleep(millis), this.open)
    this.until = undefined
    return Effect.void
  }

  /** Notes how long the service asks to wait: a refusal does not contain it. */
  watched<B, E, R>(effect: Effect.Effect<B, E, R>): Effect.Effect<B, E, R> {
    return Effect.updateService(
      effect,
      FetchHttpClient.Fetch,
      (fetch): Fetch =>
        (input, init) =>
          fetch(input, init).then((response) => this.noted(response))
    )
  }

  private noted(response: Response): Response {
    if (response.status !== 429) return response
    const seconds = Number(response.headers.get("retry-after") ?? "")
    this.retryAfterMillis = seconds > 0 ? seconds * 1_000 : throttleMillis
    return response
  }
}

type Fetch = typeof globalThis.fetch
