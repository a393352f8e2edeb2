/**
 * Signing in at an OIDC provider: authorization code with PKCE (RFC 7636), state and nonce, as a client without a secret. The
 * library that checks the responses is loaded when somebody signs in there.
 */
import { Clock, Data, Effect, Redacted } from "effect"
import { HttpClient, HttpClientResponse } from "effect/http"
import { type SignInProvider, SignInWays } from "../../../access/oidc/SignInProvider.ts"
import { type Begun, type Returned, remember, returnPath, service } from "./Address.ts"
import type { Tokens } from "./Session.ts"

type Library = typeof import("oauth4webapi")

/** Why the sign-in failed, in a sentence. */
export class NotSignedIn extends Data.TaggedError("NotSignedIn")<{ readonly message: string }> {}

const library = Effect.tryPromise({ try: () => import("oauth4webapi"), catch: () => unreachable })
const timeout = "15 seconds"
const redirectUri = `${location.origin}${returnPath}`

const unreachable = new NotSignedIn({
  message: "The sign-in page cannot be reached: try again in a moment, or sign in with an API token."
})
const notBegun = new NotSignedIn({
  message: "This sign-in was not begun in this tab, or is finished already: sign in again."
})

export interface Reachable {
  readonly issuer: string
  readonly provider: SignInProvider
}

/** How people sign in here. */
export const ways = HttpClient.get(`${service}/console/sign-in.json`).pipe(
  Effect.flatMap(HttpClientResponse.filterStatusOk),
  Effect.flatMap(HttpClientResponse.schemaBodyJson(SignInWays)),
  Effect.timeout(timeout),
  Effect.catch(() => Effect.succeed<typeof SignInWays.Type>({}))
)

/** What must be known to call the provider; fails if it cannot be reached. */
export const reachable = Effect.flatMap(ways, ({ issuer, provider }) =>
  issuer === undefined || provider === undefined ? Effect.fail(unreachable) : Effect.succeed({ issuer, provider })
)

/** Goes to the provider's page. After the return to `redirectUri` the console opens the address that is open now. */
export const begin = Effect.fn("Provider.begin")(function* (
  { provider }: Reachable,
  keep: boolean,
  go: (url: URL, begun: Begun) => void
) {
  if (!isSecureContext) {
    return yield* new NotSignedIn({ message: "Signing in needs https: open the console at its https address." })
  }
  const { calculatePKCECodeChallenge, generateRandomCodeVerifier, generateRandomNonce, generateRandomState } =
    yield* library
  const verifier = generateRandomCodeVerifier()
  const begun = { state: generateRandomState(), nonce: generateRandomNonce(), verifier, keep }
  const challenge = yield* Effect.promise(() => calculatePKCECodeChallenge(verifier))
  const url = new URL(provider.authorization_endpoint)
  for (const [name, value] of [
    ...provider.parameters,
    ["response_type", "code"],
    ["client_id", provider.client_id],
    ["redirect_uri", redirectUri],
    ["scope", provider.scope],
    ["state", begun.state],
    ["nonce", begun.nonce],
    ["code_challenge", challenge],
    ["code_challenge_method", "S256"]
  ] as const)
    url.searchParams.append(name, value)
  go(url, { ...begun, path: `${location.pathname}${location.search}${location.hash}` })
})

/** Leaves the page. */
export const leaveFor = (url: URL, begun: Begun): void => {
  remember(begun)
  location.assign(url)
}

/** The tokens for the code with which the provider sent the reader back. */
export const finish = Effect.fn("Provider.finish")(function* (at: Reachable, { begun, parameters }: Returned) {
  if (begun === undefined || parameters.get("state") !== begun.state) return yield* notBegun
  const { nonce, state, verifier } = begun
  return yield* tokensFrom(at, (oauth, as, client, options) => {
    const response = oauth.validateAuthResponse(as, client, parameters, state)
    return oauth
      .authorizationCodeGrantRequest(as, client, oauth.None(), response, redirectUri, verifier, options)
      .then((found) =>
        oauth.processAuthorizationCodeResponse(as, client, found, { expectedNonce: nonce, requireIdToken: true })
      )
  })
})

