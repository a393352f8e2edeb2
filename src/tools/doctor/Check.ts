/** A finding of `doctor`: what was looked at, in one line, and what to do if it is not as it should be. */
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

/** A check that cannot be made is a finding, too: the others go on. */
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
