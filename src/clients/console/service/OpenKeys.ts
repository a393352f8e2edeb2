/**
 * What a form sends again because it does not know how it ended is done once: each of its requests keeps its Idempotency-Key until
 * the service says how it ended.
 */
import { Context, Effect } from "effect"
import { newKey } from "../../client/Attempts.ts"
import { Call, type CallFacts } from "../../client/Call.ts"
import { Client } from "../../client/Client.ts"
import { isFinal } from "./Failures.ts"

/** Keys of one form by their request. */
export type Keys = Map<string, string>

export const OpenKeys = Context.Reference<Keys | undefined>("licensing/console/OpenKeys", {
  defaultValue: () => undefined
})

let sending: Keys | undefined

/** Does something whose requests have the keys of a form. They are begun at once; how they end may be awaited later. */
export const sendingWith = <A>(keys: Keys, act: () => A): A => {
  sending = keys
  const begun = act()
  sending = undefined
  return begun
}

/** The keys of the form that sends now. */
export const keysOfForm = (): Keys | undefined => sending

const nameOf = (request: string, { ifMatch = "" }: CallFacts) => `${request} ${ifMatch}`

/** Whether the form has sent a request and does not know how it ended. */
export const hasOpenKey = Effect.fnUntraced(function* (request: string) {
  return (yield* OpenKeys)?.has(nameOf(request, yield* Call)) === true
})

/** Sends a request with the key that the form has for it. */
export const withOpenKey = Effect.fnUntraced(function* <A, E, R>(request: string, sent: Effect.Effect<A, E, R>) {
  const keys = yield* OpenKeys
  const call = yield* Call
  if (keys === undefined || call.idempotencyKey !== undefined) return yield* sent
  const name = nameOf(request, call)
  const key = keys.get(name) ?? (yield* newKey)
  keys.set(name, key)
  const forget = Effect.sync(() => keys.delete(name))
  return yield* Client.withIdempotencyKey(key)(sent).pipe(
    Effect.tap(() => forget),
    Effect.tapError((error) => (isFinal(error) ? forget : Effect.void))
  )
})
