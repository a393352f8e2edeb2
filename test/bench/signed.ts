/**
 * The cost of a signed refusal compared with a signed response: validations of an active license, of a suspended one, and
 * with the code of another product, in alternating rounds on one service.
 *
 *   npm run bench:signed -- [--seconds 4] [--rounds 3] [--connections 32]
 */
import { parseArgs } from "node:util"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Effect } from "effect"
import { makeSeats, managementOf } from "./Licenses.ts"
import { cpuSeconds } from "./Processes.ts"
import { table } from "./Report.ts"
import { sendAll } from "./SendAll.ts"
import { say, startOn } from "./Service.ts"
import { folder, startPostgres } from "./Sides.ts"
import { quantile, rounded } from "./Turns.ts"

const { values: flags } = parseArgs({
  options: {
    seconds: { type: "string", default: "4" },
    rounds: { type: "string", default: "3" },
    connections: { type: "string", default: "32" }
  }
})
const seconds = Number(flags.seconds)

const program = Effect.gen(function* () {
  const directory = yield* folder
  const database = yield* startPostgres(directory)
  const { base, pid, token } = yield* startOn(database.url, directory)
  const management = yield* Effect.promise(() => managementOf(base, token))
  const [active, suspended] = yield* Effect.promise(() => makeSeats(management, "signed", 2))
  yield* Effect.promise(() => management.call(`/licenses/${suspended!.id}/suspend`, {}))
  const plain = { fingerprint: active!.fingerprint }
  const requests = {
    "active: 200": { seat: active!, body: plain, status: 200 },
    "suspended: 403": { seat: suspended!, body: { fingerprint: suspended!.fingerprint }, status: 403 },
    "other product: 403": { seat: active!, body: { ...plain, product_code: "another" }, status: 403 }
  }
  const totals = Object.keys(requests).map((name) => ({ name, cpu: 0, latencies: [] as Array<number> }))
  for (let round = 0; round <= Number(flags.rounds); round++) {
    for (const [index, { body, seat, status }] of Object.values(requests).entries()) {
      const before = cpuSeconds(pid)
      const { latencies, statuses } = yield* Effect.promise(() =>
        sendAll(base, {
          operation: "validate",
          body: JSON.stringify(body),
          connections: Number(flags.connections),
          makeKey: () => seat.authorization.slice("License ".length),
          seconds
        })
      )
      if (statuses[status] !== latencies.length) return yield* Effect.die(new Error(JSON.stringify(statuses)))
      // The first round warms up.
      if (round === 0) continue
      yield* say(`${totals[index]!.name}, round ${round}: ${Math.round(latencies.length / seconds)}/s`)
      totals[index]!.cpu += cpuSeconds(pid) - before
      totals[index]!.latencies.push(...latencies)
    }
  }
  const rows = totals.map(({ cpu, latencies, name }) => ({
    validate: name,
    per_second: Math.round(latencies.length / seconds / Number(flags.rounds)),
    p50_ms: rounded(quantile(latencies, 0.5)),
    p99_ms: rounded(quantile(latencies, 0.99)),
    cpu_us: rounded((1e6 * cpu) / latencies.length, 1)
  }))
  yield* Effect.sync(() => process.stdout.write(`${table(rows)}\n`))
})

NodeRuntime.runMain(Effect.scoped(program))
