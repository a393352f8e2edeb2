/**
 * Runs seeds of the simulator in turn until one fails or all are done.
 *
 *   npm run simulate -- [--seeds 100] [--from 1] [--steps 40]   many seeds
 *   npm run simulate -- --seed 7 [--steps 40]                   one, again
 *
 * Then it prints how often each command, answer and fault occurred, and which never did. --verbose prints each seed's digest,
 * equal for two identical runs; --transcript prints every request and answer. --overlap 4 lets the database work on four
 * statements at a time, as in production: a wider search, but then the machine influences the order and a failure may not repeat.
 *
 * It uses a new embedded PostgreSQL, or a new database on the server that LICENSING_TEST_DATABASE_URL names.
 */
import { parseArgs } from "node:util"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Effect, References } from "effect"
import { migratedDatabase } from "../support/database/DatabaseServer.ts"
import { expectedCoverage } from "./checks/Coverage.ts"
import { openPools } from "./nodes/Pools.ts"
import { simulate } from "./Simulation.ts"

const { values: flags } = parseArgs({
  options: {
    seed: { type: "string" },
    seeds: { type: "string", default: "100" },
    from: { type: "string", default: "1" },
    steps: { type: "string", default: "40" },
    overlap: { type: "string", default: "1" },
    verbose: { type: "boolean", default: false },
    transcript: { type: "boolean", default: false }
  }
})

const say = (line: string) => Effect.sync(() => process.stdout.write(`${line}\n`))

const program = Effect.gen(function* () {
  const pools = yield* openPools((yield* migratedDatabase).url)
  const first = Number(flags.seed ?? flags.from)
  const count = flags.seed === undefined ? Number(flags.seeds) : 1
  let requests = 0
  const coverage = expectedCoverage()
  for (let seed = first; seed < first + count; seed++) {
    const result = yield* simulate(pools, { seed, steps: Number(flags.steps), overlap: Number(flags.overlap) })
    requests += result.requests
    coverage.add(result.coverage)
    if (result.failure !== undefined) {
      yield* say(result.failure)
      yield* say(`found after ${seed - first + 1} seeds and ${requests} requests`)
      return yield* Effect.sync(() => {
        process.exitCode = 1
      })
    }
    if (flags.transcript) yield* say(result.transcript())
    if (flags.verbose) yield* say(`seed ${seed}: ${result.requests} requests, ${result.digest}`)
  }
  for (const line of coverage.lines) yield* say(line)
  if (coverage.missing.length > 0) yield* say(`Never happened: ${coverage.missing.join(", ")}`)
  yield* say(`${count} seeds, ${requests} requests: nothing found.`)
}).pipe(Effect.scoped, Effect.provideService(References.MinimumLogLevel, "Warn"))

NodeRuntime.runMain(program)
