/**
 * The cost of a signed refusal compared with a signed response: validations of an active license, of a suspended one, and
 * with the code of another product, in alternating rounds on one service.
 *
 *   npm run bench:signed -- [--seconds 4] [--rounds 3] [--connections 32] [--licenses 100]
 */
import { parseArgs } from "node:util"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Effect } from "effect"
import { each, makeSeats, managementOf } from "./load/Licenses.ts"
import { cpuSeconds } from "./load/Processes.ts"
import { table } from "./load/Report.ts"
import { sendAll } from "./load/SendAll.ts"
import { say, startOn } from "./load/Service.ts"
import { folder, startPostgres } from "./load/Sides.ts"
import { quantile, rounded } from "./load/Turns.ts"

const { values: flags } = parseArgs({
  options: {
    seconds: { type: "string", default: "4" },
    rounds: { type: "string", default: "3" },
    connections: { type: "string", default: "32" },
    licenses: { type: "string", default: "100" }
  }
})
const seconds = Number(flags.seconds)

const program = Effect.gen(function* () {
  const directory = yield* folder
  const database = yield* startPostgres(directory)
  const { base, pid, token } = yield* startOn(database.url, directory)
  const management = yield* Effect.promise(() => managementOf(base, token))
  const active = yield* Effect.promise(() => makeSeats(management, "active", Number(flags.licenses)))
  const suspended = yield* Effect.promise(() => makeSeats(management, "suspended", Number(flags.licenses)))
  yield* Effect.promise(() =>
    each(suspended.length, (index) => management.call(`/licenses/${suspended[index]!.id}/suspend`, {}))
  )
  const requests = {
    "active: 200": { seats: active, more: {}, status: 200 },
    "suspended: 403": { seats: suspended, more: {}, status: 403 },
    "other product: 403": { seats: active, more: { product_code: "another" }, status: 403 }
  }
  const totals = Object.keys(requests).map((name) => ({ name, cpu: 0, latencies: [] as Array<number> }))
  for (let round = 0; round <= Number(flags.rounds); round++) {
    for (const [index, { more, seats, status }] of Object.values(requests).entries()) {
      const bodies = seats.map(({ fingerprint }) => JSON.stringify({ fingerprint, ...more }))
      let sent = 0
      const makeRequest = () => {
        const index = sent++ % seats.length
        return { authorization: seats[index]!.authorization, body: bodies[index]! }
      }
      const before = cpuSeconds(pid)
      const { latencies, statuses } = yield* Effect.promise(() =>
        sendAll(base, {
          operation: "validate",
          connections: Number(flags.connections),
          makeRequest,
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
