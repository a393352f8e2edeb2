/**
 * The gain or cost of further nodes for the same licenses: one license, and many without routing by license, beside the
 * same requests at one node alone and, for many licenses, with each license routed to its own node; in alternating
 * turns.
 *
 *   npm run bench:nodes -- [--nodes 2] [--clients 16] [--licenses 100] [--verb consume|activate|validate|lease]
 *                          [--rounds 4] [--seconds 5] [--json]
 *
 * --clients is the connections for each node; one node alone gets those of all. Clients send again after each response.
 * CPU is the sum over all nodes, for each request. Exits with 1 if a request was refused or failed, or a count differs
 * from the responses: consumptions by license, feature, ledger and events, activations, seats, and the numbers of
 * events and ledger.
 */
import { randomUUID } from "node:crypto"
import { parseArgs } from "node:util"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Effect } from "effect"
import { openSession } from "../../src/postgres/Postgres.ts"
import { type Management, makeSeats, managementOf, type Seat } from "./Licenses.ts"
import { type LoadTarget, type Measured, openLoad, operations } from "./Load.ts"
import { compareCounts, compareSequences } from "./nodesCounts.ts"
import { cpuSeconds, cpuSecondsOfFamily } from "./Processes.ts"
import { median, table } from "./Report.ts"
import { say, startOn } from "./Service.ts"
import { folder, startPostgres } from "./Sides.ts"
import { rounded } from "./Turns.ts"

const { values: flags } = parseArgs({
  options: {
    nodes: { type: "string", default: "2" },
    clients: { type: "string", default: "16" },
    licenses: { type: "string", default: "100" },
    verb: { type: "string", default: "consume" },
    rounds: { type: "string", default: "4" },
    seconds: { type: "string", default: "5" },
    json: { type: "boolean", default: false }
  }
})

const nodes = Number(flags.nodes)
const connections = nodes * Number(flags.clients)
const found = operations.find((operation) => operation === flags.verb)
if (found === undefined) throw new Error("--verb takes one of: consume, activate, validate, lease")
const operation = found

/** How often each license appears in a place's list, in a different order each time. */
const walks = 20

/** For each load, before the first of its rounds. */
const warmupSeconds = 2

const shuffled = (seats: ReadonlyArray<Seat>): Array<Seat> => {
  const order = [...seats]
  for (let last = order.length - 1; last > 0; last--) {
    const other = Math.floor(Math.random() * (last + 1))
    ;[order[last], order[other]] = [order[other]!, order[last]!]
  }
  return order
}
const shuffledCopies = (seats: ReadonlyArray<Seat>) => Array.from({ length: walks }, () => shuffled(seats)).flat()

/** Which service is asked for which licenses. */
const distributions: Record<
  string,
  (bases: ReadonlyArray<string>, seats: ReadonlyArray<Seat>) => ReadonlyArray<LoadTarget>
> = {
  "one node": ([base], seats) => [{ base: base!, seats: shuffledCopies(seats) }],
  "any node": (bases, seats) => bases.map((base) => ({ base, seats: shuffledCopies(seats) })),
  "its own node": (bases, seats) =>
    bases.map((base, node) => ({
      base,
      seats: shuffledCopies(seats.filter((_, index) => index % bases.length === node))
    }))
}

interface Service {
  readonly base: string
  readonly pid: number
}

const startMeasured = Effect.gen(function* () {
  const directory = yield* folder
  const postgres = yield* startPostgres(directory)
  const services: Array<Service> = []
  const first = yield* startOn(postgres.url, directory)
  services.push(first)
  while (services.length < nodes) services.push(yield* startOn(postgres.url, directory))
  const management = yield* Effect.promise(() => managementOf(first.base, first.token))
  const used = () => ({
    nodes: services.reduce((sum, { pid }) => sum + cpuSeconds(pid), 0),
    postgres: cpuSecondsOfFamily(postgres.pid)
  })
  return { management, services, session: yield* openSession(postgres.url), used }
})

type Turn = Measured & { readonly nodes: number; readonly postgres: number }

interface Load {
  readonly licenses: number
  readonly sent_to: string
  readonly run: (seconds: number) => Promise<Measured>
  readonly close: () => Promise<unknown>
  readonly turns: Array<Turn>
}

