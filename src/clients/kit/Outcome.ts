/** What an operation came to, for the application. */
import type { Answer } from "./Conversation.ts"
import type { Rule } from "./judging/Judge.ts"
import type { Verdict } from "./judging/Verdict.ts"
import type { Problem } from "./sending/Problem.ts"
import { type Decision, isStricter, type Reason, ruleOf } from "./texts/Decisions.ts"

/** What an operation came to. `decision` and `reason` hold for the application after it. */
export interface Outcome<Data> extends Verdict {
  /** Whether the service did what was asked. If not, nothing was counted, activated or taken. */
  readonly granted: boolean
  /** The signed payload. */
  readonly data?: Data
  /** The rule that the response broke, if one came that was not believed. */
  readonly brokenRule?: Rule
  /** Why no believed response came. */
  readonly problem?: Problem
}

/** The stricter of the answer's own decision, unless one is given, and the verdict after it. */
export const outcomeOf = <Data>(answer: Answer, verdict: Verdict, given?: Decision): Outcome<Data> => {
  if (answer.outcome === "granted") return { ...verdict, granted: true, data: answer.content as Data }
  if (answer.outcome === "refused") {
    const { refusal } = answer
    const decision = given ?? ruleOf(refusal.code).decision
    const decided = isStricter(verdict.decision, decision) ? verdict : { ...verdict, decision, reason: refusal.code }
    return { ...decided, refusal, granted: false }
  }
  const isRunning = !isStricter(verdict.decision, "warn")
  return {
    ...verdict,
    ...(isRunning && { reason: answer.reason }),
    ...(answer.rule !== undefined && { brokenRule: answer.rule }),
    ...(answer.problem !== undefined && { problem: answer.problem }),
    granted: false
  }
}

/** Why an answer granted nothing. */
export const reasonOf = (answer: Answer): Reason | undefined =>
  answer.outcome === "missed" ? answer.reason : answer.outcome === "refused" ? answer.refusal.code : undefined
