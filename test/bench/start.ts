/**
 * How long a start takes until `/readyz` answers 200: with an empty database, which gets its tables, and with one that has them.
 *
 *   npm run bench:start -- [--rounds 5] [--json]
 */
import { parseArgs } from "node:util"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Effect, Redacted } from "effect"
import { openSession } from "../../src/platform/postgres/driver/Postgres.ts"
import { peakMegabytes } from "./load/Processes.ts"
import { median, table } from "./load/Report.ts"
import { startOn } from "./load/Service.ts"
import { folder, startPostgres } from "./load/Sides.ts"

const { values: flags } = parseArgs({
  options: { rounds: { type: "string", default: "5" }, json: { type: "boolean", default: false } }
})

const rounds = Array.from({ length: Number(flags.rounds) }, (_, round) => round + 1)

const program = Effect.gen(function* () {
  const directory = yield* folder
  const { url } = yield* startPostgres(directory)
  const session = yield* openSession(url)
  const startWith = Effect.fnUntraced(function* (database: string) {
    const address = new URL(Redacted.value(url))
    address.pathname = database
    const began = performance.now()
    const { pid } = yield* startOn(Redacted.make(address.href), directory)
    return { millis: Math.round(performance.now() - began), megabytes: peakMegabytes(pid) }
  }, Effect.scoped)
  const made = yield* Effect.forEach(rounds, (round) =>
    Effect.as(session.values(`CREATE DATABASE start_${round}`), `start_${round}`)
  )
  // Modules are compiled and cached by the first start of a checkout.
  yield* startWith("postgres")
  const empty = yield* Effect.forEach(made, startWith)
  const ready = yield* Effect.forEach(made, startWith)
  const rows = Object.entries({ "an empty database": empty, "a database with tables": ready }).map(
    ([database, starts]) => ({
      with: database,
      median_ms: median(starts.map(({ millis }) => millis)),
      longest_ms: Math.max(...starts.map(({ millis }) => millis)),
      peak_megabytes: Math.max(...starts.map(({ megabytes }) => megabytes))
    })
  )
  yield* Effect.sync(() => process.stdout.write(`${flags.json ? JSON.stringify(rows, null, 2) : table(rows)}\n`))
})

NodeRuntime.runMain(Effect.scoped(program))
