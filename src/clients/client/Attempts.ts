/**
 * Sends a request again after a failure that a repetition can heal, if a repetition is safe: a read, a management change (its
 * attempts share an Idempotency-Key), or a runtime operation that names what it does. Bounded in number and in time.
 */
import { Clock, Data, Duration, Effect, Random, Schema } from "effect"
import type { Code } from "../../contract/api/ErrorCode.ts"
import { isRefusal } from "../../contract/api/Failure.ts"
import { Call, type CallFacts } from "./Call.ts"
import type { OperationId } from "./Operations.ts"

/** No response came in time. A change may have been made: repeat it with the same Idempotency-Key. */
export class TimedOut extends Data.TaggedError("TimedOut")<{ readonly operation: string; readonly millis: number }> {
  override get message(): string {
    return `${this.operation} got no response within ${this.millis} ms: try again.`
  }
}

interface Plan {
  readonly id: OperationId
  readonly own: Pick<CallFacts, "token" | "licenseKey">
  readonly timeout: Duration.Input
  readonly attemptsMax: number
}

/** A repetition could find its own first attempt done, and be refused: of a trial as one that the device has used. */
const once: ReadonlySet<OperationId> = new Set([
  "deactivateLicense",
  "deactivateOwnDevice",
  "checkinFloatingLicense",
  "startTrial"
])

/** Refusals that a repetition can heal. A rate limit refuses before anything is done. */
const healing: ReadonlySet<Code> = new Set(["NOT_READY", "INTERNAL_ERROR", "IDEMPOTENCY_IN_PROGRESS"])
/** Responses of proxies. */
const healingStatuses: ReadonlySet<number> = new Set([502, 503, 504])

const waitMillisMin = 200
const waitMillisMax = 5_000
/** A longer Retry-After is the caller's matter. */
const retryAfterMillisMax = 30_000

export const attempts = Effect.fnUntraced(function* <A, E>(
  { attemptsMax, id, own, timeout }: Plan,
  send: (idempotencyKey: string) => Effect.Effect<A, E>
) {
  const given = yield* Call
  const idempotencyKey = given.idempotencyKey ?? (yield* newKey)
  const millis = Duration.toMillis(timeout)
  for (let attempt = 1; ; attempt++) {
    const call: CallFacts = { ...own, ...given, idempotencyKey }
    const tried = yield* send(idempotencyKey).pipe(
      Effect.timeoutOrElse({ duration: millis, orElse: () => Effect.fail(new TimedOut({ operation: id, millis })) }),
      Effect.provideService(Call, call),
      Effect.result
    )
    if (tried._tag === "Success") return tried.success
    const wait = attempt < attemptsMax && isHealing(id, tried.failure, call) ? yield* waitOf(attempt, call) : undefined
    if (wait === undefined) return yield* Effect.fail(tried.failure)
    yield* Effect.annotateCurrentSpan("licensing.attempts", attempt + 1)
    yield* Effect.sleep(wait)
  }
})

const isHealing = (id: OperationId, error: unknown, { received }: CallFacts): boolean => {
  if (received?.status === 429) return true
  // The request could not be encoded, and was not sent.
  if (Schema.isSchemaError(error) || once.has(id)) return false
  // The head of a response may have come in time.
  if (error instanceof TimedOut) return true
  if (isRefusal(error)) return healing.has(error.code)
  return received === undefined || healingStatuses.has(received.status)
}

/** Twice as long after each attempt, with a random part; at least Retry-After. Undefined: too long to wait. */
const waitOf = Effect.fnUntraced(function* (attempt: number, { received }: CallFacts) {
  const asked = retryAfterMillis(received?.headers["retry-after"], yield* Clock.currentTimeMillis)
  if (asked > retryAfterMillisMax) return undefined
  const backoff = Math.min(waitMillisMin * 2 ** (attempt - 1), waitMillisMax)
  return Math.max(asked, backoff * (0.5 + (yield* Random.next) / 2))
})

/** Seconds, or a date (RFC 9110). */
const retryAfterMillis = (text: string | undefined, now: number): number => {
  if (text === undefined) return 0
  const wait = /^\d+$/.test(text) ? Number(text) * 1_000 : Date.parse(text) - now
  return Number.isNaN(wait) ? 0 : Math.max(wait, 0)
}

/** An Idempotency-Key of 128 random bits. */
export const newKey = Effect.map(Effect.all([part(), part(), part(), part()]), (parts) => `client-${parts.join("")}`)

function part() {
  return Effect.map(Random.next, (number) =>
    Math.floor(number * 2 ** 32)
      .toString(16)
      .padStart(8, "0")
  )
}
