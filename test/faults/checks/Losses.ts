/** What a failover to a standby that lags may undo. */
import { type Attempt, type Call, isAcknowledged } from "../load/History.ts"

/**
 * All that was acknowledged before `from` is on the standby; what was asked after `until` was answered by it. It gives the numbers
 * after `events` again: an event may have been created before `from` and committed later.
 */
export interface Loss {
  readonly from: number
  until: number
  /** The last event that the standby has received; infinite until that is known. */
  events: number
}

export const isWithin =
  (losses: ReadonlyArray<Loss>) =>
  (sentAt: number, answeredAt: number): boolean =>
    losses.some(({ from, until }) => sentAt < until && answeredAt >= from)

/** Changes that were acknowledged meanwhile are there once or not at all, as if no answer had come. */
export const withoutLost = (calls: ReadonlyArray<Call>, losses: ReadonlyArray<Loss>): ReadonlyArray<Call> => {
  const isLost = isWithin(losses)
  const told = (one: Attempt): Attempt =>
    isAcknowledged(one) && isLost(one.sentAt, one.answeredAt ?? 0)
      ? { requestId: one.requestId, node: one.node, sentAt: one.sentAt, status: 0 }
      : one
  return losses.length === 0 ? calls : calls.map((call) => ({ ...call, attempts: call.attempts.map(told) }))
}
