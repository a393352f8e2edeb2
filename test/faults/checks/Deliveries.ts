/** Compares what the honest receiver got with the events. */
import { Effect } from "effect"
import { poll } from "../../support/rules/Poll.ts"
import type { Installation } from "../installation/Installation.ts"
import { readDeliverable } from "./Rows.ts"

/** A killed node's delivery leases end after 30 seconds. */
const deliveryMillisMax = 120_000

/** Each event reaches the honest receiver, from the first one after its endpoint's own, or after a number; others only if a failover lost them. */
export const delivered = Effect.fnUntraced(function* ({ losses, postgres, receivers }: Installation, after?: number) {
  const { received, wrong } = receivers.honest
  // 0 if nothing was received: then all events are missing.
  const first =
    after !== undefined
      ? after + 1
      : received.keys().reduce((one, other) => (one === 0 ? other : Math.min(one, other)), 0)
  // Before the events are read: those of a sweep may be committed and delivered while missing ones are awaited.
  const earlier = [...received].flatMap(([sequence, told]) =>
    [...told].map(([type, createdAt]) => ({ sequence, type, createdAt }))
  )
  const stored = yield* readDeliverable(postgres, first)
  const missing = () => stored.filter(({ sequence, type }) => received.get(sequence)?.has(type) !== true)
  yield* poll(Effect.sync(missing), ({ length }) => length === 0).pipe(Effect.timeoutOption(deliveryMillisMax))
  const types = new Map(stored.map(({ sequence, type }) => [sequence, type]))
  const unknown = earlier
    .filter(({ createdAt, sequence, type }) => {
      const isLost = losses.some(({ events, until }) => sequence > events && createdAt < until)
      return sequence >= first && types.get(sequence) !== type && !isLost
    })
    .map(({ sequence, type }) => `event ${sequence} was delivered as ${type}, and is ${types.get(sequence)}`)
  return [
    ...wrong,
    ...missing().map(({ sequence, type }) => `event ${sequence}, ${type}, never reached the honest receiver`),
    ...unknown
  ]
})
