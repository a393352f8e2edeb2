/**
 * A service under floods from one address: the latency of consumptions at a fixed rate from another address, compared with the
 * same rate without a flood; the latency of /healthz; the service's memory; and the time from SIGTERM to its end while the flood
 * continues. The flood has the lowest priority for the processor, because a real one runs on other machines.
 *
 * Then the main thread's time for bodies that are costly to read, one after the other, for each 256 KiB or part of it.
 *
 *   npm run bench:flood -- [--seconds 8] [--rate 100] [--floods documents,pipelined,…] [--bodies false|batch|…] [--json] [--assert]
 *
 * --bodies measures only the bodies whose names contain this text.
 *
 * --assert exits with 1 if a body takes more than 5 ms of the main thread for each 256 KiB, the p99 of consumptions is more than three times the p99 without the flood, a probe took more than a
 * second, the service used more than 500 MB, or it ended more than ten seconds after SIGTERM.
 */
import { spawn } from "node:child_process"
import { randomBytes } from "node:crypto"
import { parseArgs } from "node:util"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Effect } from "effect"
import { Pool } from "undici"
import { consumedFeature, makeSeats, managementOf, type Seat } from "./load/Licenses.ts"
import { peakMegabytes } from "./load/Processes.ts"
import { table } from "./load/Report.ts"
import { say, startOn } from "./load/Service.ts"
import { folder, startPostgres } from "./load/Sides.ts"
import { quantile, rounded } from "./load/Turns.ts"
import { bodyCosts } from "./peers/floodBodies.ts"

const { values: flags } = parseArgs({
  options: {
    seconds: { type: "string", default: "8" },
    rate: { type: "string", default: "100" },
    floods: {
      type: "string",
      default: "documents,unread,pipelined,pipelined probes,probes,credentials,bodies,connections"
    },
    bodies: { type: "string", default: "" },
    json: { type: "boolean", default: false },
    assert: { type: "boolean", default: false }
  }
})

const ratioMax = 3
const probeMillisMax = 1_000
const megabytesMax = 500
const stopMillisMax = 10_000

/** All services use one database, which takes only the first token. */
const token = `bench_${randomBytes(32).toString("base64url")}`

const wait = (millis: number) => new Promise((resolve) => setTimeout(resolve, millis))

let events = 0

/** Consumes at a fixed rate, and probes ten times a second; a response that is late delays no other request. */
const measure = async (base: string, seats: ReadonlyArray<Seat>, seconds: number) => {
  const pool = new Pool(base, { connections: 64 })
  const consumptions: Array<number> = []
  const probes: Array<number> = []
  let failed = 0
  const timed = async (into: Array<number>, send: () => Promise<{ statusCode: number; body: { dump(): unknown } }>) => {
    const began = performance.now()
    try {
      const { statusCode, body } = await send()
      await body.dump()
      if (statusCode !== 200) failed++
    } catch {
      failed++
    }
    into.push(performance.now() - began)
  }
  const consume = ({ authorization, fingerprint }: Seat) =>
    pool.request({
      method: "POST",
      path: "/api/v1/license/consume",
      headers: { authorization, "content-type": "application/json" },
      body: JSON.stringify({ fingerprint, feature_code: consumedFeature, event_id: `flood-${++events}` })
    })
  const pending: Array<Promise<void>> = []
  const began = performance.now()
  const total = Number(flags.rate) * seconds
  for (let index = 0; index < total; index++) {
    await wait(Math.max(1, began + (index * 1_000) / Number(flags.rate) - performance.now()))
    pending.push(timed(consumptions, () => consume(seats[index % seats.length]!)))
    if (index % Math.ceil(Number(flags.rate) / 10) === 0)
      pending.push(timed(probes, () => pool.request({ method: "GET", path: "/healthz" })))
  }
  await Promise.all(pending)
  await pool.destroy()
  return { p99: quantile(consumptions, 0.99), probe: Math.max(...probes), failed }
}

/** The longest delay of the service's event loop since the last call: the work of one turn, and what the machine's other work adds. */
const loopDelayMillis = async (base: string): Promise<number> => {
  const text = await fetch(`${base}/metrics`).then((response) => response.text())
  return 1_000 * Number(/^licensing_event_loop_delay_seconds\{stat="max"\} (\S+)$/m.exec(text)?.[1])
}

const flooded = Effect.fnUntraced(function* (flood: string, url: Parameters<typeof startOn>[0], directory: string) {
  yield* say(flood)
  const { base, pid, stop } = yield* startOn(url, directory, { LICENSING_BOOTSTRAP_TOKEN: token })
  return yield* Effect.promise(async () => {
    const seconds = Number(flags.seconds)
    const seats = await makeSeats(await managementOf(base, token), flood.replaceAll(" ", "-"), 50)
    await measure(base, seats, 3)
    // Another thread makes the documents at the first request.
    await fetch(`${base}/docs/`).then((response) => response.arrayBuffer())
    const quiet = await measure(base, seats, seconds)
    const flooder = spawn(process.execPath, ["test/bench/peers/floods.ts", flood, new URL(base).port], {
      stdio: "inherit"
    })
    const exited = new Promise((resolve) => flooder.once("exit", resolve))
    await wait(1_000)
    await loopDelayMillis(base)
    const { failed, p99, probe } = await measure(base, seats, seconds)
    const loop = await loopDelayMillis(base)
    const megabytes = peakMegabytes(pid)
    const told = performance.now()
    await stop()
    const stopMillis = performance.now() - told
    if (flooder.exitCode !== null) throw new Error(`The flood "${flood}" ended by itself.`)
    flooder.kill()
    await exited
    const ratio = p99 / quiet.p99
    return {
      flood,
      quiet_p99_ms: rounded(quiet.p99),
      p99_ms: rounded(p99),
      ratio: rounded(ratio),
      healthz_max_ms: rounded(probe),
      loop_max_ms: rounded(loop),
      failed,
      megabytes,
      stop_ms: Math.round(stopMillis),
      holds:
        ratio <= ratioMax &&
        probe <= probeMillisMax &&
        failed === 0 &&
        megabytes <= megabytesMax &&
        stopMillis <= stopMillisMax
    }
  })
})

const read = Effect.fnUntraced(function* (url: Parameters<typeof startOn>[0], directory: string) {
  yield* say("bodies that are costly to read")
  const { base, pid } = yield* startOn(url, directory, { LICENSING_BOOTSTRAP_TOKEN: token })
  return yield* Effect.promise(async () => {
    const management = await managementOf(base, token)
    const [seat] = await makeSeats(management, "costly", 1)
    return bodyCosts({ base, pid, token, seat: seat!, management, part: flags.bodies })
  })
})

const program = Effect.gen(function* () {
  const directory = yield* folder
  const { url } = yield* startPostgres(directory)
  const floods = flags.floods.split(",").filter((flood) => flood !== "")
  const rows = yield* Effect.forEach(floods, (flood) => Effect.scoped(flooded(flood, url, directory)))
  const bodies = flags.bodies !== "false" ? yield* Effect.scoped(read(url, directory)) : []
  const printed = flags.json
    ? JSON.stringify({ floods: rows, bodies }, null, 2)
    : [rows, bodies]
        .filter(({ length }) => length > 0)
        .map((some) => table(some))
        .join("\n\n")
  yield* Effect.sync(() => process.stdout.write(`${printed}\n`))
  if (flags.assert && [...rows, ...bodies].some(({ holds }) => !holds)) yield* Effect.sync(() => (process.exitCode = 1))
})

NodeRuntime.runMain(Effect.scoped(program))