/** New tokens for a refresh token. */
export const renewed = Effect.fn("Provider.renewed")(function* (refresh: Redacted.Redacted<string>) {
  const tokens = yield* tokensFrom(yield* reachable, (oauth, as, client, options) =>
    oauth
      .refreshTokenGrantRequest(as, client, oauth.None(), Redacted.value(refresh), options)
      .then((found) => oauth.processRefreshTokenResponse(as, client, found))
  )
  // Without a new refresh token in the response the old one stays valid (RFC 6749, section 6).
  return { refresh, ...tokens }
})

/** The page at which the provider ends its own session; undefined if it has none or cannot be reached. */
export const farewell = (id: Redacted.Redacted<string>) =>
  Effect.map(ways, ({ provider }) => {
    if (provider?.end_session_endpoint === undefined) return undefined
    const url = new URL(provider.end_session_endpoint)
    url.searchParams.set("client_id", provider.client_id)
    url.searchParams.set("id_token_hint", Redacted.value(id))
    url.searchParams.set("post_logout_redirect_uri", redirectUri)
    return url
  })

type Ask = (
  oauth: Library,
  as: import("oauth4webapi").AuthorizationServer,
  client: import("oauth4webapi").Client,
  options: import("oauth4webapi").TokenEndpointRequestOptions
) => Promise<import("oauth4webapi").TokenEndpointResponse>

/** Clocks of readers' machines are often wrong by minutes. */
const clockToleranceSeconds = 300

const tokensFrom = Effect.fnUntraced(function* ({ issuer, provider }: Reachable, ask: Ask) {
  const oauth = yield* library
  const { client_id, parameters, scope: _, id_token_signing_alg_values_supported: algorithms, ...endpoints } = provider
  const as = { issuer, ...endpoints, ...(algorithms && { id_token_signing_alg_values_supported: [...algorithms] }) }
  // A resource is named to both endpoints (RFC 8707).
  const additionalParameters = parameters.filter(([name]) => name === "resource").map((each) => [...each])
  const options = { additionalParameters, [oauth.allowInsecureRequests]: endpoints.token_endpoint.startsWith("http:") }
  const client = { client_id, [oauth.clockTolerance]: clockToleranceSeconds }
  const now = yield* Clock.currentTimeMillis
  const response = yield* Effect.tryPromise({
    try: () => ask(oauth, as, client, options),
    catch: (error) => notSignedIn(oauth, error)
  }).pipe(Effect.timeoutOrElse({ duration: timeout, orElse: () => Effect.fail(unreachable) }))
  return tokensOf(response, now)
})

const tokensOf = (
  { access_token, expires_in, id_token, refresh_token }: import("oauth4webapi").TokenEndpointResponse,
  now: number
): Tokens => ({
  access: Redacted.make(access_token),
  ...(expires_in !== undefined && { expiresAt: now + expires_in * 1_000 }),
  ...(refresh_token !== undefined && { refresh: Redacted.make(refresh_token) }),
  ...(id_token !== undefined && { id: Redacted.make(id_token) })
})

const notSignedIn = (oauth: Library, error: unknown): NotSignedIn => {
  if (error instanceof oauth.AuthorizationResponseError) {
    return new NotSignedIn({
      message:
        error.error === "access_denied"
          ? "You are not signed in: it was refused on the sign-in page. Sign in again, or ask your administrator."
          : `You are not signed in. The sign-in page says: ${error.error_description ?? error.error}.`
    })
  }
  if (error instanceof oauth.ResponseBodyError) {
    return new NotSignedIn({
      message: `You are not signed in. The sign-in page says: ${error.error_description ?? error.error}. Sign in again.`
    })
  }
  if (error instanceof oauth.OperationProcessingError || error instanceof oauth.UnsupportedOperationError) {
    return new NotSignedIn({
      message: `You are not signed in, because the response of the sign-in page is not valid: ${error.message}. Sign in again.`
    })
  }
  return unreachable
}
