/** The server half of the sessions of the customer's page: the limits and origins of their requests. */
import { Effect, Layer } from "effect"
import { HttpServerRequest } from "effect/http"
import { RateLimits } from "../../access/rateLimits/RateLimits.ts"
import { refuse } from "../../contract/api/Failure.ts"
import { PortalAccess, PortalSession, SameOrigin, SignInLimit } from "./PortalAccess.ts"
import { PortalCookie } from "./PortalCookie.ts"

const noSession = refuse("TOKEN_MISSING", "Sign in: the request has no session.")
const endedSession = refuse("TOKEN_INVALID", "The session has ended: sign in again.")
const otherOrigin = refuse(
  "BAD_REQUEST",
  "The request comes from another site: open the customer's page itself.",
  "Origin"
)

const access = Layer.effect(
  PortalAccess,
  Effect.gen(function* () {
    const cookie = yield* PortalCookie
    const limits = yield* RateLimits
    return PortalAccess.of((handler) =>
      Effect.gen(function* () {
        const session = yield* cookie.session
        if (session === undefined) return yield* noSession
        if (session === "ended") return yield* endedSession
        yield* limits.portalSession(session.id)
        return yield* Effect.provideService(handler, PortalSession, session)
      })
    )
  })
)

const signInLimit = Layer.effect(
  SignInLimit,
  RateLimits.useSync(({ portal }) => SignInLimit.of((handler) => Effect.andThen(portal, handler)))
)

/** Browsers say where a request comes from. A client that is no browser has no cookie of a person. */
const sameOrigin = Layer.succeed(
  SameOrigin,
  SameOrigin.of((handler, { endpoint }) => (endpoint.method === "GET" ? handler : Effect.andThen(checkOrigin, handler)))
)

const checkOrigin = Effect.flatMap(HttpServerRequest.HttpServerRequest, ({ headers }) =>
  isOwn(headers) ? Effect.void : Effect.fail(otherOrigin)
)

/** Old browsers send the origin only. A balancer may change the port of Host. */
const isOwn = ({ host, origin, "sec-fetch-site": site }: { readonly [name: string]: string | undefined }): boolean =>
  site === undefined
    ? origin === undefined || URL.parse(origin)?.hostname === URL.parse(`http://${host}`)?.hostname
    : site === "same-origin"

export const portalAccess = Layer.mergeAll(access, signInLimit, sameOrigin)
