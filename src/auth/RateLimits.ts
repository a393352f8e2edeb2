/**
 * How often a caller may ask. Every node counts for itself, in memory: a limit costs no look-up, forgets everything with a
 * restart, and over n nodes admits at most n times as much. What must stay true: a failed credential is counted by the address
 * it came from and nothing else, without the database, and a valid one is never turned away for the failures of others.
 */
import { Clock, Context, Effect, Layer } from "effect"
import { type Refusal, refuse } from "../api/Failure.ts"
import { type LimitStanding, RequestContext } from "../api/RequestContext.ts"
import { Settings } from "../Config.ts"
import { makeSlidingWindow, windowSeconds } from "./SlidingWindow.ts"

type Limited = Effect.Effect<void, Refusal<"RATE_LIMITED">>

export class RateLimits extends Context.Service<
  RateLimits,
  {
    /** A runtime request of a license: counted by license and address, an activation by the license alone as well. */
    runtime(licenseId: string, isActivation: boolean): Limited
    /** A management request of an API key or OIDC subject. */
    management(actorId: string): Limited
    /** A credential that was refused: succeeds where the refusal may be told, and fails where there were too many. */
    readonly failure: Limited
  }
>()("licensing/auth/RateLimits") {
  static readonly layer = Layer.effect(
    RateLimits,
    Settings.useSync(({ rateActivation, rateFailures, rateManagement, rateRuntime }) => {
      const runtime = makeLimit("runtime", rateRuntime)
      const activation = makeLimit("activation", rateActivation)
      const management = makeLimit("management", rateManagement)
      const failures = makeLimit("failures", rateFailures)
      return RateLimits.of({
        runtime: (licenseId, isActivation) =>
          limited(({ clientAddress }) => [
            [runtime, `${licenseId} ${networkOf(clientAddress)}`],
            [isActivation ? activation : off, licenseId]
          ]),
        management: (actorId) => limited(() => [[management, actorId]]),
        failure: limited(({ clientAddress }) => [[failures, networkOf(clientAddress)]])
      })
    })
  )
}

interface Limit {
  /** Counts a request, and says where it stands; undefined where the limit is off. */
  take(key: string, nowMillis: number): Counted | undefined
  readonly refusal: Refusal<"RATE_LIMITED">
}

interface Counted extends LimitStanding {
  readonly admitted: boolean
}

const makeLimit = (name: string, perMinute: number): Limit => {
  const refusal = refuse(
    "RATE_LIMITED",
    `More than ${perMinute} in a minute are not taken: try again after the seconds in Retry-After.`,
    name
  )
  if (perMinute === 0) return { take: () => undefined, refusal }
  const window = makeSlidingWindow(perMinute)
  const policy = `"${name}";q=${perMinute};w=${windowSeconds}`
  const take = (key: string, nowMillis: number): Counted => {
    const { admitted, remaining, resetSeconds } = window.take(key, nowMillis)
    return { admitted, policy, standing: `"${name}";r=${remaining};t=${resetSeconds}`, resetSeconds }
  }
  return { take, refusal }
}

const off = makeLimit("off", 0)

/** Counts a request by each limit in turn, up to the one that has no room. The answer's headers say where it stands. */
const limited = (limitsOf: (request: RequestContext) => ReadonlyArray<readonly [Limit, string]>): Limited =>
  Effect.withFiber((fiber) => {
    const request = fiber.getRef(RequestContext)
    const now = fiber.getRef(Clock.Clock).currentTimeMillisUnsafe()
    const limits = []
    for (const [limit, key] of limitsOf(request)) {
      const counted = limit.take(key, now)
      if (counted === undefined) continue
      limits.push(counted)
      request.limits = limits
      if (!counted.admitted) return Effect.fail(limit.refusal)
    }
    return Effect.void
  })

/**
 * Who shares a count: an IPv4 address, and of IPv6 the first 64 bits, since a host has all the rest to choose from. Requests
 * without an address share one.
 */
const networkOf = (address = ""): string => {
  const [head = "", tail] = address.split("::")
  const groups = head.split(":")
  if (groups.length >= 4) return groups.slice(0, 4).join(":")
  if (tail === undefined) return address
  const after = tail.split(":")
  return [...groups, ...Array<string>(8 - groups.length - after.length).fill("0"), ...after].slice(0, 4).join(":")
}
