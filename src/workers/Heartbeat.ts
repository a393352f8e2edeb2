/**
 * What a long pass says after each step of its way: it has got somewhere. A worker gives up a pass that has said nothing for long;
 * outside a worker nobody listens.
 */
import { Context, Effect } from "effect"

export const Heartbeat = Context.Reference<Effect.Effect<void>>("licensing/workers/Heartbeat", {
  defaultValue: () => Effect.void
})

export const sendHeartbeat: Effect.Effect<void> = Effect.flatMap(Heartbeat, (given) => given)
