/**
 * Measures the service against the hand-written baseline, in alternating turns on one PostgreSQL server and one
 * machine.
 *
 *   npm run bench -- [--rounds 3] [--seconds 8] [--warmup 3] [--connections 64] [--licenses 1000]
 *                    [--only validate,consume,hot,activate,lease] [--side service|baseline|bare] [--against <folder>]
 *                    [--monthly] [--memory] [--json] [--assert]
 *
 * --against compares with the service of another checkout (its packages installed) instead of the baseline, to measure
 * the cost of a change: use 4 rounds or more, because other load of the machine easily changes one by a tenth. --monthly
 * compares with the same service whose consumed feature has a monthly quota. lease:
 * checkout, heartbeat and checkin of a floating seat in sequence, each of them a request; at the end all seats are
 * requested at once, and one more. --memory uses 10,000 licenses once each instead and reports the service's peak
 * memory. --assert exits with 1 if a target is missed; --json prints the result as JSON. Counters and seats are
 * compared with the responses at the end: nothing may be lost or counted twice.
 */
import { parseArgs } from "node:util"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Effect } from "effect"
import { type Operation, operations } from "./load/Load.ts"
import { cpuSeconds, cpuSecondsOfFamily, peakMegabytes } from "./load/Processes.ts"
import {
  comparisonOf,
  floorTarget,
  memoryTarget,
  miscountedTarget,
  monthlyTarget,
  type Round,
  rowOf,
  type Target,
  table,
  targetsOf
} from "./load/Report.ts"
import { folder, type Side, type SideName, startPostgres, startSide } from "./load/Sides.ts"

const { values: flags } = parseArgs({
  options: {
    rounds: { type: "string", default: "3" },
    seconds: { type: "string", default: "8" },
    warmup: { type: "string", default: "3" },
    connections: { type: "string", default: "64" },
    licenses: { type: "string" },
    only: { type: "string" },
    side: { type: "string" },
    against: { type: "string" },
    monthly: { type: "boolean", default: false },
    memory: { type: "boolean", default: false },
    json: { type: "boolean", default: false },
    assert: { type: "boolean", default: false }
  }
})

const sideNames: ReadonlyArray<SideName> =
  flags.against !== undefined
    ? ["service", "other"]
    : flags.monthly
      ? ["service", "monthly"]
      : ["service", "baseline", "bare"]
const licensesOf = { load: 1000, memory: 10_000 }

const chosen = <A extends string>(all: ReadonlyArray<A>, given: string | undefined, what: string): ReadonlyArray<A> => {
  if (given === undefined) return all
  const selected = given
    .split(",")
    .map((name) => all.find((candidate) => candidate === name || candidate.startsWith(`${name} `)))
  if (selected.includes(undefined)) throw new Error(`--${what} takes some of: ${all.join(", ")}`)
  return selected as Array<A>
}

/** Progress goes to standard error: standard output contains only the result. */
const say = (line: string) => Effect.sync(() => process.stderr.write(`${line}\n`))

const turn = async (side: Side, operation: Operation, postgres: number): Promise<Round> => {
  await side.order({ do: "load", operation, seconds: Number(flags.warmup) }, "loaded")
  const used = () => ({
    server: cpuSeconds(side.pid),
    postgres: cpuSecondsOfFamily(postgres),
    driver: cpuSeconds(side.driverPid)
  })
  const before = used()
  const { measured } = await side.order({ do: "load", operation, seconds: Number(flags.seconds) }, "loaded")
  const after = used()
  const cpu = {
    server: after.server - before.server,
    postgres: after.postgres - before.postgres,
    driver: after.driver - before.driver
  }
  return { side: side.name, operation, cpu, ...measured }
}

