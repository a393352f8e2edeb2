/** What the application should do now, and why: a function of what is known and the time. */
import { type Decision, type Reason, ruleOf } from "../texts/Decisions.ts"
import type {
  Entitlement,
  FeatureEntitlement,
  FloatingCheckout,
  FloatingLease,
  OfflineEntitlement,
  Refusal
} from "../texts/Payloads.ts"
import { instantOf } from "../texts/ResponseText.ts"
import { clockSkewMillisMax } from "./Judge.ts"

export interface Verdict {
  readonly decision: Decision
  readonly reason: Reason
  /** The signed refusal that decides, with what explains it. */
  readonly refusal?: Refusal
  /** Milliseconds since the epoch: until when the application may run if no further response comes. */
  readonly endsAt?: number
}

/** What the application holds: an activated device, or a floating seat. */
export type Holding = "device" | "seat"

/** Everything that is believed, and how the last contact went. */
export interface Known {
  readonly holding?: Holding | undefined
  /** The highest issued_at of all believed responses, in milliseconds. */
  readonly highestIssuedAt: number
  readonly entitlement?: Entitlement | undefined
  readonly offline?: OfflineEntitlement | undefined
  readonly checkout?: FloatingCheckout | undefined
  readonly lease?: FloatingLease | undefined
  /** What the holder of a seat got when it used a feature. */
  readonly used?: Entitlement | undefined
  /** A believed refusal in force. */
  readonly refusal?: Refusal | undefined
  /** Why the last contact gave no believed response. */
  readonly missed?: Reason | undefined
  /** Set if the last believed response was more than five minutes old by this machine's clock when it arrived. */
  readonly isClockAhead: boolean
  readonly isStoreFailed: boolean
}

export const verdictOf = (known: Known, now: number, toleranceMillis: number): Verdict => {
  const verdict = decide(known, now, toleranceMillis)
  return verdict.decision === "run" && known.isStoreFailed
    ? { ...verdict, decision: "warn", reason: "STORE_FAILED" }
    : verdict
}

const decide = (known: Known, now: number, toleranceMillis: number): Verdict => {
  const { highestIssuedAt, holding, missed, refusal } = known
  if (now < highestIssuedAt - clockSkewMillisMax) return { decision: "ask", reason: "CLOCK_WRONG" }
  if (refusal !== undefined) return { decision: ruleOf(refusal.code).decision, reason: refusal.code, refusal }
  if (holding === undefined) return { decision: "ask", reason: missed ?? "NOT_ACTIVATED" }
  return holding === "seat" ? seatVerdict(known, now) : deviceVerdict(known, now, toleranceMillis)
}

const seatVerdict = (known: Known, now: number): Verdict => {
  const seat = known.lease ?? known.checkout
  const endsAt = instantOf(seat?.lease_expires_at)
  if (seat === undefined || !(now < endsAt)) return ended(known, "SEAT_ENDED")
  const term = endsAt - instantOf(seat.issued_at)
  // A heartbeat is due after a third of the term: after two thirds at least one was missed. A borrowed seat needs none.
  return living(known, seat, now, endsAt, Math.max(endsAt - term / 3, finite(instantOf(seat.borrowed_until))))
}

const deviceVerdict = (known: Known, now: number, toleranceMillis: number): Verdict => {
  const grant = newestGrant(known)
  if (grant === undefined) return ended(known, "NOT_REACHED")
  const accessEnd = accessEndOf(grant)
  if (now >= accessEnd) return known.isClockAhead ? clockWrong : { decision: "ask", reason: "LICENSE_EXPIRED" }
  const checkAt = instantOf(known.entitlement?.next_check_at)
  const offlineEnd = instantOf(known.offline?.offline_expires_at)
  const endsAt = Math.min(Math.max(finite(checkAt) + toleranceMillis, finite(offlineEnd)), accessEnd, instantMax)
  // Both comparisons are false for an instant that is missing.
  if (!(now < endsAt)) return ended(known, "NOT_REACHED")
  const isOffline = !(now < checkAt) && now < offlineEnd
  const verdict = living(known, grant, now, endsAt, Math.max(finite(checkAt), finite(offlineEnd)))
  return isOffline && verdict.reason === "LICENSED" ? { ...verdict, reason: "OFFLINE" } : verdict
}

/** Runs until `warnAt`, then warns. */
const living = (
  { missed, isClockAhead }: Known,
  { expires_at, status }: Pick<Entitlement, "status" | "expires_at">,
  now: number,
  endsAt: number,
  warnAt: number
): Verdict => {
  if (status === "grace_period" || now >= instantOf(expires_at)) return warn("GRACE_PERIOD", endsAt)
  if (isClockAhead) return warn("CLOCK_WRONG", endsAt)
  if (missed !== undefined && missed !== "NOT_REACHED") return warn(missed, endsAt)
  return now < warnAt ? { decision: "run", reason: "LICENSED", endsAt } : warn("NOT_REACHED", endsAt)
}

const warn = (reason: Reason, endsAt: number): Verdict => ({ decision: "warn", reason, endsAt })

const clockWrong: Verdict = { decision: "ask", reason: "CLOCK_WRONG" }

/** No believed response allows the use: stops, or asks if the user can change that. */
const ended = ({ isClockAhead, missed }: Known, reason: Reason): Verdict => {
  if (isClockAhead) return clockWrong
  return missed === undefined || missed === "NOT_REACHED"
    ? { decision: "stop", reason }
    : { decision: "ask", reason: missed }
}

const newestGrant = ({ entitlement, offline }: Known): Entitlement | OfflineEntitlement | undefined =>
  offline !== undefined && !(instantOf(entitlement?.issued_at) >= instantOf(offline.issued_at)) ? offline : entitlement

/** The end of the year 9999: no payload has a later instant, and an unlimited tolerance ends here. */
const instantMax = 253_402_300_799_999

const accessEndOf = ({ access_ends_at, expires_at }: Entitlement | OfflineEntitlement): number => {
  const end = access_ends_at ?? expires_at
  return end === undefined ? Number.POSITIVE_INFINITY : instantOf(end)
}

const finite = (instant: number): number => (Number.isNaN(instant) ? Number.NEGATIVE_INFINITY : instant)

/** The newest believed response that grants something. */
export const grantOf = (
  known: Known
): Entitlement | OfflineEntitlement | FloatingCheckout | FloatingLease | undefined => {
  if (known.holding !== "seat") return newestGrant(known)
  const { checkout, lease, used } = known
  return [used, lease, checkout].reduce((newest, one) =>
    newest === undefined || instantOf(one?.issued_at) > instantOf(newest.issued_at) ? one : newest
  )
}

/** A feature as the newest believed response says. */
export interface Feature extends FeatureEntitlement {
  /**
   * True if a new period of the quota has begun since the response: consumed, remaining and overage, which were of the period
   * before, are absent until the next response.
   */
  readonly isUsageUnknown?: true
}

/** The features of the newest believed response, without those that have ended. */
export const featuresOf = (known: Known, now: number): ReadonlyArray<Feature> =>
  (grantOf(known)?.features ?? known.checkout?.features ?? [])
    .filter(({ expires_at }) => !(now >= instantOf(expires_at)))
    .map((feature) => (now >= instantOf(feature.resets_at) ? inNewPeriod(feature) : feature))

const inNewPeriod = ({ consumed: _c, overage: _o, remaining: _r, ...kept }: FeatureEntitlement): Feature => ({
  ...kept,
  isUsageUnknown: true
})
