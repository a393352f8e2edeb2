/**
 * What a long pass says after each step of its way: it has got somewhere. A worker gives up a pass that has said nothing for long;
 * outside a worker nobody listens.
 */
import { Context, Effect } from "effect"

export const SignOfLife = Context.Reference<Effect.Effect<void>>("licensing/workers/SignOfLife", {
  defaultValue: () => Effect.void
})

export const giveSignOfLife: Effect.Effect<void> = Effect.flatMap(SignOfLife, (given) => given)
