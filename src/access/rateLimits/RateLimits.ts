/**
 * Rate limits. Each node counts in memory: a limit needs no look-up and restarts from zero with the node, and n nodes together admit
 * at most n times as much. What must stay true: a failed credential is counted by its client's address alone, without the
 * database, and a valid credential is never refused because of failed ones.
 */
import { Clock, Context, Effect, Layer } from "effect"
import { type Refusal, refuse } from "../../contract/api/Failure.ts"
import { RequestContext } from "../../contract/api/RequestContext.ts"
import { Settings } from "../../platform/config/Config.ts"
import { networkOf } from "./CountedNetwork.ts"
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
     * Counts a runtime request by license and address, and an activation also by license alone. Returns undefined if the request is
     * admitted. A plain function, for callers outside a fiber.
     */
    runtime(call: RuntimeRequest, request: RequestContext, nowMillis: number): Refusal<"RATE_LIMITED"> | undefined
    /** Counts an activation by license, for operations that only sometimes activate. */
    activation(licenseId: string): Limited
    /** Counts a management request of an API key or OIDC subject. */
    management(actorId: string): Limited
    /** Counts a trial that is started without a license key, by address. The limit is that of activations. */
    readonly trial: Limited
    /** Counts a sign-in at the customer's page, and the request for a link, by address. */
    readonly portal: Limited
    /** Counts a request of a session of the customer's page. */
    portalSession(id: string): Limited
    /** Counts a new key that a license's customer asks for, by license: one in a minute, because each is a mail. */
    portalKey(licenseId: string): Limited
    /** Counts a mail with the key of a trial, or a trial that is mailed reminders, by recipient: one in a minute. Anyone can start trials. */
    trialMail(address: string): Limited
    /** Counts a failed credential. Fails if there were too many; otherwise the caller refuses the credential. */
    readonly failure: Limited
  }
>()("licensing/access/rateLimits/RateLimits") {
  static readonly layer = Layer.effect(
    RateLimits,
    Settings.useSync(({ rateActivation, rateFailures, rateManagement, ratePortal, rateRuntime }) => {
      const runtime = makeLimit("runtime", rateRuntime)
      const activation = makeLimit("activation", rateActivation)
      const management = makeLimit("management", rateManagement)
      const trial = makeLimit("trial", rateActivation)
      const portal = makeLimit("portal", ratePortal)
      const portalSession = makeLimit("portal-session", ratePortal * portalRequestsPerSignIn)
      const portalKey = makeLimit("portal-key", 1)
      const trialMail = makeLimit("trial-mail", 1)
      const failures = makeLimit("failures", rateFailures)
      return RateLimits.of({
        runtime: ({ licenseId, isActivation }, request, now) => {
          const refusal = runtime(request, now, `${licenseId} ${networkOf(request.clientAddress)}`)
          return refusal ?? (isActivation ? activation(request, now, licenseId) : undefined)
        },
        activation: (licenseId) => countWith((request, now) => activation(request, now, licenseId)),
        management: (actorId) => countWith((request, now) => management(request, now, actorId)),
        trial: countWith((request, now) => trial(request, now, networkOf(request.clientAddress))),
        portal: countWith((request, now) => portal(request, now, networkOf(request.clientAddress))),
        portalSession: (id) => countWith((request, now) => portalSession(request, now, id)),
        portalKey: (licenseId) => countWith((request, now) => portalKey(request, now, licenseId)),
        trialMail: (address) => countWith((request, now) => trialMail(request, now, address.toLowerCase())),
        failure:
          rateFailures === 0
            ? Effect.void
            : Effect.tap(
                countWith((request, now) => failures(request, now, networkOf(request.clientAddress))),
                logLastFailure
              )
      })
    })
  )
}

/** A person needs a few requests for each screen. */
const portalRequestsPerSignIn = 10

/** Logs the last failure before the limit. Either an attacker is guessing, or a client has an old credential. */
const logLastFailure = Effect.withFiber<void>((fiber) => {
  const { clientAddress, limits } = fiber.getRef(RequestContext)
  return limits?.at(-1)?.remaining === 0
    ? Effect.logWarning("Many credentials from one address failed.", { address: clientAddress ?? "unknown" })
    : Effect.void
})

/** Counts a request for a key and records the limit's state in the request's context. Returns a refusal above the limit. */
type Limit = (request: RequestContext, nowMillis: number, key: string) => Refusal<"RATE_LIMITED"> | undefined

/** The things that each limit counts, as named in its refusal. */
const counted = {
  runtime: "requests",
  activation: "activations",
  management: "requests",
  trial: "trials",
  portal: "sign-ins",
  "portal-session": "requests",
  "portal-key": "new keys of this license",
  "trial-mail": "mails to this address",
  failures: "failed credentials"
}

const makeLimit = (name: keyof typeof counted, perMinute: number): Limit => {
  if (perMinute === 0) return () => undefined
  const refusal = refuse(
    "RATE_LIMITED",
    `More than ${perMinute} ${counted[name]} in a minute are not accepted: try again after the seconds in Retry-After.`,
    name
  )
  const window = makeSlidingWindow(perMinute)
  return (request, nowMillis, key) => {
    const { admitted, remaining, resetSeconds } = window.take(key, nowMillis)
    const state = { name, perMinute, remaining, resetSeconds }
    if (request.limits === undefined) request.limits = [state]
    else request.limits.push(state)
    return admitted ? undefined : refusal
  }
}

const countWith = (
  count: (request: RequestContext, nowMillis: number) => Refusal<"RATE_LIMITED"> | undefined
): Limited =>
  Effect.withFiber((fiber) => {
    const now = fiber.getRef(Clock.Clock).currentTimeMillisUnsafe()
    const refusal = count(fiber.getRef(RequestContext), now)
    return refusal === undefined ? Effect.void : Effect.fail(refusal)
  })
