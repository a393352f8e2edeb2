/**
 * The gain or cost of further nodes for the same licenses: one license, and many without routing by license, beside the
 * same requests at one node alone and, for many licenses, with each license routed to its own node; in alternating
 * turns.
 *
 *   npm run bench:nodes -- [--nodes 2,3] [--clients 16] [--licenses 100] [--verb consume|activate|validate|lease]
 *                          [--rounds 4] [--seconds 5] [--cluster] [--haproxy] [--standby 0,5,60] [--json]
 *
 * --cluster lets the nodes hand commands to the owner of each license; one node alone is then a further node without it. --haproxy
 * adds the real HAProxy with infra/balancers/haproxy.cfg in front of the nodes, at most eight (`apt-get install haproxy`).
 *
 * --nodes and --standby take lists; each combination starts anew. --standby lets each commit wait for a standby that is so many
 * milliseconds away; with 0, the default, there is none.
 *
 * --clients is the connections for each node; one node alone gets those of all. Clients send again after each response.
 * CPU is the sum over all nodes, for each request. Exits with 1 if a request was refused or failed, or a count differs
 * from the responses: consumptions by license, feature, ledger and events, activations, seats, and the numbers of
 * events and ledger.
 */
import { randomUUID } from "node:crypto"
import { parseArgs } from "node:util"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect } from "effect"
import { SecureRandom } from "effect/crypto"
import { openSession } from "../../src/platform/postgres/driver/Postgres.ts"
import { freePort, startHaproxy } from "./load/Balancer.ts"
import { makeSeats, managementOf, type Seat } from "./load/Licenses.ts"
import { type LoadTarget, type Measured, openLoad, operations } from "./load/Load.ts"
import { cpuSeconds, cpuSecondsOfFamily } from "./load/Processes.ts"
import { median, table } from "./load/Report.ts"
import { say, startOn } from "./load/Service.ts"
import { folder, startPostgres } from "./load/Sides.ts"
import { startReplicated } from "./load/Standby.ts"
import { rounded } from "./load/Turns.ts"
import { compareCounts, compareSequences } from "./rows/nodesCounts.ts"

const { values: flags } = parseArgs({
  options: {
    nodes: { type: "string", default: "2" },
    clients: { type: "string", default: "16" },
    licenses: { type: "string", default: "100" },
    verb: { type: "string", default: "consume" },
    rounds: { type: "string", default: "4" },
    seconds: { type: "string", default: "5" },
    cluster: { type: "boolean", default: false },
    haproxy: { type: "boolean", default: false },
    standby: { type: "string", default: "0" },
    json: { type: "boolean", default: false }
  }
})

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

interface Installation {
  readonly nodes: number
  readonly standbyMillis: number
}

const numbersOf = (list: string): ReadonlyArray<number> => list.split(",").map(Number)
const installations: ReadonlyArray<Installation> = numbersOf(flags.standby).flatMap((standbyMillis) =>
  numbersOf(flags.nodes).map((nodes) => ({ nodes, standbyMillis }))
)

interface Places {
  readonly alone: string
  readonly bases: ReadonlyArray<string>
  /** HAProxy, if it was asked for. */
  readonly balancer: string | undefined
}

/** Which service is asked for which licenses. */
const distributions: Record<string, (places: Places, seats: ReadonlyArray<Seat>) => ReadonlyArray<LoadTarget>> = {
  "one node": ({ alone }, seats) => [{ base: alone, seats: shuffledCopies(seats) }],
  "any node": ({ bases }, seats) => bases.map((base) => ({ base, seats: shuffledCopies(seats) })),
  "its own node": ({ bases }, seats) =>
    bases.map((base, node) => ({
      base,
      seats: shuffledCopies(seats.filter((_, index) => index % bases.length === node))
    })),
  HAProxy: ({ balancer }, seats) => (balancer === undefined ? [] : [{ base: balancer, seats: shuffledCopies(seats) }])
}

interface Service {
  readonly base: string
  readonly pid: number
}

const clusterSettings = Effect.fnUntraced(function* () {
  const address = `127.0.0.1:${yield* Effect.promise(freePort)}`
  return { LICENSING_CLUSTER: "true", LICENSING_CLUSTER_LISTEN: address, LICENSING_CLUSTER_ADDRESS: address }
})

