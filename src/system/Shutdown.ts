/**
 * Whether the service is stopping. From the first signal on the readiness probe says so and every answer closes its connection,
 * while requests are still served; only after a moment's notice does the listener close.
 */
import { Context, Effect, Layer } from "effect"

// Long enough for a load balancer or a person who polls to see it, short enough for a person who waits.
const notice = "1 second"

export class Shutdown extends Context.Service<
  Shutdown,
  {
    /** Read for every answer, so it is a plain property. */
    underway: boolean
    /** Says that the service is stopping, and gives those who look time to see it. */
    readonly announce: Effect.Effect<void>
  }
>()("licensing/system/Shutdown") {
  static readonly layer = Layer.sync(Shutdown, () => make(Effect.sleep(notice)))

  /** Without the notice: tests stop hundreds of services that nobody balances to. */
  static readonly layerTest = Layer.sync(Shutdown, () => make(Effect.void))
}

const make = (wait: Effect.Effect<void>): Shutdown["Service"] => {
  const shutdown: Shutdown["Service"] = Shutdown.of({
    underway: false,
    announce: Effect.suspend(() => {
      shutdown.underway = true
      return wait
    })
  })
  return shutdown
}
