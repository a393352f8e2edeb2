/**
 * How long licenses stay without an answer when the node that owns them dies or freezes: from the fault to the first answer of the
 * other node, for each license.
 *
 *   npm run bench:deaths -- [--faults 6] [--licenses 40] [--per-second 200] [--json]
 *
 * Two nodes hand commands to the owner of each license. One client for each license consumes at both nodes in turn, so that all are
 * handed over. Then the second node gets SIGKILL, or SIGSTOP in every second round, while the clients continue at the first one, and a
 * new node takes its place. Requests in flight at the first node when the other one dies count from the fault on; those sent later
 * count from when they were sent. The longest answer of the second before the fault tells what the machine does by itself.
 *
 * Exits with 1 if an answer was not 200, before the fault or after it, if nothing was handed over, or if an answer took too long: more
 * than a second after SIGKILL, two seconds after SIGSTOP. A frozen node may hold a license's row locked for the first second
 * (docs/OPERATIONS.md).
 */
import { randomUUID } from "node:crypto"
import { setTimeout as pause } from "node:timers/promises"
import { parseArgs } from "node:util"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Effect, type Scope } from "effect"
import { Pool } from "undici"
import { freePort } from "./load/Balancer.ts"
import { consumedFeature, makeSeats, managementOf, type Seat } from "./load/Licenses.ts"
import { median, table } from "./load/Report.ts"
import { say, startOn } from "./load/Service.ts"
import { folder, startPostgres } from "./load/Sides.ts"
import { rounded } from "./load/Turns.ts"

const { values: flags } = parseArgs({
  options: {
    faults: { type: "string", default: "6" },
    licenses: { type: "string", default: "40" },
    "per-second": { type: "string", default: "200" },
    json: { type: "boolean", default: false }
  }
})

const licenses = Number(flags.licenses)
/** Between two requests of a license. */
const intervalMillis = (1_000 * licenses) / Number(flags["per-second"])
const answerMillisMax = { SIGKILL: 1_000, SIGSTOP: 2_000 }
/** After a fault: longer than the row of a dead node lives. */
const observedMillis = 7_000
/** Before it: each node finds out that the other one changes the same licenses. */
const sharingRounds = 6

interface Answer {
  readonly status: number
  readonly sentAt: number
  readonly millis: number
}

const consume = async (pool: Pool, { authorization, fingerprint }: Seat): Promise<Answer> => {
  const sentAt = performance.now()
  const { body, statusCode } = await pool.request({
    path: "/api/v1/license/consume",
    method: "POST",
    headers: { authorization, "content-type": "application/json" },
    body: JSON.stringify({ fingerprint, feature_code: consumedFeature, event_id: randomUUID(), amount: 1 })
  })
  await body.dump()
  return { status: statusCode, sentAt, millis: performance.now() - sentAt }
}

/** The count of a metric's outcome at a node. */
const handedOver = async (base: string, outcome: string): Promise<number> => {
  const text = await (await fetch(`${base}/metrics`)).text()
  return Number(
    new RegExp(`^licensing_cluster_handed_over_total\\{outcome="${outcome}"\\} (\\d+)`, "m").exec(text)?.[1] ?? 0
  )
}

const clusterSettings = Effect.map(Effect.promise(freePort), (port) => ({
  LICENSING_CLUSTER: "true",
  LICENSING_CLUSTER_LISTEN: `127.0.0.1:${port}`,
  LICENSING_CLUSTER_ADDRESS: `127.0.0.1:${port}`
}))

const connectedPeers = async (base: string): Promise<number> => {
  const text = await (await fetch(`${base}/metrics`)).text()
  return Number(/^licensing_cluster_peers\{state="connected"\} (\d+)/m.exec(text)?.[1] ?? 0)
}

/**
 * One client for each license until the time is over. Returns the waits for answers to requests that were in flight at the fault, or
 * later, and how many of all requests were refused.
 */