const startMeasured = Effect.fnUntraced(function* ({ nodes, standbyMillis }: Installation) {
  const directory = yield* folder
  const postgres = yield* standbyMillis === 0 ? startPostgres(directory) : startReplicated(standbyMillis)
  const services: Array<Service> = []
  const proxied = flags.haproxy ? { LICENSING_TRUSTED_PROXIES: "127.0.0.1/32" } : {}
  const first = yield* startOn(postgres.url, directory)
  if (!flags.cluster) services.push(first)
  while (services.length < nodes) {
    const settings = { ...proxied, ...(flags.cluster ? yield* clusterSettings() : {}) }
    services.push(yield* startOn(postgres.url, directory, settings))
  }
  const bases = services.map(({ base }) => base)
  const haproxy = flags.haproxy ? yield* startHaproxy(bases) : undefined
  const management = yield* Effect.promise(() => managementOf(first.base, first.token))
  const processes = [...new Set([first, ...services])]
  const used = () => ({
    nodes: processes.reduce((sum, { pid }) => sum + cpuSeconds(pid), 0),
    postgres: cpuSecondsOfFamily(postgres.pid)
  })
  const places: Places = { alone: first.base, bases, balancer: haproxy }
  return { management, places, session: yield* openSession(postgres.url), used }
})

type Turn = Measured & { readonly nodes: number; readonly postgres: number }

interface Load {
  readonly licenses: number
  readonly sent_to: string
  readonly run: (seconds: number) => Promise<Measured>
  readonly close: () => Promise<unknown>
  readonly turns: Array<Turn>
}

/** Which load is run: each has its own licenses, so that none finds what another one left in the nodes' memory. */
const plannedLoads = (nodes: number) =>
  [1, Number(flags.licenses)].flatMap((size) =>
    Object.entries(distributions)
      // A license that is alone is at a node of its own when it is at one.
      .filter(([name]) => size >= nodes || (name !== "its own node" && name !== "HAProxy"))
      .filter(([name]) => flags.haproxy || name !== "HAProxy")
      .map(([sent_to, placesOf]) => ({ licenses: size, sent_to, placesOf }))
  )

const rowOf = ({ nodes, standbyMillis }: Installation, { licenses, sent_to, turns }: Load) => {
  const middle = (pick: (turn: Turn) => number) => median(turns.map(pick))
  const sum = (pick: (turn: Turn) => number) => turns.reduce((total, turn) => total + pick(turn), 0)
  const each = (pick: (turn: Turn) => number) => Math.round((1e6 * sum(pick)) / sum(({ answered }) => answered))
  const codes = new Map<string, number>()
  for (const [code, times] of turns.flatMap(({ refused }) => Object.entries(refused))) {
    codes.set(code, (codes.get(code) ?? 0) + times)
  }
  const refused = [...codes.values()].reduce((total, times) => total + times, 0)
  return {
    nodes,
    standby_ms: standbyMillis,
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

/** What a node says of the commands that it handed over or took over. */
const handedOver = async (base: string): Promise<string> => {
  const text = await (await fetch(`${base}/metrics`)).text()
  return text
    .split("\n")
    .filter((line) => line.startsWith("licensing_cluster_"))
    .join("\n")
}

const measure = Effect.fnUntraced(function* (installation: Installation) {
  const { nodes } = installation
  const connections = nodes * Number(flags.clients)
  yield* say(`${nodes} nodes, standby ${installation.standbyMillis} ms away`)
  const { management, places, session, used } = yield* startMeasured(installation)
  const seats: Array<Seat> = []
  const loads: Array<Load> = []
  for (const { licenses, placesOf, sent_to } of plannedLoads(nodes)) {
    yield* say(`making ${licenses} licenses for ${sent_to}`)
    const run = `nodes-${licenses}-${randomUUID().slice(0, 8)}`
    const own = yield* Effect.promise(() => makeSeats(management, run, licenses, connections))
    seats.push(...own)
    const load = openLoad({ places: placesOf(places, own), operation, connections, verify: management.verify })
    loads.push({ licenses, sent_to, ...load, turns: [] })
  }
  // A server that has run for a while reuses old WAL segments; a new one would create each while commits wait.
  yield* session.values("CHECKPOINT")
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
  if (flags.cluster) for (const base of places.bases) yield* say(yield* Effect.promise(() => handedOver(base)))
  for (const { close } of loads) yield* Effect.promise(close)
  const rows = loads.map((load) => rowOf(installation, load))
  const checks = [
    ...(yield* compareCounts(session, operation, seats)),
    ...(yield* compareSequences(session)),
    { check: "refused or failed", told: 0, found: failed, holds: failed === 0 }
  ]
  return { rows, checks: checks.map((check) => ({ nodes, standby_ms: installation.standbyMillis, ...check })) }
})

const program = Effect.gen(function* () {
  const measured = yield* Effect.forEach(installations, (installation) => Effect.scoped(measure(installation)))
  const [rows, checks] = [measured.flatMap(({ rows }) => rows), measured.flatMap(({ checks }) => checks)]
  const text = flags.json ? JSON.stringify({ rows, checks }, null, 2) : [rows, checks].map(table).join("\n\n")
  yield* Effect.sync(() => process.stdout.write(`${text}\n`))
  if (checks.some(({ holds }) => !holds)) yield* Effect.sync(() => (process.exitCode = 1))
})

NodeRuntime.runMain(program.pipe(Effect.provide([NodeServices.layer, SecureRandom.layerWebCrypto])))
