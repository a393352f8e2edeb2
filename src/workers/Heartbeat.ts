/**
 * The heartbeat of a long pass, sent after each step of progress. A worker aborts a pass that sends none for a long time. Outside
 * a worker it has no effect.
 */
import { Context, Effect } from "effect"

export const Heartbeat = Context.Reference<Effect.Effect<void>>("licensing/workers/Heartbeat", {
  defaultValue: () => Effect.void
})

export const sendHeartbeat: Effect.Effect<void> = Effect.flatMap(Heartbeat, (send) => send)