const answersAfter = async (pool: Pool, seats: ReadonlyArray<Seat>, fault: () => void) => {
  const faultAt = performance.now() + 1_000
  const until = faultAt + observedMillis
  const answers: Array<Answer> = []
  let [longestBefore, refused] = [0, 0]
  const client = async (seat: Seat, index: number): Promise<void> => {
    await pause((intervalMillis * index) / seats.length)
    while (performance.now() < until) {
      const answer = await consume(pool, seat)
      if (answer.status !== 200) refused++
      if (answer.sentAt + answer.millis >= faultAt) answers.push(answer)
      else longestBefore = Math.max(longestBefore, answer.millis)
      await pause(Math.max(0, intervalMillis - answer.millis))
    }
  }
  const strike = pause(1_000).then(fault)
  await Promise.all([strike, ...seats.map(client)])
  const waited = answers.map(({ millis, sentAt }) => sentAt + millis - Math.max(sentAt, faultAt))
  return { waited, longestBefore, refused }
}

const runFault = Effect.fnUntraced(function* (
  signal: "SIGKILL" | "SIGSTOP",
  place: { readonly base: string; readonly pool: Pool; readonly seats: ReadonlyArray<Seat> },
  start: Effect.Effect<{ readonly base: string; readonly pid: number }, unknown, Scope.Scope>
) {
  const { base, pool, seats } = place
  const other = yield* start
  const otherPool = new Pool(other.base, { connections: licenses })
  const refusedBefore = yield* Effect.promise(async () => {
    while ((await connectedPeers(base)) === 0 || (await connectedPeers(other.base)) === 0) await pause(50)
    const answers: Array<Answer> = []
    for (let round = 0; round < sharingRounds; round++)
      for (const each of [pool, otherPool])
        answers.push(...(await Promise.all(seats.map((seat) => consume(each, seat)))))
    return answers.filter(({ status }) => status !== 200).length
  })
  const before = yield* Effect.promise(() => handedOver(base, "answered"))
  const { longestBefore, refused, waited } = yield* Effect.promise(() =>
    answersAfter(pool, seats, () => void process.kill(other.pid, signal))
  )
  const answered = (yield* Effect.promise(() => handedOver(base, "answered"))) - before
  if (signal === "SIGSTOP") process.kill(other.pid, "SIGKILL")
  yield* Effect.promise(() => otherPool.destroy())
  const row = {
    fault: signal,
    handed_over: answered,
    answers: waited.length,
    longest_before_ms: rounded(longestBefore),
    longest_ms: rounded(Math.max(...waited)),
    refused: refusedBefore + refused
  }
  yield* say(JSON.stringify(row))
  return row
}, Effect.scoped)

const program = Effect.gen(function* () {
  const directory = yield* folder
  const postgres = yield* startPostgres(directory)
  const startNode = Effect.flatMap(clusterSettings, (settings) => startOn(postgres.url, directory, settings))
  const { base, token } = yield* startNode
  const management = yield* Effect.promise(() => managementOf(base, token))
  const seats = yield* Effect.promise(() => makeSeats(management, `deaths-${randomUUID().slice(0, 8)}`, licenses))
  const pool = new Pool(base, { connections: licenses })
  const rows: Array<Effect.Success<ReturnType<typeof runFault>>> = []
  for (let fault = 0; fault < Number(flags.faults); fault++)
    rows.push(yield* runFault(fault % 2 === 0 ? "SIGKILL" : "SIGSTOP", { base, pool, seats }, startNode))
  yield* Effect.promise(() => pool.destroy())
  const summary = (["SIGKILL", "SIGSTOP"] as const).map((signal) => {
    const longest = rows.filter(({ fault }) => fault === signal).map(({ longest_ms }) => longest_ms)
    return { fault: signal, times: longest.length, median_ms: median(longest), longest_ms: Math.max(...longest) }
  })
  const text = flags.json ? JSON.stringify({ rows, summary }, null, 2) : [rows, summary].map(table).join("\n\n")
  yield* Effect.sync(() => process.stdout.write(`${text}\n`))
  const fails = rows.some(
    ({ fault, handed_over, longest_ms, refused }) =>
      refused > 0 || handed_over === 0 || longest_ms > answerMillisMax[fault]
  )
  if (fails) yield* Effect.sync(() => (process.exitCode = 1))
})

NodeRuntime.runMain(Effect.scoped(program))
