/** Nodes of the service as far as license actors and sweeps go: each has its own caches and journal, all share one database. */
import { Clock, Context, Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { type Actor, CurrentActor } from "../../../src/access/CurrentActor.ts"
import { EventLog } from "../../../src/ledger/events/EventLog.ts"
import { Journal } from "../../../src/licensing/engine/Journal.ts"
import { LicenseActors } from "../../../src/licensing/engine/LicenseActors.ts"
import { LicenseLookups } from "../../../src/licensing/lookups/LicenseLookups.ts"
import { LicenseStore } from "../../../src/licensing/lookups/LicenseStore.ts"
import { ExpirySweep } from "../../../src/licensing/sweeps/ExpirySweep.ts"
import { FeatureExpirySweep } from "../../../src/licensing/sweeps/FeatureExpirySweep.ts"
import { HeartbeatSweep } from "../../../src/licensing/sweeps/HeartbeatSweep.ts"
import { LeaseSweep } from "../../../src/licensing/sweeps/LeaseSweep.ts"
import { PeriodSweep } from "../../../src/licensing/sweeps/PeriodSweep.ts"
import { noon } from "../rules/Licenses.ts"
import { mailOff } from "./MailOff.ts"

const layerNode = LicenseActors.layer.pipe(
  Layer.provideMerge(Journal.layer),
  Layer.provide([LicenseStore.layer, LicenseLookups.layer, EventLog.layer])
)

/** The actors of a new node on the test's database. The license itself requests consumptions, as in the runtime. */
export const makeNode = Effect.map(Layer.build(Layer.fresh(layerNode)), (node) => {
  const actors = Context.get(node, LicenseActors)
  const ask: typeof actors.ask = (license, rule, ...rest) =>
    Effect.updateService(
      actors.ask(license, rule, ...rest),
      CurrentActor,
      (actor): Actor => (rule.name === "consume" ? { actor_type: "license", actor_id: license } : actor)
    )
  return { ...actors, ask, journal: Context.get(node, Journal) }
})

const layerSweeps = Layer.mergeAll(
  ExpirySweep.layer,
  FeatureExpirySweep.layer,
  PeriodSweep.layer,
  LeaseSweep.layer,
  HeartbeatSweep.layer
).pipe(Layer.provide([EventLog.layer, mailOff]))

/** The sweep passes of a new node on the test's database. */
export const makeSweeps = Effect.map(Layer.build(Layer.fresh(layerSweeps)), (node) => ({
  expiry: Context.get(node, ExpirySweep).pass,
  feature: Context.get(node, FeatureExpirySweep).pass,
  period: Context.get(node, PeriodSweep).pass,
  lease: Context.get(node, LeaseSweep).pass,
  heartbeat: Context.get(node, HeartbeatSweep).pass
}))

/** Two nodes, each with actors and sweep passes. */
export const twoNodes = Effect.gen(function* () {
  return { nodes: [yield* makeNode, yield* makeNode], sweeps: [yield* makeSweeps, yield* makeSweeps] } as const
})

interface LeapingClock extends TestClock.TestClock {
  readonly leap: (millis: number) => void
}

const layerLeaping = Layer.effect(
  Clock.Clock,
  TestClock.testClockWith((clock) =>
    Effect.sync((): LeapingClock => {
      let aheadMillis = 0
      const millis = () => clock.currentTimeMillisUnsafe() + aheadMillis
      const nanos = () => clock.currentTimeNanosUnsafe() + BigInt(aheadMillis) * 1_000_000n
      return {
        ...clock,
        currentTimeMillisUnsafe: millis,
        currentTimeMillis: Effect.sync(millis),
        currentTimeNanosUnsafe: nanos,
        currentTimeNanos: Effect.sync(nanos),
        leap: (by) => {
          aheadMillis += by
        }
      }
    })
  )
)

/** Moves the time of day of `fromNoon` ahead, and wakes nothing: a node wakes each ten seconds, a million times in these tests. */
export const leap = (millis: number) =>
  TestClock.testClockWith((clock) => Effect.sync(() => (clock as LeapingClock).leap(millis)))

/** Runs a test that begins at noon, on a separate clock: setting the shared one would age its connections by decades. */
export const fromNoon = <A, E, R>(test: Effect.Effect<A, E, R>) =>
  TestClock.setTime(noon).pipe(Effect.andThen(test), Effect.provide(layerLeaping), Effect.provide(TestClock.layer()))
