/** Random sequences of commands from random licenses, with what each command did. */
import * as fc from "fast-check"
import type { Code } from "../../../src/contract/api/ErrorCode.ts"
import { anyStep } from "./CommandArbitraries.ts"
import { rows as anyRows } from "./LicenseArbitraries.ts"
import { type Performed, perform } from "./LicenseRules.ts"
import { noon, type Rows } from "./Licenses.ts"

interface Taken extends Performed<unknown, Code> {
  readonly rule: string
  readonly now: number
  /** The records as they lay there before time was applied. */
  readonly found: Rows
}

/** Takes random steps from a random license and hands over each of them. */
export const afterEachStep = (holds: (taken: Taken) => void, numRuns = 150) =>
  fc.assert(
    fc.property(anyRows, fc.array(anyStep, { minLength: 1, maxLength: 12 }), (rows, steps) => {
      let [found, now] = [rows, noon]
      for (const { wait, rule, command } of steps) {
        now += wait
        const performed = perform(found, rule, command, now)
        holds({ ...performed, rule: rule.name, now, found })
        found = performed.after
      }
    }),
    { numRuns }
  )
