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
  /** The session of the request. Other tokens are counted as sign-ins, because they may be guesses. */
  const session = Effect.gen(function* () {
    const { cookies } = yield* HttpServerRequest.HttpServerRequest
    const token = cookies[cookieName] ?? ""
    if (token === "") return undefined
    const found = yield* sessions.find(token)
    if (found === undefined) yield* limits.portal
    return found ?? "ended"
  })
  return { session, set: (token: string) => write(token, sessionMillis), clear: write("", 0) }
})

/** Reads the cookie, and writes it when a session begins or ends. */
export class PortalCookie extends Context.Service<PortalCookie, Effect.Success<typeof make>>()(
  "licensing/licensing/portal/PortalCookie"
) {
  static readonly layer = Layer.effect(PortalCookie, make)
}
