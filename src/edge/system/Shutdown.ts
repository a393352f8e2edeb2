/**
 * Announces that the service is stopping. After the first signal the readiness probe fails and every response closes its
 * connection, while requests are still served. The listener closes after a notice period.
 */
import { Context, Effect, Layer } from "effect"

// Long enough for a load balancer that polls the probe, short enough for an operator.
const noticePeriod = "1 second"

export class Shutdown extends Context.Service<
  Shutdown,
  {
    /** A plain property, because every response reads it. */
    underway: boolean
    readonly announce: Effect.Effect<void>
    /** Whether the listener keeps idle connections for the drain time. */
    readonly keepsIdle: boolean
  }
>()("licensing/edge/system/Shutdown") {
  static readonly layer = Layer.sync(Shutdown, () => make(Effect.sleep(noticePeriod), true))

  /** Tests stop hundreds of services without a load balancer, so this waits for nothing. */
  static readonly layerTest = Layer.sync(Shutdown, () => make(Effect.void, false))
}

const make = (wait: Effect.Effect<void>, keepsIdle: boolean): Shutdown["Service"] => {
  const shutdown: Shutdown["Service"] = Shutdown.of({
    underway: false,
    keepsIdle,
    announce: Effect.suspend(() => {
      shutdown.underway = true
      return wait
    })
  })
  return shutdown
}
