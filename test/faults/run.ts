/**
 * Runs the service as processes under load and breaks what it depends on, one fault a round, in an order that the seed gives.
 * After each round it compares what callers were told with the database and the event feed.
 *
 *   npm run faults -- [--seed 1] [--rounds 30] [--nodes 3] [--only "kill a node"] [--transcript]
 *   npm run faults -- --previous <checkout of an earlier version>
 *
 * Exits with 1 at the first violation, with the command that repeats the round and the file of its transcript.
 */
import { writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Console, Effect, Option, References } from "effect"
import { Command, Flag } from "effect/cli"
import { numberFlag } from "../support/processes/Flags.ts"
import { runRounds, skippedFaults } from "./Faults.ts"
import { tableOf } from "./Report.ts"
import type { RoundResult } from "./Rounds.ts"

const flags = {
  seed: numberFlag("seed", 1, "The seed of the first round."),
  rounds: numberFlag("rounds", 30, "How many rounds to run."),
  nodes: numberFlag("nodes", 3, "How many nodes: 1 or 3."),
  transcript: Flag.Boolean("transcript").pipe(
    Flag.withDescription("Keep the transcript of each round."),
    Flag.withDefault(false),
    Flag.withoutNegation
  ),
  only: Flag.String("only").pipe(Flag.withDescription("Only faults with this text in their names."), Flag.optional),
  previous: Flag.String("previous").pipe(
    Flag.withDescription("Replace the nodes of an earlier version's checkout by those of this one, each round anew."),
    Flag.optional
  )
}

const transcriptOf = ({ calls }: RoundResult) => calls.map((call) => JSON.stringify(call)).join("\n")

const run = Effect.fnUntraced(
  function* ({ nodes, only, previous, rounds, seed, transcript }: Command.Command.Config.Infer<typeof flags>) {
    const results: Array<Omit<RoundResult, "calls">> = []
    const told = Effect.fnUntraced(function* (result: RoundResult) {
      const { calls: _calls, ...rest } = result
      results.push(rest)
      const { acknowledged, answers, fault, longestGapMillis, violations } = rest
      yield* Console.error(
        `seed ${result.seed}: ${fault}: ${answers} answers, ${acknowledged} acknowledged, gap ${longestGapMillis} ms`
      )
      if (violations.length === 0 && !transcript) return
      const path = join(tmpdir(), `faults-${result.seed}.jsonl`)
      yield* Effect.sync(() => writeFileSync(path, transcriptOf(result)))
      yield* Console.log(`Transcript: ${path}`)
      yield* Console.log(`Again: npm run faults -- --nodes ${nodes} --seed ${result.seed} --rounds 1 --only "${fault}"`)
    })
    const named = { only: Option.getOrUndefined(only), previous: Option.getOrUndefined(previous) }
    const violations = yield* runRounds({ nodes, rounds, seed, ...named }, told)
    yield* Console.log(tableOf(results))
    for (const skipped of skippedFaults) yield* Console.log(`Skipped: ${skipped}`)
    for (const violation of violations) yield* Console.log(violation)
    if (violations.length > 0) yield* Effect.sync(() => (process.exitCode = 1))
  },
  Effect.scoped,
  Effect.provideService(References.MinimumLogLevel, "Warn")
)

Command.make("faults", flags, run).pipe(
  Command.withDescription("Break what the service depends on, and check what callers were told."),
  Command.run({ version: "1" }),
  Effect.provide(NodeServices.layer),
  NodeRuntime.runMain
)
