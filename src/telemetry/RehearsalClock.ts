/**
 * A clock that runs ahead, so that expiry, grace and sweeps can be seen before their time. Only what it reads as the time of day
 * is moved: sleeping and measuring stay real.
 */
import { Clock, Effect, Layer } from "effect"

/** The machine's clock, ahead by what `offsetMillis` gives at each reading. */
export const layer = (offsetMillis: () => number) =>
  Layer.sync(Clock.Clock, (): Clock.Clock => {
    const machine = Clock.Clock.defaultValue()
    const millis = () => machine.currentTimeMillisUnsafe() + offsetMillis()
    const nanos = () => machine.currentTimeNanosUnsafe() + BigInt(offsetMillis()) * 1_000_000n
    return {
      currentTimeMillisUnsafe: millis,
      currentTimeMillis: Effect.sync(millis),
      currentTimeNanosUnsafe: nanos,
      currentTimeNanos: Effect.sync(nanos),
      monotonicTimeNanosUnsafe: () => machine.monotonicTimeNanosUnsafe(),
      monotonicTimeNanos: machine.monotonicTimeNanos,
      sleep: (duration) => machine.sleep(duration)
    }
  })
