/** What happened in a run, step by step: for whoever has to understand a failure, and for telling whether two runs were the same. */
import { createHash } from "node:crypto"
import { inspect } from "node:util"
import { formatTimestamp } from "../../src/api/Timestamp.ts"
import type { Call } from "./Operations.ts"
import type { Outcome } from "./Outcome.ts"
import type { Stored } from "./Rows.ts"
import { brief } from "./Violation.ts"

export interface Step {
  readonly number: number
  /** All that the clock showed in it. */
  readonly nows: Array<number>
  readonly calls: ReadonlyArray<Call>
  /** Where its part of the trace begins. */
  readonly from: number
  outcomes: ReadonlyMap<string, Outcome>
}

/** What was asked and answered in a step, and who was let through the gate meanwhile. */
export const describeStep = ({ number, nows, calls, outcomes }: Step, trace: ReadonlyArray<string>): string => {
  const asked = calls.map(({ command, node, request, scope, subject, operation }) => {
    const key = scope === undefined ? "" : ` key ${scope}`
    return `    ${request} ${operation} ${subject} at ${node}${key} ${brief(command)} -> ${brief(outcomes.get(request))}`
  })
  const times = nows.map(formatTimestamp).join(", then ")
  return [`  step ${number} at ${times}`, ...asked, `    gate: ${trace.join(" | ")}`].join("\n")
}

const whole = (value: unknown): string =>
  inspect(value, {
    breakLength: Number.POSITIVE_INFINITY,
    depth: Number.POSITIVE_INFINITY,
    maxArrayLength: null,
    maxStringLength: null
  })

/** Two runs with the same digest have asked, answered, let through and stored the same in the same order. */
export class Digest {
  private readonly hash = createHash("sha256")

  add({ nows, calls, outcomes }: Step, trace: ReadonlyArray<string>, stored: Stored): void {
    // Why there was no answer is the words of a broken connection, of which there are several for the same.
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