const openLoads = (
  { verify }: Management,
  services: ReadonlyArray<Service>,
  seatsByLoad: ReadonlyArray<ReadonlyArray<Seat>>
): ReadonlyArray<Load> => {
  const bases = services.map(({ base }) => base)
  return seatsByLoad.flatMap((seats) =>
    Object.entries(distributions)
      // A license that is alone is at a node of its own when it is at one.
      .filter(([name]) => name !== "its own node" || seats.length >= nodes)
      .map(([sent_to, placesOf]) => {
        const load = openLoad({ places: placesOf(bases, seats), operation, connections, verify })
        return { licenses: seats.length, sent_to, ...load, turns: [] }
      })
  )
}

const rowOf = ({ licenses, sent_to, turns }: Load) => {
  const middle = (pick: (turn: Turn) => number) => median(turns.map(pick))
  const sum = (pick: (turn: Turn) => number) => turns.reduce((total, turn) => total + pick(turn), 0)
  const each = (pick: (turn: Turn) => number) => Math.round((1e6 * sum(pick)) / sum(({ answered }) => answered))
  const codes = new Map<string, number>()
  for (const [code, times] of turns.flatMap(({ refused }) => Object.entries(refused))) {
    codes.set(code, (codes.get(code) ?? 0) + times)
  }
  const refused = [...codes.values()].reduce((total, times) => total + times, 0)
  return {
    licenses,
    sent_to,
    per_second: Math.round(middle(({ requestsPerSecond }) => requestsPerSecond)),
    p50_ms: rounded(middle(({ p50 }) => p50)),
    p99_ms: rounded(middle(({ p99 }) => p99)),
    cpu_us: each((turn) => turn.nodes),
    postgres_cpu_us: each(({ postgres }) => postgres),
    answered: sum(({ answered }) => answered),
    refused: [...codes].map(([code, times]) => `${code} ${times}`).join(", ") || "none",
    failed: sum(({ failed }) => failed) - refused
  }
}

const program = Effect.gen(function* () {
  const { management, services, session, used } = yield* startMeasured
  const sizes = [1, Number(flags.licenses)]
  const seatsByLoad: Array<Array<Seat>> = []
  for (const size of sizes) {
    yield* say(`making ${size} licenses`)
    const run = `nodes-${size}-${randomUUID().slice(0, 8)}`
    seatsByLoad.push(yield* Effect.promise(() => makeSeats(management, run, size, connections)))
  }
  // A server that has run for a while reuses old WAL segments; a new one would create each while commits wait.
  yield* session.values("CHECKPOINT")
  const loads = openLoads(management, services, seatsByLoad)
  let failed = 0
  for (const { run } of loads) failed += (yield* Effect.promise(() => run(warmupSeconds))).failed
  for (let round = 1; round <= Number(flags.rounds); round++) {
    for (const { licenses, run, sent_to, turns } of loads) {
      const before = used()
      const measured = yield* Effect.promise(() => run(Number(flags.seconds)))
      const after = used()
      turns.push({ ...measured, nodes: after.nodes - before.nodes, postgres: after.postgres - before.postgres })
      const { failure, p99, requestsPerSecond } = measured
      failed += measured.failed
      yield* say(`${licenses} at ${sent_to}, round ${round}: ${requestsPerSecond}/s, p99 ${p99.toFixed(1)} ms`)
      if (failure !== undefined) yield* say(`  ${measured.failed} failed, the first: ${failure.slice(0, 300)}`)
    }
  }
  for (const { close } of loads) yield* Effect.promise(close)
  const rows = loads.map(rowOf)
  const checks = [
    ...(yield* compareCounts(session, operation, seatsByLoad.flat())),
    ...(yield* compareSequences(session)),
    { check: "refused or failed", told: 0, found: failed, holds: failed === 0 }
  ]
  const text = flags.json ? JSON.stringify({ rows, checks }, null, 2) : [rows, checks].map(table).join("\n\n")
  yield* Effect.sync(() => process.stdout.write(`${text}\n`))
  if (checks.some(({ holds }) => !holds)) yield* Effect.sync(() => (process.exitCode = 1))
})

NodeRuntime.runMain(Effect.scoped(program))
