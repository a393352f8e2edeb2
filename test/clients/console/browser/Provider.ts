/** A real OIDC provider at which people sign in to the console: they choose an account on its page, or refuse. */
import { createServer, type RequestListener, type ServerResponse } from "node:http"
import { Context, Effect, Layer } from "effect"
import { exportJWK } from "jose"
import OidcProvider from "oidc-provider"
import { audience, makeSigningKey } from "../../../support/http/Authentication.ts"

/** What the accounts may do here. */
const roles: Readonly<Record<string, ReadonlyArray<string>>> = {
  Ada: ["admin"],
  Grace: ["license:read"],
  Mallory: []
}

export const clientId = "console"

export class Provider extends Context.Service<
  Provider,
  {
    /** `http://localhost:<port>`: another site than the service's. */
    readonly url: string
    /** Starts over, for a console at this address. */
    admit(console: string, options?: Options): Effect.Effect<void>
    /** The grant types of the requests to the token endpoint. */
    readonly grants: Effect.Effect<ReadonlyArray<string>>
  }
>()("licensing/test/console/Provider") {
  static readonly layer = Layer.effect(
    Provider,
    Effect.gen(function* () {
      let serve: RequestListener = (_, response) => void response.writeHead(503).end()
      const grants: Array<string> = []
      const server = createServer((request, response) => serve(request, response))
      yield* Effect.acquireRelease(
        Effect.callback<void>((resume) => void server.listen(0, "127.0.0.1", () => resume(Effect.void))),
        () =>
          Effect.callback<void>((resume) => {
            server.close(() => resume(Effect.void))
            server.closeAllConnections()
          })
      )
      const { port } = server.address() as { readonly port: number }
      const url = `http://localhost:${port}`
      const jwk = yield* Effect.promise(() => exportJWK(makeSigningKey("ES256", "first").privateKey))
      return Provider.of({
        url,
        admit: (console, options = {}) =>
          Effect.sync(() => {
            grants.length = 0
            serve = listenerOf(
              url,
              configurationOf({ ...jwk, kid: "first", alg: "ES256", use: "sig" }, console, options),
              grants
            )
          }),
        grants: Effect.sync(() => [...grants])
      })
    })
  )
}

interface Options {
  readonly accessTokenSeconds?: number
  readonly renews?: boolean
}

const configurationOf = (jwk: object, console: string, { accessTokenSeconds = 600, renews = false }: Options) => ({
  jwks: { keys: [jwk] },
  cookies: { keys: ["a secret of the test"] },
  clients: [
    {
      client_id: clientId,
      token_endpoint_auth_method: "none",
      grant_types: ["authorization_code", "refresh_token"],
      response_types: ["code"],
      redirect_uris: [`${console}/sign-in`],
      post_logout_redirect_uris: [`${console}/sign-in`],
      id_token_signed_response_alg: "ES256"
    }
  ],
  clientBasedCORS: () => true,
  ttl: { AccessToken: accessTokenSeconds, IdToken: 600, Grant: 600, Interaction: 600, RefreshToken: 600, Session: 600 },
  issueRefreshToken: () => renews,
  findAccount: (_: unknown, accountId: string) => ({ accountId, claims: () => ({ sub: accountId }) }),
  extraTokenClaims: (_: unknown, { accountId }: { readonly accountId: string }) => ({
    name: accountId,
    roles: roles[accountId]
  }),
  loadExistingGrant: grantAll,
  interactions: { url: (_: unknown, { uid }: { readonly uid: string }) => `/interaction/${uid}` },
  features: {
    devInteractions: { enabled: false },
    rpInitiatedLogout: { enabled: true },
    resourceIndicators: {
      enabled: true,
      getResourceServerInfo: (_: unknown, resource: string) => ({
        audience: resource,
        scope: "",
        accessTokenFormat: "jwt",
        jwt: { sign: { alg: "ES256" } }
      })
    }
  }
})

interface Signing {
  readonly oidc: {
    readonly provider: OidcProvider
    readonly client: { readonly clientId: string }
    readonly session: { readonly accountId: string }
  }
}

/** Consent is given by choosing an account. */
const grantAll = async ({ oidc: { client, provider, session } }: Signing) => {
  const grant = new provider.Grant({ accountId: session.accountId, clientId: client.clientId })
  grant.addOIDCScope("openid")
  grant.addResourceScope(audience, "")
  await grant.save()
  return grant
}

const listenerOf = (url: string, configuration: object, grants: Array<string>): RequestListener => {
  const provider = new OidcProvider(url, configuration)
  const handle = provider.callback()
  return (request, response) => {
    const [path = "", query] = (request.url ?? "").split("?")
    if (!path.startsWith("/interaction/")) {
      if (path === "/token" && request.method === "POST") noteGrant(request, grants)
      return handle(request, response)
    }
    if (query === undefined) return choose(path, response)
    const account = new URLSearchParams(query).get("account")
    const result = account === null ? { error: "access_denied" } : { login: { accountId: account } }
    void provider.interactionFinished(request, response, result)
  }
}

const noteGrant = (request: Parameters<RequestListener>[0], grants: Array<string>) => {
  const push = request.push.bind(request)
  request.push = (chunk: Buffer | null) => {
    const grant = /grant_type=(\w+)/.exec(chunk?.toString() ?? "")?.[1]
    if (grant !== undefined) grants.push(grant)
    return push(chunk)
  }
}

const choose = (path: string, response: ServerResponse) => {
  const links = Object.keys(roles).map((name) => `<a href="${path}?account=${name}">Sign in as ${name}</a> `)
  response.writeHead(200, { "content-type": "text/html" })
  response.end(`<!doctype html><title>Provider</title>${links.join("")}<a href="${path}?refuse">Refuse</a>`)
}