/** All rounds of one operation, alternating between the sides, and then the comparison of the counters. */
const measure = Effect.fnUntraced(function* (operation: Operation, started: ReadonlyArray<Side>, postgres: number) {
  const sides = started.filter(({ name }) => name !== "bare" || operation === "validate")
  const licenses = operation === "hot consume" ? 1 : Number(flags.licenses ?? licensesOf.load)
  yield* say(`${operation}: making ${licenses} licenses on each side`)
  for (const side of sides) {
    yield* Effect.promise(() => side.order({ do: "prepare", operation, licenses }, "prepared"))
  }
  const rounds: Array<Round> = []
  for (let number = 1; number <= Number(flags.rounds); number++) {
    for (const side of sides) {
      const round = yield* Effect.promise(() => turn(side, operation, postgres))
      rounds.push(round)
      yield* say(
        `${operation}, round ${number}, ${side.name}: ${round.requestsPerSecond}/s, p99 ${round.p99.toFixed(1)} ms`
      )
      if (round.failure !== undefined) yield* say(`  ${round.failed} failed, the first: ${round.failure.slice(0, 300)}`)
    }
  }
  const targets: Array<Target> = []
  for (const side of sides) {
    const { miscounted } = yield* Effect.promise(() => side.order({ do: "compare", operation }, "compared"))
    if (side.name === "service") targets.push(miscountedTarget(operation, miscounted))
    else if (miscounted !== 0) yield* say(`${side.name} miscounted ${miscounted} in ${operation}`)
  }
  const rows = sides.map(({ name }) => rowOf(operation, name, rounds))
  const sideOf = (name: SideName) => rows.find((row) => row.side === name)
  const [service, baseline, other, bare] = [sideOf("service"), sideOf("baseline"), sideOf("other"), sideOf("bare")]
  if (service && bare) targets.unshift(floorTarget(operation, service, bare))
  if (service && baseline) targets.unshift(...targetsOf(operation, service, baseline))
  const comparisons = service && other ? [comparisonOf(operation, service, other)] : []
  const monthly = sideOf("monthly")
  if (service && monthly) {
    comparisons.push(comparisonOf(operation, monthly, service))
    targets.unshift(monthlyTarget(operation, monthly, service))
  }
  return { rows, targets, comparisons }
})

const compareSides = Effect.gen(function* () {
  const directory = yield* folder
  const postgres = yield* startPostgres(directory)
  const options = { directory, connections: Number(flags.connections), against: flags.against }
  const sides = yield* Effect.forEach(chosen(sideNames, flags.side, "side"), (name) =>
    startSide(name, postgres.url, options)
  )
  const measured = yield* Effect.forEach(chosen(operations, flags.only, "only"), (operation) =>
    measure(operation, sides, postgres.pid)
  )
  return {
    rows: measured.flatMap(({ rows }) => rows),
    memory: sides.map(({ driverPid, name, pid }) => ({
      side: name,
      peak_megabytes: peakMegabytes(pid),
      driver_peak_megabytes: peakMegabytes(driverPid)
    })),
    comparisons: measured.flatMap(({ comparisons }) => comparisons),
    targets: measured.flatMap(({ targets }) => targets)
  }
})

const touchMany = Effect.gen(function* () {
  const directory = yield* folder
  const postgres = yield* startPostgres(directory)
  const side = yield* startSide("service", postgres.url, { directory, connections: Number(flags.connections) })
  const licenses = Number(flags.licenses ?? licensesOf.memory)
  const operation = "consume"
  yield* say(`making ${licenses} licenses`)
  yield* Effect.promise(() => side.order({ do: "prepare", operation, licenses }, "prepared"))
  const peakAfterSetup = peakMegabytes(side.pid)
  yield* Effect.promise(() => side.order({ do: "touch", operation }, "touched"))
  const touched = peakMegabytes(side.pid)
  const { miscounted } = yield* Effect.promise(() => side.order({ do: "compare", operation }, "compared"))
  return {
    rows: [{ licenses, peak_megabytes_made: peakAfterSetup, peak_megabytes_used: touched }],
    memory: [],
    comparisons: [],
    targets: [memoryTarget(licenses, peakMegabytes(side.pid)), miscountedTarget(operation, miscounted)]
  }
})

const program = Effect.gen(function* () {
  const result = yield* flags.memory ? touchMany : compareSides
  const tables = [result.rows, result.memory, result.comparisons, result.targets].filter(
    (records) => records.length > 0
  )
  const text = flags.json ? JSON.stringify(result, null, 2) : tables.map(table).join("\n\n")
  yield* Effect.sync(() => process.stdout.write(`${text}\n`))
  if (flags.assert && result.targets.some(({ holds }) => !holds)) {
    return yield* Effect.sync(() => {
      process.exitCode = 1
    })
  }
})

NodeRuntime.runMain(Effect.scoped(program))
