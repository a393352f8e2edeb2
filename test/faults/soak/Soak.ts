/** One node and its database under half of the load that they can take, minute by minute, each with licenses of its own. */
import { Clock, Effect, Fiber } from "effect"
import { pauseFor } from "../../../src/platform/postgres/driver/Transactions.ts"
import { RandomSource } from "../../simulation/requests/RandomSource.ts"
import { poll } from "../../support/rules/Poll.ts"
import { violationsOf } from "../checks/Checks.ts"
import { delivered } from "../checks/Deliveries.ts"
import { query, readRows, readSequences } from "../checks/Rows.ts"
import { type Installation, makeInstallation } from "../installation/Installation.ts"
import { type Catalog, makeCatalog, sell } from "../load/Catalog.ts"
import type { Call } from "../load/History.ts"
import { runLoad } from "../load/Load.ts"
import { type Sample, takeSample } from "./Sample.ts"

const clients = 24
const licenses = 40
/** More than a minute consumes, so that most consumptions count. */
const quota = 1_000_000
const exportsEvery = 5
/** Longer than a minute of the soak, so that no lease lapses before its client is done, and short, so that all others end. */
const terms = { floating_timeout_minutes: 2 }

export interface Minute {
  readonly sample: Sample
  readonly answers: number
  /** Requests without an answer, or with 5xx: each was due to be repeated. On a busy machine they do not mean that anything is lost. */
  readonly failed: ReadonlyArray<string>
  readonly violations: ReadonlyArray<string>
}

interface Options {
  readonly samples: number
  readonly seed: number
  /** Of a sample; shorter in a test. */
  readonly seconds: number
}

/** Runs all minutes, or until one violates something. `told` gets each. */
export const runSoak = Effect.fnUntraced(function* (
  { samples, seconds, seed }: Options,
  told: (minute: Minute, rate: number) => Effect.Effect<void>
) {
  const installation = yield* makeInstallation(1)
  const catalog = yield* makeCatalog(installation, terms)
  const began = yield* Clock.currentTimeMillis
  const run = (number: number, rate: number) =>
    runMinute(installation, catalog, {
      ...{ seed: seed + number, millis: seconds * 1_000, rate, began },
      isExported: number % exportsEvery === 0
    })
  // As fast as they answer, once to compile the hot path, and once to measure.
  yield* run(0, Number.POSITIVE_INFINITY)
  const fastest = yield* run(1, Number.POSITIVE_INFINITY)
  const rate = fastest.sample.requestsPerSecond / 2
  const all: Array<Minute> = []
  for (let number = 2; number < samples + 2; number++) {
    const minute = yield* run(number, rate)
    all.push(minute)
    yield* told(minute, rate)
    if (minute.violations.length > 0) break
  }
  return all
})

const exportLedger = ({ manage }: Installation, began: number) => {
  const filters = { from: new Date(began).toISOString(), to: new Date(began + 864e5).toISOString() }
  return manage("POST", "/reports/exports", { report_kind: "usage-ledger", format: "csv", filters })
}

interface Part {
  readonly seed: number
  readonly millis: number
  /** Requests per second. */
  readonly rate: number
  readonly began: number
  /** Whether the ledger is exported meanwhile. */
  readonly isExported: boolean
}

const runMinute = Effect.fnUntraced(function* (
  installation: Installation,
  catalog: Catalog,
  { began, isExported, millis, rate, seed }: Part
) {
  const { losses, nodes, postgres, receivers, token } = installation
  const round = `s${seed}`
  const from = yield* readSequences(postgres)
  const sold = yield* sell(installation, catalog, round, licenses, quota)
  const calls: Array<Call> = []
  const violations: Array<string> = []
  let isOver = false
  const place = { nodes, token, calls, violations, losses, pace: paced(rate), mayContinue: () => !isOver }
  const load = yield* Effect.forkChild(runLoad(place, { clients, round, sold, catalog }, new RandomSource(seed)))
  if (isExported) yield* exportLedger(installation, began)
  const from0 = yield* Clock.currentTimeMillis
  yield* pauseFor(millis)
  const now = yield* Clock.currentTimeMillis
  const sample = yield* takeSample(nodes[0]!, postgres, {
    minutes: (now - began) / 60_000,
    requestsPerSecond: (1e3 * times(calls).length) / (now - from0),
    p50Millis: quantile(times(calls), 0.5),
    p99Millis: quantile(times(calls), 0.99)
  })
  isOver = true
  yield* Fiber.join(load)
  yield* poll(query(postgres, "SELECT count(*)::text FROM waiting_entries", []), (waiting) => waiting === 0)
  violations.push(...violationsOf(calls, yield* readRows(postgres, round, from)))
  violations.push(...(yield* delivered(installation, from.events)))
  for (const { received } of Object.values(receivers)) received.clear()
  return { sample, answers: times(calls).length, failed: failures(calls), violations } satisfies Minute as Minute
})

/** Requests of all clients begin at equal distances. A client that is late does not catch up. */
const paced = (rate: number): Effect.Effect<void> => {
  let next = 0
  return Effect.gen(function* () {
    const now = yield* Clock.currentTimeMillis
    const at = Math.max(next, now)
    next = at + 1e3 / rate
    yield* pauseFor(at - now)
  })
}

const answered = (calls: ReadonlyArray<Call>) =>
  calls.flatMap(({ attempts }) => attempts.filter(({ status }) => status > 0))

const times = (calls: ReadonlyArray<Call>): ReadonlyArray<number> =>
  answered(calls).map(({ answeredAt = 0, sentAt }) => answeredAt - sentAt)

const failures = (calls: ReadonlyArray<Call>): ReadonlyArray<string> =>
  calls.flatMap(({ attempts, operation }) =>
    attempts
      .filter(({ status }) => status === 0 || status >= 500)
      .map(
        ({ code, requestId, status }) =>
          `${operation} ${requestId}: ${status === 0 ? "no answer" : `${status} ${code}`}`
      )
  )

const quantile = (values: ReadonlyArray<number>, share: number): number =>
  values.toSorted((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * share))] ?? Number.NaN
