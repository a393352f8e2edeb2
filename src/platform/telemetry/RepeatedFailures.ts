/**
 * Prevents repeated failures from filling the log. The first record of a failure is written with its cause. Further ones are
 * counted, and their number is written at most once a second, without a cause.
 */
import { Cause, Array as Items, type Logger, LogLevel, Predicate } from "effect"

type Options = Logger.Options<unknown>

interface Failure {
  /** The last repeated record, to be written with the count. */
  last: Options | undefined
  repeated: number
  writtenMillis: number
}

const pauseMillis = 1_000
// After this time without a repetition, the next record has its cause again.
const memoryMillis = 60_000
const failuresMax = 1_000

export interface RepeatedFailures {
  readonly log: (options: Options) => void
  /** Writes the counts that are due. */
  readonly flush: (nowMillis: number) => void
}

/** Wraps the function that writes a record. Records below the level Warn are always written. */
export const makeRepeatedFailures = (write: (options: Options) => void): RepeatedFailures => {
  const failures = new Map<string, Failure>()

  const writeCount = (failure: Failure, nowMillis: number): void => {
    const { last, repeated } = failure
    if (last === undefined) return
    failure.last = undefined
    failure.repeated = 0
    failure.writtenMillis = nowMillis
    write({ ...last, message: [...Items.ensure(last.message), { repeated }], cause: Cause.empty })
  }

  /** Whether the last record was long ago. A clock may step back. */
  const isOver = ({ writtenMillis }: Failure, nowMillis: number, millis: number): boolean =>
    Math.abs(nowMillis - writtenMillis) >= millis

  return {
    log: (options) => {
      if (LogLevel.isLessThan(options.logLevel, "Warn")) return write(options)
      const key = keyOf(options)
      const nowMillis = options.date.getTime()
      const failure = failures.get(key)
      if (failure === undefined) {
        if (failures.size >= failuresMax) failures.delete(failures.keys().next().value!)
        failures.set(key, { last: undefined, repeated: 0, writtenMillis: nowMillis })
        return write(options)
      }
      failure.last = options
      failure.repeated++
      if (isOver(failure, nowMillis, pauseMillis)) writeCount(failure, nowMillis)
    },
    flush: (nowMillis) => {
      for (const [key, failure] of failures) {
        if (failure.last !== undefined) {
          if (isOver(failure, nowMillis, pauseMillis)) writeCount(failure, nowMillis)
        } else if (isOver(failure, nowMillis, memoryMillis)) failures.delete(key)
      }
    }
  }
}

/** Facts of one of many similar failures. */
const examples = new Set(["waited_ms", "license"])

const keyOf = ({ cause, logLevel, message }: Options): string =>
  `${logLevel} ${JSON.stringify(message, (name, value) => (examples.has(name) ? undefined : value))} ${cause.reasons.map((reason) => `${reason._tag} ${errorKey(valueOf(reason), 0)}`).join()}`

const valueOf = (reason: Cause.Reason<unknown>): unknown =>
  reason._tag === "Fail" ? reason.error : reason._tag === "Die" ? reason.defect : undefined

// The database's error is nested in the driver's, which is nested in the statement's.
const depthMax = 4

/** A key that an error shares with its repetitions. */
const errorKey = (error: unknown, depth: number): string => {
  if (!Predicate.isObject(error)) return String(error)
  const { _tag, cause, code, message, name, reason } = error as Record<string, unknown>
  const inner = reason ?? cause
  return `${_tag ?? name} ${code} ${message}${inner === undefined || depth === depthMax ? "" : ` (${errorKey(inner, depth + 1)})`}`
}
