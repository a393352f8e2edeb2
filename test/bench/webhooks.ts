/**
 * Measures webhook deliveries end to end: events created over the API, stored, sent to endpoints on loopback, counted
 * on arrival. Service, database, receivers and load share the machine.
 *
 *   npm run bench:webhooks -- [--part deliveries,runtime] [--endpoints 10] [--seconds 10] [--rate 3300] [--calm 500]
 *                             [--backlog 100000] [--steady 1000] [--rounds 2] [--assert]
 *
 * --rate and --calm are deliveries a second; --assert exits with 1 if a target is missed. The part "runtime" measures
 * the runtime API's loss while a backlog is delivered: at --steady requests a second, and at the maximum rate.
 */
import { spawn } from "node:child_process"
import { randomBytes } from "node:crypto"
import { once } from "node:events"
import { join } from "node:path"
import { parseArgs } from "node:util"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Effect, Redacted } from "effect"
import { root, startService } from "../../infra/scripts/service.ts"
import { openSession } from "../../src/platform/postgres/driver/Postgres.ts"
import { consumedFeature, type Management, makeSeats, managementOf, type Seat } from "./load/Licenses.ts"
import { cpuSeconds, cpuSecondsOfFamily, peakMegabytes } from "./load/Processes.ts"
import { table } from "./load/Report.ts"
import { folder, startDriver, startPostgres } from "./load/Sides.ts"
import type { ReceiverOrder, ReceiverReply, Reception } from "./peers/receive.ts"
import { runtimeBeside } from "./peers/runtimeBeside.ts"

const { values: flags } = parseArgs({
  options: {
    endpoints: { type: "string", default: "10" },
    seconds: { type: "string", default: "10" },
    rate: { type: "string", default: "3300" },
    calm: { type: "string", default: "500" },
    backlog: { type: "string", default: "100000" },
    part: { type: "string", default: "deliveries,runtime" },
    steady: { type: "string", default: "1000" },
    rounds: { type: "string", default: "2" },
    assert: { type: "boolean", default: false }
  }
})

const targets = { deliveriesPerSecond: 3_000, delayMillisP99: 100, slowdown: 1.2 }
const endpoints = Number(flags.endpoints)
const createdSeats = 200

type Order = (order: ReceiverOrder) => Promise<ReceiverReply>

const startReceivers = Effect.acquireRelease(
  Effect.sync(() => {
    const child = spawn(process.execPath, ["test/bench/peers/receive.ts"], {
      cwd: root,
      stdio: ["ignore", "ignore", "inherit", "ipc"]
    })
    const order: Order = async (order) => {
      child.send(order)
      const [reply] = (await once(child, "message")) as [ReceiverReply]
      return reply
    }
    return { child, order }
  }),
  ({ child }) => Effect.sync(() => child.kill("SIGKILL"))
)

const received = async (order: Order, deliveries: number, secondsMax: number) =>
  (await order({ do: "await", deliveries, secondsMax })) as Reception

let made = 0

/** Creates the given number of events a second: consumptions, each awaiting the previous response. */
const makeEvents = async ({ management, seats }: Load, perSecond: number, seconds: number): Promise<number> => {
  const began = performance.now()
  const count = Math.round(perSecond * seconds)
  const inFlight: Array<Promise<unknown>> = []
  for (let index = 0; index < count; index++) {
    const wait = began + (index * 1_000) / perSecond - performance.now()
    if (wait > 1) await new Promise((resolve) => setTimeout(resolve, wait))
    const seat = seats[index % seats.length]!
    const { fingerprint } = seat
    const usage = { feature_code: consumedFeature, event_id: `bench-${++made}`, amount: 1 }
    inFlight.push(management.runtime("/license/consume", seat, { fingerprint, ...usage }))
  }
  await Promise.all(inFlight)
  return count
}

interface Load {
  readonly management: Management
  readonly seats: ReadonlyArray<Seat>
}

const underLoad = async (load: Load, order: Order, rate: number, seconds: number) => {
  await order({ do: "begin" })
  const events = await makeEvents(load, rate / endpoints, seconds)
  return received(order, events * endpoints, 60)
}

/** Events that were committed while no worker delivered, pending for every endpoint. */
const insertBacklog = Effect.fnUntraced(function* (url: Redacted.Redacted<string>, events: number) {
  const session = yield* openSession(url)
  yield* session.values(`
    WITH counter AS (UPDATE event_sequence SET last = last + ${events} RETURNING last - ${events} AS base),
    event AS (
      INSERT INTO event_log (sequence, event_type, actor_type, actor_id, resource_type, resource_id, metadata, created_at)
      SELECT base + n, 'license.activated', 'license', 'lic_bench', 'license', 'lic_bench',
        '{"device_id": "dev_bench", "binding_kind": "hardware", "request_id": "req_bench"}', now()
      FROM counter, generate_series(1, ${events}) AS n RETURNING sequence, created_at
    )
    INSERT INTO webhook_deliveries (endpoint_id, sequence, due_at, created_at)
    SELECT id, sequence, event.created_at, event.created_at FROM event, webhook_endpoints`)
}, Effect.scoped)

/** Connections of the runtime load, each with one request at a time. */
const runtimeConnections = 32

const onlyLicenses = async ({ call }: Management) => {
  const endpointRows = await call<ReadonlyArray<{ readonly id: string }>>("/webhooks?limit=200")
  for (const { id } of endpointRows) await call(`/webhooks/${id}`, { event_types: ["license.*"] }, "PATCH")
  return endpointRows
}

const say = (line: string) => Effect.sync(() => process.stderr.write(`${line}\n`))

