/**
 * A clock that runs ahead, so that expiry, grace and sweeps can be tested early. Only the time of day is shifted: sleeps and
 * durations stay real.
 */
import { Clock, Effect, Layer } from "effect"

/** The machine's clock plus `offsetMillis`, which is read each time. */
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
