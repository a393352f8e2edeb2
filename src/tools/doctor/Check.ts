/** A finding of `doctor`: the result of a check in one line, and what to do about a problem. */
import { Effect, Predicate } from "effect"

export interface Finding {
  readonly check: string
  readonly status: "ok" | "warn" | "fail"
  readonly message: string
  /** Only of a warning or a failure. */
  readonly advice?: string
}

export const ok = (check: string, message: string): Finding => ({ check, status: "ok", message })
export const warn = (check: string, message: string, advice: string): Finding => ({
  check,
  status: "warn",
  message,
  advice
})
export const fail = (check: string, message: string, advice: string): Finding => ({
  check,
  status: "fail",
  message,
  advice
})

/** The finding of one check, as a list. */
export const findingsOf = (check: string) => ({
  ok: (message: string): ReadonlyArray<Finding> => [ok(check, message)],
  warn: (message: string, advice: string): ReadonlyArray<Finding> => [warn(check, message, advice)],
  fail: (message: string, advice: string): ReadonlyArray<Finding> => [fail(check, message, advice)]
})

/** A check that fails to run is a finding, too: the other checks continue. */
export const orFinding =
  (check: string) =>
  <E, R>(findings: Effect.Effect<ReadonlyArray<Finding>, E, R>): Effect.Effect<ReadonlyArray<Finding>, never, R> =>
    Effect.catch(findings, (error) =>
      Effect.succeed([
        fail(check, `It could not be checked: ${messageOf(error)}`, "Fix this problem and run doctor again.")
      ])
    )

/** The innermost message, without a full stop. */
export const messageOf = (error: unknown): string => {
  const reason = Predicate.hasProperty(error, "reason") ? error.reason : error
  const cause = Predicate.hasProperty(reason, "cause") ? reason.cause : reason
  const message = [cause, reason, error].find(
    (each): each is { readonly message: string } =>
      Predicate.hasProperty(each, "message") && typeof each.message === "string" && each.message !== ""
  )
  return (message?.message ?? String(error)).replace(/\.$/, "")
}
