/**
 * The heartbeat of a long pass, sent after each step of progress. A worker aborts a pass that sends none for a long time. Outside
 * a worker it has no effect.
 */
import { Context, Effect } from "effect"
import { pauseFor } from "../postgres/driver/Transactions.ts"

export const Heartbeat = Context.Reference<Effect.Effect<void>>("licensing/platform/workers/Heartbeat", {
  defaultValue: () => Effect.void
})

export const sendHeartbeat: Effect.Effect<void> = Effect.flatMap(Heartbeat, (send) => send)

/** Runs a statement that may take hours and takes no lock that others need; sends a heartbeat every minute meanwhile. */
export const patiently = <A, E, R>(statement: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.raceFirst(statement, Effect.forever(Effect.andThen(pauseFor(60_000), sendHeartbeat)))
