/**
 * How often a caller may ask. Every node counts for itself, in memory: a limit costs no look-up, forgets everything with a
 * restart, and over n nodes admits at most n times as much. What must stay true: a failed credential is counted by the address
 * it came from and nothing else, without the database, and a valid one is never turned away for the failures of others.
 */
import { Clock, Context, Effect, Layer } from "effect"
import { type Refusal, refuse } from "../../api/Failure.ts"
import { RequestContext } from "../../api/RequestContext.ts"
import { Settings } from "../../config/Config.ts"
import { makeSlidingWindow } from "./SlidingWindow.ts"

interface RuntimeRequest {
  readonly licenseId: string
  readonly isActivation: boolean
}

type Limited = Effect.Effect<void, Refusal<"RATE_LIMITED">>

export class RateLimits extends Context.Service<
  RateLimits,
  {
    /**
     * Counts a runtime request of a license: by license and address, an activation by the license alone as well. A plain function,
     * for whoever is no fiber; undefined where there was room.
     */
    runtime(call: RuntimeRequest, request: RequestContext, nowMillis: number): Refusal<"RATE_LIMITED"> | undefined
    /** A management request of an API key or OIDC subject. */
    management(actorId: string): Limited
    /** A credential that was refused: succeeds where the refusal may be told, and fails where there were too many. */
    readonly failure: Limited
  }
>()("licensing/auth/rateLimits/RateLimits") {
  static readonly layer = Layer.effect(
    RateLimits,
    Settings.useSync(({ rateActivation, rateFailures, rateManagement, rateRuntime }) => {
      const runtime = makeLimit("runtime", rateRuntime)
      const activation = makeLimit("activation", rateActivation)
      const management = makeLimit("management", rateManagement)
      const failures = makeLimit("failures", rateFailures)
      return RateLimits.of({
        runtime: ({ licenseId, isActivation }, request, now) => {
          const refusal = runtime(request, now, `${licenseId} ${networkOf(request.clientAddress)}`)
          return refusal ?? (isActivation ? activation(request, now, licenseId) : undefined)
        },
        management: (actorId) => counting((request, now) => management(request, now, actorId)),
        failure:
          rateFailures === 0
            ? Effect.void
            : Effect.tap(
                counting((request, now) => failures(request, now, networkOf(request.clientAddress))),
                tellOfGuessing
              )
      })
    })
  )
}

/** The last failure that is told why is worth a record: from here on somebody guesses, or has forgotten a client somewhere. */
const tellOfGuessing = Effect.withFiber<void>((fiber) => {
  const { clientAddress, limits } = fiber.getRef(RequestContext)
  return limits?.at(-1)?.remaining === 0
    ? Effect.logWarning("An address sends many credentials that fail.", { address: clientAddress ?? "unknown" })
    : Effect.void
})

/** Counts a request for a key and notes where it stands; a refusal where there is no room. */
type Limit = (request: RequestContext, nowMillis: number, key: string) => Refusal<"RATE_LIMITED"> | undefined

const makeLimit = (name: string, perMinute: number): Limit => {
  if (perMinute === 0) return () => undefined
  const refusal = refuse(
    "RATE_LIMITED",
    `More than ${perMinute} in a minute are not taken: try again after the seconds in Retry-After.`,
    name
  )
  const window = makeSlidingWindow(perMinute)
  return (request, nowMillis, key) => {
    const { admitted, remaining, resetSeconds } = window.take(key, nowMillis)
    const standing = { name, perMinute, remaining, resetSeconds }
    if (request.limits === undefined) request.limits = [standing]
    else request.limits.push(standing)
    return admitted ? undefined : refusal
  }
}

const counting = (
  count: (request: RequestContext, nowMillis: number) => Refusal<"RATE_LIMITED"> | undefined
): Limited =>
  Effect.withFiber((fiber) => {
    const now = fiber.getRef(Clock.Clock).currentTimeMillisUnsafe()
    const refusal = count(fiber.getRef(RequestContext), now)
    return refusal === undefined ? Effect.void : Effect.fail(refusal)
  })

/**
 * Who shares a count: an IPv4 address, and of IPv6 the first 64 bits, since a host has all the rest to choose from. Requests
 * without an address share one.
 */
const networkOf = (address = ""): string => (address.includes(":") ? prefixOf(address) : address)

const prefixOf = (address: string): string => {
  const [head = "", tail] = address.split("::")
  const groups = head.split(":")
  if (groups.length >= 4) return groups.slice(0, 4).join(":")
  if (tail === undefined) return address
  const after = tail.split(":")
  return [...groups, ...Array<string>(8 - groups.length - after.length).fill("0"), ...after].slice(0, 4).join(":")
}
