/**
 * Runs seeds of the simulator in turn until one fails or all are done.
 *
 *   npm run simulate -- [--seeds 100] [--from 1] [--steps 40]   many seeds
 *   npm run simulate -- --seed 7 [--steps 40]                   one, again
 *
 * Then it prints how often each command, answer and fault occurred, and which never did. --verbose prints each seed's digest,
 * equal for two identical runs; --transcript prints every request and answer. --overlap 4 lets the database work on four
 * statements at a time, as in production: a wider search, but then the machine influences the order and a failure may not repeat.
 * --broken <name> breaks a rule of BrokenRules.ts on purpose, which must be found.
 *
 * It uses a new embedded PostgreSQL, or a new database on the server that LICENSING_TEST_DATABASE_URL names.
 */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Console, Effect, Option, References } from "effect"
import { Command, Flag } from "effect/cli"
import { migratedDatabase } from "../support/database/DatabaseServer.ts"
import { numberFlag } from "../support/processes/Flags.ts"
import { breakRule } from "./BrokenRules.ts"

const isGiven = (name: string, text: string) =>
  Flag.Boolean(name).pipe(Flag.withDescription(text), Flag.withDefault(false), Flag.withoutNegation)

const flags = {
  seed: Flag.Int("seed").pipe(Flag.withDescription("Run this seed only."), Flag.optional),
  seeds: numberFlag("seeds", 100, "How many seeds to run."),
  from: numberFlag("from", 1, "The first seed."),
  steps: numberFlag("steps", 40, "The steps of each seed."),
  overlap: numberFlag("overlap", 1, "The statements that the database works on at a time."),
  broken: Flag.String("broken").pipe(
    Flag.withDescription("Break this rule of BrokenRules.ts on purpose."),
    Flag.optional
  ),
  verbose: isGiven("verbose", "Print the digest of each seed."),
  transcript: isGiven("transcript", "Print every request and answer.")
}

const run = Effect.fnUntraced(
  function* (given: Command.Command.Config.Infer<typeof flags>) {
    const { broken, from, overlap, seed: only, steps, transcript, verbose } = given
    if (Option.isSome(broken)) breakRule(broken.value)
    // After the rule is broken.
    const [{ expectedCoverage }, { openPools }, { simulate }] = yield* Effect.promise(() =>
      Promise.all([import("./checks/Coverage.ts"), import("./nodes/Pools.ts"), import("./Simulation.ts")])
    )
    const pools = yield* openPools((yield* migratedDatabase).url)
    const first = Option.getOrElse(only, () => from)
    const count = Option.isSome(only) ? 1 : given.seeds
    let requests = 0
    const coverage = expectedCoverage()
    for (let seed = first; seed < first + count; seed++) {
      const result = yield* simulate(pools, { seed, steps, overlap })
      requests += result.requests
      coverage.add(result.coverage)
      if (result.failure !== undefined) {
        yield* Console.log(result.failure)
        yield* Console.log(`found after ${seed - first + 1} seeds and ${requests} requests`)
        return yield* Effect.sync(() => {
          process.exitCode = 1
        })
      }
      if (transcript) yield* Console.log(result.transcript())
      if (verbose) yield* Console.log(`seed ${seed}: ${result.requests} requests, ${result.digest}`)
    }
    for (const line of coverage.lines) yield* Console.log(line)
    if (coverage.missing.length > 0) yield* Console.log(`Never happened: ${coverage.missing.join(", ")}`)
    yield* Console.log(`${count} seeds, ${requests} requests: nothing found.`)
  },
  Effect.scoped,
  Effect.provideService(References.MinimumLogLevel, "Warn")
)

Command.make("simulate", flags, run).pipe(
  Command.withDescription("Run seeds of the simulator until one fails or all are done."),
  Command.run({ version: "1" }),
  Effect.provide(NodeServices.layer),
  NodeRuntime.runMain
)
