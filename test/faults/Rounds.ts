/** A round: clients work, one fault begins and ends, the service must answer again, and the checks compare. */
import { Clock, Effect, Fiber, Option } from "effect"
import { RandomSource } from "../simulation/requests/RandomSource.ts"
import { poll } from "../support/rules/Poll.ts"
import { violationsOf } from "./checks/Checks.ts"
import { withoutLost } from "./checks/Losses.ts"
import { readRows, readSequences } from "./checks/Rows.ts"
import type { Installation } from "./installation/Installation.ts"
import { type Fault, strike } from "./kinds/Fault.ts"
import { type Catalog, sell } from "./load/Catalog.ts"
import { type Attempt, type Call, isAcknowledged, longestGap } from "./load/History.ts"
import { runLoad } from "./load/Load.ts"

export interface RoundResult {
  readonly fault: string
  readonly round: string
  readonly seed: number
  readonly answers: number
  readonly acknowledged: number
  readonly longestGapMillis: number
  readonly violations: ReadonlyArray<string>
  readonly calls: ReadonlyArray<Call>
}

const clients = 12
const licenses = 5
/** Acknowledged answers before the fault, and after it. */
const [acknowledgedBefore, acknowledgedAfter] = [80, 120]
/** After this time the fault is over, each node that was killed has started, and all answer, also on a busy machine. */
const recoveryMillisMax = 120_000
/** Clients that wait for a late answer are interrupted. */
const stopMillisMax = 3_000

export const runRound = Effect.fnUntraced(function* (
  installation: Installation,
  catalog: Catalog,
  fault: Fault,
  seed: number
) {
  const { losses, nodes, token } = installation
  const random = new RandomSource(seed)
  const round = `s${seed}`
  const from = yield* readSequences(installation.postgres)
  const sold = yield* sell(installation, catalog, round, licenses)
  const calls: Array<Call> = []
  const violations: Array<string> = []
  let isOver = false
  const place = { nodes, token, calls, violations, losses, mayContinue: () => !isOver }
  const load = yield* Effect.forkChild(runLoad(place, { clients, round, sold, catalog }, random))
  yield* untilAcknowledged(calls, acknowledgedBefore)
  const struck = strike(fault, random, { installation, catalog, licenses: sold, round })
  const inTime = yield* struck.pipe(
    Effect.tap((wrong) => {
      violations.push(...wrong)
      return recovered(installation, calls)
    }),
    Effect.timeoutOption(recoveryMillisMax)
  )
  if (Option.isNone(inTime)) violations.push(`the service did not recover within ${recoveryMillisMax} ms`)
  yield* untilAcknowledged(calls, acknowledgedCount(calls) + acknowledgedAfter)
  isOver = true
  yield* Fiber.join(load).pipe(Effect.timeoutOption(stopMillisMax))
  yield* Fiber.interrupt(load)
  violations.push(...violationsOf(withoutLost(calls, losses), yield* readRows(installation.postgres, round, from)))
  const answered = calls.flatMap(({ attempts }) => attempts.filter(({ status }) => status > 0))
  return {
    fault: fault.name,
    round,
    seed,
    answers: answered.length,
    acknowledged: answered.filter(isAcknowledged).length,
    longestGapMillis: longestGap(calls),
    violations,
    calls
  } satisfies RoundResult as RoundResult
})

const acknowledgedCount = (calls: ReadonlyArray<Call>) =>
  calls.reduce((sum, { attempts }) => sum + attempts.filter(isAcknowledged).length, 0)

const untilAcknowledged = (calls: ReadonlyArray<Call>, count: number) =>
  poll(
    Effect.sync(() => acknowledgedCount(calls)),
    (acknowledged) => acknowledged >= count
  ).pipe(Effect.timeoutOption(recoveryMillisMax))

/** After a fault every node is ready, and acknowledges a change that was sent after the fault. */
const recovered = Effect.fnUntraced(function* ({ nodes }: Installation, calls: ReadonlyArray<Call>) {
  const since = yield* Clock.currentTimeMillis
  for (const node of nodes) {
    yield* node.untilReady
    const isAnswered = (one: Attempt) => one.node === node.name && one.sentAt > since && isAcknowledged(one)
    yield* poll(
      Effect.sync(() => calls.some(({ attempts }) => attempts.some(isAnswered))),
      (found) => found
    )
  }
})
