/** Waits for a state that something else reaches, and that sends no signal. */
import { Effect } from "effect"
import { pauseFor } from "../../../src/platform/postgres/driver/Transactions.ts"

/** Without a pause a test that waits would keep a processor busy, beside other tests. */
const pauseMillis = 10

/** Asks until the answer is as wanted, and returns it. The test's own time limit is the bound. */
export const poll = <A, E, R>(ask: Effect.Effect<A, E, R>, isWanted: (answer: A) => boolean): Effect.Effect<A, E, R> =>
  Effect.flatMap(ask, (answer) =>
    isWanted(answer) ? Effect.succeed(answer) : Effect.andThen(pauseFor(pauseMillis), poll(ask, isWanted))
  )