const program = Effect.gen(function* () {
  const directory = yield* folder
  const postgres = yield* startPostgres(directory)
  const token = `bench_${randomBytes(32).toString("base64url")}`
  const log = join(directory, "service.log")
  const service = yield* Effect.acquireRelease(
    Effect.promise(() =>
      startService({
        log,
        settings: {
          LICENSING_DATABASE_URL: Redacted.value(postgres.url),
          LICENSING_MASTER_KEY: randomBytes(32).toString("base64"),
          LICENSING_BOOTSTRAP_TOKEN: token,
          LICENSING_LOG_LEVEL: "warning",
          LICENSING_WEBHOOK_ALLOW_LOCAL: "true",
          LICENSING_RATE_MANAGEMENT: "0",
          LICENSING_RATE_RUNTIME: "0",
          LICENSING_RATE_ACTIVATION: "0"
        }
      })
    ),
    (running) => Effect.promise(() => running.stop())
  )
  const { child, order } = yield* startReceivers
  const management = yield* Effect.promise(() => managementOf(service.base, token))
  const seats = yield* Effect.promise(() => makeSeats(management, "webhooks", createdSeats))
  const listening = yield* Effect.promise(() => order({ do: "listen", endpoints }))
  for (const port of listening.did === "listening" ? listening.ports : []) {
    const endpoint = { name: "bench", url: `http://127.0.0.1:${port}/`, event_types: ["usage.*", "license.*"] }
    yield* Effect.promise(() => management.call("/webhooks", endpoint))
  }
  const used = () => ({
    service: cpuSeconds(service.pid),
    postgres: cpuSecondsOfFamily(postgres.pid),
    receivers: cpuSeconds(child.pid ?? 0)
  })
  const rows: Array<object> = []
  const measure = Effect.fnUntraced(function* (what: string, run: () => Promise<Reception>) {
    yield* say(what)
    const before = used()
    const { did: _, ...reception } = yield* Effect.promise(run)
    const after = used()
    const cpu = (name: keyof typeof before) => Math.round((after[name] - before[name]) * 100) / 100
    rows.push({
      measured: what,
      per_second: Math.round(reception.deliveries / reception.seconds),
      ...reception,
      cpu_service: cpu("service"),
      cpu_postgres: cpu("postgres"),
      cpu_receivers: cpu("receivers")
    })
    return reception
  })

  const runtime: Array<object> = []
  const deliveries = Effect.gen(function* () {
    const seconds = Number(flags.seconds)
    yield* measure("warm-up", () => underLoad({ management, seats }, order, Number(flags.calm), 2))
    const calm = yield* measure(`${flags.calm}/s`, () =>
      underLoad({ management, seats }, order, Number(flags.calm), seconds)
    )
    const loaded = yield* measure(`${flags.rate}/s`, () =>
      underLoad({ management, seats }, order, Number(flags.rate), seconds)
    )
    const backlog = Number(flags.backlog)
    yield* Effect.promise(() => order({ do: "begin" }))
    yield* insertBacklog(postgres.url, Math.ceil(backlog / endpoints))
    const drained = yield* measure(`backlog of ${backlog}`, () => received(order, backlog, 300))

    const sustained = loaded.deliveries / loaded.seconds
    checks.push(
      {
        target: `at least ${targets.deliveriesPerSecond} deliveries/s end to end`,
        found: Math.round(sustained),
        holds: sustained >= targets.deliveriesPerSecond
      },
      {
        target: `p99 at most ${targets.delayMillisP99} ms at ${flags.calm}/s`,
        found: calm.p99,
        holds: calm.p99 <= targets.delayMillisP99
      },
      { target: `a backlog of ${backlog} drains`, found: drained.deliveries, holds: drained.deliveries >= backlog },
      {
        target: "nothing is sent twice",
        found: loaded.requests - loaded.deliveries + drained.requests - drained.deliveries,
        holds: loaded.requests === loaded.deliveries && drained.requests === drained.deliveries
      }
    )
  })
  const checks: Array<{ readonly target: string; readonly found: number; readonly holds: boolean }> = []
  if (flags.part.includes("deliveries")) yield* deliveries
  if (flags.part.includes("runtime")) {
    const driver = yield* startDriver([service.base, token, String(runtimeConnections)])
    // The load's own events must not be delivered: only the backlog is.
    const { length } = yield* Effect.promise(() => onlyLicenses(management))
    yield* say(`${length} endpoints take events of licenses only`)
    const drain = Effect.gen(function* () {
      yield* Effect.promise(() => order({ do: "begin" }))
      yield* insertBacklog(postgres.url, Math.ceil(Number(flags.backlog) / endpoints))
    })
    const { found: endpointRows, slowest } = yield* runtimeBeside({
      driver: driver.order,
      drain,
      arrived: async (deliveries, secondsMax) => (await received(order, deliveries, secondsMax)).deliveries,
      used,
      perSecond: Number(flags.steady),
      rounds: Number(flags.rounds),
      backlog: Number(flags.backlog)
    })
    runtime.push(...endpointRows)
    checks.push({
      target: `the runtime API is at most ${targets.slowdown} times slower beside a backlog`,
      found: slowest,
      holds: slowest <= targets.slowdown
    })
  }
  const text = [rows, runtime, [{ service_peak_megabytes: peakMegabytes(service.pid) }], checks]
    .filter((part) => part.length > 0)
    .map(table)
    .join("\n\n")
  yield* Effect.sync(() => process.stdout.write(`${text}\n`))
  if (flags.assert && checks.some(({ holds }) => !holds)) {
    yield* Effect.sync(() => {
      process.exitCode = 1
    })
  }
})

NodeRuntime.runMain(Effect.scoped(program))
