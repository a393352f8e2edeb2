/**
 * The effect of a sweep on runtime calls: very many licenses expire at the same moment, by an edit of their policy's
 * grace, while validations and consumptions of other licenses run at a steady rate, before and during the sweep. Their
 * time is measured from their due instant, so that waiting is included.
 *
 *   npm run bench:sweeps -- [--licenses 100000] [--rate 300] [--seconds 15] [--json] [--assert]
 *
 * --rate is requests a second, half of them of each kind; --seconds is the length of the measurement before the sweep.
 * --assert exits with 1 if the sweep takes more than 30 s, a p50 or p99 more than doubles, a request fails, or an
 * expiry is not recorded exactly once.
 */
import { parseArgs } from "node:util"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Effect } from "effect"
import { openSession } from "../../src/platform/postgres/driver/Postgres.ts"
import { type Management, makeSeats, managementOf } from "./load/Licenses.ts"
import { insertMany, makePolicy } from "./load/ManyLicenses.ts"
import { table } from "./load/Report.ts"
import { say, startOn } from "./load/Service.ts"
import { folder, startPostgres } from "./load/Sides.ts"
import { comparisonOf, steadily } from "./load/Steady.ts"
import { rounded } from "./load/Turns.ts"
import type { Session } from "./rows/scaleRows.ts"

const { values: flags } = parseArgs({
  options: {
    licenses: { type: "string", default: "100000" },
    rate: { type: "string", default: "300" },
    seconds: { type: "string", default: "15" },
    json: { type: "boolean", default: false },
    assert: { type: "boolean", default: false }
  }
})

const targets = { sweepSecondsMax: 30, ratioMax: 2 }
const licenses = Number(flags.licenses)
const rate = Number(flags.rate)
/** Licenses that are used during the sweep. */
const createdSeats = 500
/** Longer than any acceptable sweep. */
const patienceMillis = 300_000

const graceDays = { before: 20, after: 5 }

const insertLicenses = Effect.fnUntraced(function* (management: Management, session: Session) {
  const policy = yield* Effect.promise(() =>
    makePolicy(management, "expiring", { grace_period_days: graceDays.before })
  )
  // In their grace period, ten days after their expiry.
  yield* insertMany(session, policy, { count: licenses, status: "grace_period", expires: "- interval '10 days'" })
  return policy.id
})

const program = Effect.gen(function* () {
  const directory = yield* folder
  const postgres = yield* startPostgres(directory)
  const session = yield* openSession(postgres.url)
  const count = (sql: string) => Effect.map(session.values(sql), ([row]) => Number(row?.[0]))
  const service = yield* startOn(postgres.url, directory, { LICENSING_SWEEP_SECONDS: "1" })
  const management = yield* Effect.promise(() => managementOf(service.base, service.token))
  yield* say(`making ${licenses} licenses`)
  const policy = yield* insertLicenses(management, session)
  const seats = yield* Effect.promise(() => makeSeats(management, "sweeps", createdSeats))
  const forSeconds = (seconds: number) => {
    const until = performance.now() + seconds * 1000
    return Effect.promise(() => steadily(management, seats, rate, () => performance.now() >= until))
  }
  yield* forSeconds(5)
  yield* say("measuring without a sweep")
  const before = yield* forSeconds(Number(flags.seconds))
  yield* say("measuring during the sweep")
  let isSwept = false
  const loading = steadily(management, seats, rate, () => isSwept)
  const began = performance.now()
  yield* Effect.promise(() => management.call(`/policies/${policy}`, { grace_period_days: graceDays.after }, "PATCH"))
  const remainingQuery = `SELECT count(*)::int4 FROM (
    SELECT 1 FROM license_states WHERE policy_id || ' ' || status = '${policy} grace_period' AND expires_at IS NOT NULL LIMIT 1) AS one`
  while ((yield* count(remainingQuery)) > 0 && performance.now() - began < patienceMillis) {
    yield* Effect.promise(() => new Promise((resolve) => setTimeout(resolve, 250)))
  }
  const sweepSeconds = (performance.now() - began) / 1000
  isSwept = true
  const during = yield* Effect.promise(() => loading)
  const recorded = yield* count(
    "SELECT count(DISTINCT resource_id)::int4 FROM events WHERE event_type = 'license.expired'"
  )
  const events = yield* count("SELECT count(*)::int4 FROM events WHERE event_type = 'license.expired'")

  const rows = comparisonOf(before, during, targets.ratioMax)
  const failed = before.failed + during.failed
  const checks = [
    {
      target: `${licenses} licenses swept in at most ${targets.sweepSecondsMax} s`,
      found: rounded(sweepSeconds, 1),
      holds: sweepSeconds <= targets.sweepSecondsMax
    },
    { target: "failed requests: 0", found: failed, holds: failed === 0 },
    { target: "each expiry recorded", found: recorded, holds: recorded === licenses },
    { target: "and none of them twice", found: events, holds: events === licenses }
  ]
  const text = flags.json ? JSON.stringify({ rows, checks }, null, 2) : [rows, checks].map(table).join("\n\n")
  yield* Effect.sync(() => process.stdout.write(`${text}\n`))
  if (flags.assert && [...rows, ...checks].some(({ holds }) => !holds)) yield* Effect.sync(() => (process.exitCode = 1))
})

NodeRuntime.runMain(Effect.scoped(program))
