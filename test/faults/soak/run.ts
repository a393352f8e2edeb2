/**
 * Runs one node and its PostgreSQL at half of the load that they can take, which is measured first, for two hours. Clients are those of
 * `npm run faults`. Each minute has licenses of its own, a sample of what node and database take, and the checks of the faults. At the
 * end the last third must be like the first.
 *
 *   npm run soak -- [--minutes 120] [--sample-seconds 60] [--seed 1]
 *
 * Exits with 1 if a limit of `Verdict.ts` is exceeded, a call is lost or counted twice, or a request fails.
 */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Console, Effect, References } from "effect"
import { Command } from "effect/cli"
import { numberFlag } from "../../support/processes/Flags.ts"
import type { Sample } from "./Sample.ts"
import { type Minute, runSoak } from "./Soak.ts"
import { judge } from "./Verdict.ts"

const flags = {
  minutes: numberFlag("minutes", 120, "How many minutes to run."),
  sampleSeconds: numberFlag("sample-seconds", 60, "How long each licenses are used, and one sample is."),
  seed: numberFlag("seed", 1, "The seed of the first minute.")
}

const shown = (value: number) => value.toLocaleString("en", { maximumFractionDigits: value < 100 ? 1 : 0 })

const columns: ReadonlyArray<keyof Sample> = [
  ...(["minutes", "requestsPerSecond", "p50Millis", "p99Millis", "loopDelayMillis"] as const),
  ...(["rssMegabytes", "heapMegabytes", "handles", "actors", "connections", "leases", "waiting"] as const),
  ...(["flatMegabytes", "flatDeadRows", "logMegabytes", "walMegabytes", "databaseMegabytes"] as const),
  ...(["events", "licenses"] as const)
]

const rowOf = (cells: ReadonlyArray<string>) => `| ${cells.join(" | ")} |`
const table = (head: ReadonlyArray<string>, rows: ReadonlyArray<ReadonlyArray<string>>) =>
  [head, head.map(() => "---"), ...rows].map(rowOf).join("\n")

const run = Effect.fnUntraced(
  function* ({ minutes, sampleSeconds, seed }: Command.Command.Config.Infer<typeof flags>) {
    const told = ({ answers, failed, sample, violations }: Minute, rate: number) =>
      Console.error(
        `${columns.map((name) => `${name} ${shown(sample[name])}`).join(", ")}; ${answers} answers at ${shown(rate)}/s, ${violations.length} violations, ${failed.length} failed`
      )
    const all = yield* runSoak(
      { samples: Math.round((60 * minutes) / sampleSeconds), seed, seconds: sampleSeconds },
      told
    )
    const violations = all.flatMap((minute) => minute.violations)
    const judged = judge(all.map(({ sample }) => sample))
    const verdict = judged.map(({ first, holds, last, most, name }) => [
      name,
      ...[first, last, most].map(shown),
      holds ? "yes" : "**no**"
    ])
    const samples = all.map(({ sample }) => columns.map((name) => shown(sample[name])))
    yield* Console.log(table(columns, samples))
    const compared = table(["Measure", "First third", "Last third", "At most", "Holds"], verdict)
    yield* Console.log(`\n${judged.length === 0 ? "The run is too short to be compared." : compared}`)
    const answers = all.reduce((sum, minute) => sum + minute.answers, 0)
    const failed = all.flatMap((minute) => minute.failed)
    yield* Console.log(
      `\n${shown(answers)} answers in ${all.length} samples, ${violations.length} violations, ${failed.length} requests failed`
    )
    for (const line of [...violations, ...failed]) yield* Console.log(line)
    const isRight = violations.length + failed.length === 0 && judged.every(({ holds }) => holds)
    if (!isRight) yield* Effect.sync(() => (process.exitCode = 1))
  },
  Effect.scoped,
  Effect.provideService(References.MinimumLogLevel, "Warn")
)

Command.make("soak", flags, run).pipe(
  Command.withDescription("Run the service for hours, and compare the end with the begin."),
  Command.run({ version: "1" }),
  Effect.provide(NodeServices.layer),
  NodeRuntime.runMain
)
