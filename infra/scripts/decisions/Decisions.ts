/** `schema/vectors/decisions.json`: scenarios with what the kit decides after each step. */
import { customerScenarios } from "./CustomerScenarios.ts"
import { endScenarios } from "./EndScenarios.ts"
import { offlineScenarios } from "./OfflineScenarios.ts"
import { recoveryScenarios } from "./RecoveryScenarios.ts"
import { type Expected, type Options, replay, type Scenario, type Shared, type Step } from "./Replay.ts"
import { at, fingerprint, keys, productCode, responses } from "./Responses.ts"
import { seatScenarios } from "./SeatScenarios.ts"
import { startScenarios, type Told } from "./StartScenarios.ts"
import { storeScenarios } from "./StoreScenarios.ts"

const description =
  "What an application decides, step by step. An implementation has the clock `at`, sends its requests to a network that answers with `given` in order (status 200 unless given; `fails` is no response), keeps one text in a store, and takes zeros for randomness: the nonce of every request is the base64 of 16 bytes of zero, and the byte that spreads retries is the scenario's `random`, 0 unless given. `do` is the operation with its arguments `with`; `open` starts the application anew with what is stored, after `store` has replaced that text, `forget` has removed and `put` has added responses in it, with `options` that hold from then on; `wake` is the application's, and does what is due; `look` does nothing. `expected` is what holds afterwards; members that are absent there are absent. `outcome` is granted, refused (a signed refusal) or missed, with the decision and reason that the operation returns; decision, reason and ends_at are the verdict's; `published_keys` are the kids, sorted; `features` have what remains, or unknown in a new period; `asked` are the paths of the requests without queries, with event_id, until and policy_code; `stored` is the stored text with the names of `responses` in place of their texts."

const shared = (): Shared => ({
  keys,
  options: {
    product_code: productCode,
    binding: { fingerprint },
    tolerance_hours: 72,
    built_in: [keys[0]!.kid],
    trust_published_keys: false
  } satisfies Options,
  responses
})

const scenarioOf = ({ steps, ...told }: Told): Scenario => ({
  ...told,
  steps: steps.map(
    ({ at: when, got: _got, says: _says, ...step }): Step => ({
      at: typeof when === "number" ? at(when) : when,
      ...step
    })
  )
})

/** The verdicts that the scenarios say are written by hand: a kit that decides otherwise makes no vectors. */
const check = (told: Told, expected: ReadonlyArray<Expected>): void => {
  for (const [index, { got, says }] of told.steps.entries()) {
    const { decision, outcome, reason } = expected[index]!
    const given = outcome?.split(" ", 2).join(" ")
    if (`${decision} ${reason}` !== says || given !== got)
      throw new Error(`${told.name}, step ${index + 1}: ${given}, ${decision} ${reason}; said is ${got}, ${says}`)
  }
}

const all = [
  ...[startScenarios, endScenarios, storeScenarios, seatScenarios, offlineScenarios, customerScenarios],
  recoveryScenarios
].flat()

/** Path from the project's folder → content. */
export const decisionFiles = async (): Promise<Readonly<Record<string, string>>> => {
  const scenarios: Array<Scenario> = []
  for (const told of all) {
    const scenario = scenarioOf(told)
    const expected = await replay(shared(), scenario)
    check(told, expected)
    const steps = scenario.steps.map((step, index) => ({ ...step, expected: expected[index]! }))
    scenarios.push({ ...scenario, steps })
  }
  return { "schema/vectors/decisions.json": text({ description, ...shared() }, scenarios) }
}

/** A line for each response and each step: small, and a change shows what it changes. */
const text = (head: object, scenarios: ReadonlyArray<Scenario>): string => {
  const lines = (items: ReadonlyArray<string>, indent: string) => items.map((item) => `${indent}${item}`).join(",\n")
  const { responses: texts, ...rest } = head as { readonly responses: Readonly<Record<string, string>> }
  const members = Object.entries(rest).map(([name, value]) => `${JSON.stringify(name)}: ${JSON.stringify(value)}`)
  const named = Object.entries(texts).map(([name, value]) => `${JSON.stringify(name)}: ${JSON.stringify(value)}`)
  const written = scenarios.map(({ steps, ...told }) => {
    const facts = JSON.stringify(told).slice(0, -1)
    return `${facts}, "steps": [\n${lines(
      steps.map((step) => JSON.stringify(step)),
      "      "
    )}\n    ]}`
  })
  return `{\n${lines(members, "  ")},\n  "responses": {\n${lines(named, "    ")}\n  },\n  "scenarios": [\n${lines(written, "    ")}\n  ]\n}\n`
}
