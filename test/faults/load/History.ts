/** What callers were told: each call with its attempts, in the order in which they began. */

export type Operation =
  | "activate"
  | "deactivate"
  | "validate"
  | "consume"
  | "checkout"
  | "heartbeat"
  | "checkin"
  | "create"
  | "suspend"
  | "reinstate"
  | "reset"
  | "limits"

/** One request. Repeats of a call have request ids of their own. */
export interface Attempt {
  readonly requestId: string
  readonly node: string
  readonly sentAt: number
  answeredAt?: number
  /** 0 until there is an answer. */
  status: number
  code?: string
  /** entitlement_version of the answer. */
  version?: number
  /** What the answer says was consumed of the feature. */
  consumed?: number
  /** SHA-256 of the token that the answer shows. */
  tokenHash?: string
}

export interface Call {
  readonly operation: Operation
  readonly client: number
  /** The license's id; that of a created license is only in the answer. */
  readonly license: string
  readonly fingerprint?: string
  readonly eventId?: string
  readonly amount?: number
  /** The Idempotency-Key. */
  readonly key?: string
  /** Of the lease that is extended or given back. */
  readonly tokenHash?: string
  readonly attempts: Array<Attempt>
}

export type Outcome = "acknowledged" | "refused" | "unknown"

type Answered = Pick<Attempt, "status" | "code">

export const isAcknowledged = ({ status }: Answered): boolean => status >= 200 && status < 300

/** A conflict with a first request that still runs says nothing about that one. */
export const outcomeOfAttempt = (attempt: Answered): Outcome => {
  if (isAcknowledged(attempt)) return "acknowledged"
  const { code, status } = attempt
  return status >= 400 && status < 500 && code !== "IDEMPOTENCY_IN_PROGRESS" ? "refused" : "unknown"
}

/** A refusal after an attempt without an answer tells nothing: that attempt may still be decided. */
export const outcomeOf = ({ attempts }: Call): Outcome => {
  const outcomes = attempts.map(outcomeOfAttempt)
  if (outcomes.includes("acknowledged")) return "acknowledged"
  return outcomes.every((outcome) => outcome === "refused") ? "refused" : "unknown"
}

/** The longest time between two acknowledged answers. */
export const longestGap = (calls: ReadonlyArray<Call>): number => {
  const times = calls
    .flatMap(({ attempts }) => attempts.filter(isAcknowledged).map(({ answeredAt = 0 }) => answeredAt))
    .toSorted((a, b) => a - b)
  return times.reduce((longest, time, index) => Math.max(longest, time - (times[index - 1] ?? time)), 0)
}
