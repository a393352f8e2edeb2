/** The transcript of a run, step by step, to analyse failures and to compare two runs. */
import { createHash } from "node:crypto"
import { inspect } from "node:util"
import { formatTimestamp } from "../../src/contract/api/Timestamp.ts"
import type { Stored } from "./checks/Rows.ts"
import { brief } from "./checks/Violation.ts"
import type { Call } from "./requests/Operations.ts"
import type { Outcome } from "./requests/Outcome.ts"

export interface Step {
  readonly number: number
  /** All times that the clocks showed in the step. */
  readonly nows: Array<number>
  readonly calls: ReadonlyArray<Call>
  /** The index in the trace at which the step begins. */
  readonly from: number
  outcomes: ReadonlyMap<string, Outcome>
}

/** The requests and answers of a step, and its part of the trace. */
export const describeStep = ({ number, nows, calls, outcomes }: Step, trace: ReadonlyArray<string>): string => {
  const asked = calls.map(({ command, node, request, scope, subject, operation }) => {
    const key = scope === undefined ? "" : ` key ${scope}`
    return `    ${request} ${operation} ${subject} at ${node}${key} ${brief(command)} -> ${brief(outcomes.get(request))}`
  })
  const times = nows.map(formatTimestamp).join(", then ")
  return [`  step ${number} at ${times}`, ...asked, `    trace: ${trace.join(" | ")}`].join("\n")
}

const whole = (value: unknown): string =>
  inspect(value, {
    breakLength: Number.POSITIVE_INFINITY,
    depth: Number.POSITIVE_INFINITY,
    maxArrayLength: null,
    maxStringLength: null
  })

/** Equal digests mean equal requests, answers, traces and rows in the same order. */
export class Digest {
  private readonly hash = createHash("sha256")

  add({ nows, calls, outcomes }: Step, trace: ReadonlyArray<string>, stored: Stored): void {
    // The reason of a missing answer varies: a lost connection has several error messages.
    const answers = calls.map(({ request }) => {
      const outcome = outcomes.get(request)
      return outcome?.kind === "unknown" ? outcome.kind : outcome
    })
    this.hash.update(whole([nows, calls, answers, trace, stored]))
  }

  get value(): string {
    return this.hash.copy().digest("hex")
  }
}
