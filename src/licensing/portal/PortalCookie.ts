/** The cookie of a session of the customer's page. No script can read it, and no other site makes the browser send it. */
import { Context, Effect, Layer } from "effect"
import { type Cookies, HttpEffect, HttpServerRequest, HttpServerResponse } from "effect/http"
import { RateLimits } from "../../access/rateLimits/RateLimits.ts"
import { Settings } from "../../platform/config/Config.ts"
import { PortalSessions, sessionMillis } from "./PortalSessions.ts"

const cookieName = "licensing_portal"

const make = Effect.gen(function* () {
  const { baseUrl } = yield* Settings
  const sessions = yield* PortalSessions
  const limits = yield* RateLimits
  const address = baseUrl === undefined ? undefined : new URL(baseUrl)
  const options: Cookies.Cookie["options"] = {
    httpOnly: true,
    sameSite: "strict",
    // Browsers take loopback addresses as secure.
    secure: address?.protocol !== "http:",
    path: `${address?.pathname.replace(/\/$/, "") ?? ""}/portal/api`
  }
  const write = (value: string, maxAge: number) =>
    HttpEffect.appendPreResponseHandler((_, response) =>
      Effect.succeed(HttpServerResponse.setCookieUnsafe(response, cookieName, value, { ...options, maxAge }))
    )
  const sentToken = Effect.map(HttpServerRequest.HttpServerRequest, ({ cookies }) => cookies[cookieName] ?? "")
  /** The session of the request. Other tokens are counted as sign-ins, because they may be guesses. */
  const session = Effect.gen(function* () {
    const token = yield* sentToken
    if (token === "") return undefined
    const found = yield* sessions.find(token)
    if (found === undefined) yield* limits.portal
    return found ?? "ended"
  })
  /** A session whose cookie is replaced must not stay valid. */
  const end = Effect.flatMap(sentToken, (token) => (token === "" ? Effect.void : sessions.end(token)))
  return {
    session,
    set: (token: string) => Effect.andThen(end, write(token, sessionMillis)),
    clear: Effect.andThen(end, write("", 0))
  }
})

/** Reads the cookie. Writes it when a session begins or ends, and ends the session that it had. */
export class PortalCookie extends Context.Service<PortalCookie, Effect.Success<typeof make>>()(
  "licensing/licensing/portal/PortalCookie"
) {
  static readonly layer = Layer.effect(PortalCookie, make)
}
