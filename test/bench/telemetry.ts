/**
 * The cost of telemetry: validations and consumptions at a service without telemetry, at one that samples 1 % of the
 * traces, and at one that samples all, in alternating rounds. Traces, metrics and logs go to a receiver on this machine
 * that drops them; the receiver's CPU is part of the cost.
 *
 *   npm run bench:telemetry -- [--rounds 5] [--seconds 5] [--connections 64] [--licenses 1000]
 *                              [--operations validate,consume] [--json] [--assert]
 *
 * A ratio is the median of the rounds' ratios to the round without telemetry beside it. --assert exits with 1 if a
 * target is missed: at least 0.95 with 1 %, at least 0.65 with all.
 */
import { spawn } from "node:child_process"
import { once } from "node:events"
import { parseArgs } from "node:util"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Effect } from "effect"
import { root } from "../../infra/scripts/service.ts"
import { openSession } from "../../src/platform/postgres/driver/Postgres.ts"
import { makeSeats, managementOf } from "./load/Licenses.ts"
import { type Measured, type Operation, openLoad, operations } from "./load/Load.ts"
import { cpuSeconds } from "./load/Processes.ts"
import { median, table } from "./load/Report.ts"
import { say, startOn } from "./load/Service.ts"
import { folder, startPostgres } from "./load/Sides.ts"
import { rounded } from "./load/Turns.ts"
import type { Accepted, AcceptedReply } from "./peers/acceptTelemetry.ts"

const { values: flags } = parseArgs({
  options: {
    rounds: { type: "string", default: "5" },
    seconds: { type: "string", default: "5" },
    connections: { type: "string", default: "64" },
    licenses: { type: "string", default: "1000" },
    operations: { type: "string", default: "validate,consume" },
    json: { type: "boolean", default: false },
    assert: { type: "boolean", default: false }
  }
})

const measuredOperations = operations.filter((operation) => flags.operations.split(",").includes(operation))

/** The share of sampled traces, and the least ratio of requests to those without telemetry. */
const sides = [
  { telemetry: "off", sampled: undefined, least: 1 },
  { telemetry: "1 %", sampled: "0.01", least: 0.95 },
  { telemetry: "100 %", sampled: "1", least: 0.65 }
] as const

const warmupSeconds = 3

const startReceiver = Effect.acquireRelease(
  Effect.promise(async () => {
    const child = spawn(process.execPath, ["test/bench/peers/acceptTelemetry.ts"], {
      cwd: root,
      stdio: ["ignore", "ignore", "inherit", "ipc"]
    })
    const reply = async <A extends AcceptedReply>() => (await once(child, "message"))[0] as A
    const { port } = await reply<{ readonly port: number }>()
    const accepted = () => {
      child.send("count")
      return reply<Accepted>()
    }
    return { pid: child.pid ?? 0, port, accepted, child }
  }),
  ({ child }) => Effect.sync(() => child.kill("SIGKILL"))
)

interface Turn extends Measured {
  readonly cpu: number
  readonly receiverCpu: number
  readonly megabytes: number
}

interface Load {
  readonly operation: Operation
  readonly side: (typeof sides)[number]
  readonly pid: number
  readonly run: (seconds: number) => Promise<Measured>
  readonly close: () => Promise<unknown>
  readonly turns: Array<Turn>
}

const startAll = Effect.gen(function* () {
  const directory = yield* folder
  const postgres = yield* startPostgres(directory)
  const receiver = yield* startReceiver
  const loads: Array<Load> = []
  const services: Array<Effect.Success<ReturnType<typeof startOn>> & Pick<Load, "side">> = []
  for (const side of sides) {
    const settings =
      side.sampled === undefined
        ? {}
        : {
            OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${receiver.port}`,
            OTEL_TRACES_SAMPLER: "parentbased_traceidratio",
            OTEL_TRACES_SAMPLER_ARG: side.sampled
          }
    services.push({ side, ...(yield* startOn(postgres.url, directory, settings)) })
  }
  const management = yield* Effect.promise(() => managementOf(services[0]!.base, services[0]!.token))
  for (const [index, { base, pid, side }] of services.entries()) {
    yield* say(`making ${flags.licenses} licenses for telemetry ${side.telemetry}`)
    const seats = yield* Effect.promise(() => makeSeats(management, `telemetry-${index}`, Number(flags.licenses)))
    for (const operation of measuredOperations) {
      const options = { operation, connections: Number(flags.connections), verify: management.verify }
      loads.push({ operation, side, pid, turns: [], ...openLoad({ places: [{ base, seats }], ...options }) })
    }
  }
  const session = yield* openSession(postgres.url)
  yield* session.values("CHECKPOINT")
  return { loads, receiver }
})

const rowOf = (load: Load, off: Load) => {
  const { operation, side, turns } = load
  const sum = (pick: (turn: Turn) => number) => turns.reduce((total, turn) => total + pick(turn), 0)
  const answered = sum((turn) => turn.answered)
  const ratio = rounded(
    median(turns.map((turn, round) => turn.requestsPerSecond / off.turns[round]!.requestsPerSecond)),
    3
  )
  const failed = sum((turn) => turn.failed)
  return {
    operation,
    telemetry: side.telemetry,
    per_second: Math.round(median(turns.map((turn) => turn.requestsPerSecond))),
    ratio,
    target: side.least,
    p99_ms: rounded(median(turns.map((turn) => turn.p99))),
    cpu_us: rounded((1e6 * sum(({ cpu }) => cpu)) / answered, 1),
    receiver_cpu_us: rounded((1e6 * sum(({ receiverCpu }) => receiverCpu)) / answered, 1),
    exported_bytes_each: Math.round((1e6 * sum(({ megabytes }) => megabytes)) / answered),
    failed,
    holds: ratio >= side.least && failed === 0
  }
}

const program = Effect.gen(function* () {
  const { loads, receiver } = yield* startAll
  for (const { run } of loads) yield* Effect.promise(() => run(warmupSeconds))
  for (let round = 1; round <= Number(flags.rounds); round++) {
    for (const operation of measuredOperations) {
      const own = loads.filter((load) => load.operation === operation)
      for (const load of round % 2 === 1 ? own : own.toReversed()) {
        yield* Effect.promise(receiver.accepted)
        const before = [cpuSeconds(load.pid), cpuSeconds(receiver.pid)] as const
        const measured = yield* Effect.promise(() => load.run(Number(flags.seconds)))
        const cpu = cpuSeconds(load.pid) - before[0]
        const receiverCpu = cpuSeconds(receiver.pid) - before[1]
        const { megabytes } = yield* Effect.promise(receiver.accepted)
        load.turns.push({ ...measured, cpu, receiverCpu, megabytes })
        yield* say(`${operation}, telemetry ${load.side.telemetry}, round ${round}: ${measured.requestsPerSecond}/s`)
        if (measured.failure !== undefined) yield* say(`  failed: ${measured.failure.slice(0, 300)}`)
      }
    }
  }
  for (const { close } of loads) yield* Effect.promise(close)
  const offOf = ({ operation }: Load) => loads.find((load) => load.operation === operation)!
  const rows = measuredOperations.flatMap((operation) =>
    loads.filter((load) => load.operation === operation).map((load) => rowOf(load, offOf(load)))
  )
  yield* Effect.sync(() => process.stdout.write(`${flags.json ? JSON.stringify(rows, null, 2) : table(rows)}\n`))
  if (flags.assert && rows.some(({ holds }) => !holds)) yield* Effect.sync(() => (process.exitCode = 1))
})

NodeRuntime.runMain(Effect.scoped(program))
