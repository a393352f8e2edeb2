/** What every platform runs: all vectors, and a scenario. The platform gives the input and takes the result as JSON. */
import { type ScenarioInput, scenario } from "./Scenario.ts"
import { type VectorFiles, verdictsOf } from "./Verdicts.ts"

export interface TrialInput {
  readonly vectors: VectorFiles
  readonly scenario: ScenarioInput
}

export interface TrialResult {
  readonly verdicts: ReadonlyArray<string>
  readonly words: ReadonlyArray<string>
}

const trial = async (input: TrialInput): Promise<TrialResult> => ({
  verdicts: await verdictsOf(input.vectors),
  words: await scenario(input.scenario)
})

/** Fetches the input, runs the trial, and posts the result: on Deno and in a page. */
export const trialOver = async (url: string): Promise<void> => {
  const input = (await (await fetch(`${url}/input`)).json()) as TrialInput
  const result = await trial(input).catch((problem) => ({ verdicts: [String(problem?.stack ?? problem)], words: [] }))
  await fetch(`${url}/result`, { method: "POST", body: JSON.stringify(result) })
}
