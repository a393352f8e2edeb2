/**
 * An OIDC issuer on this machine: a real authorization server that clients get tokens from with their own credentials, and beside
 * it tokens that no honest issuer would sign, made with the issuer's own keys.
 */
import { generateKeyPairSync, type KeyObject } from "node:crypto"
import { createServer, type RequestListener, type Server } from "node:http"
import { Context, Effect, Layer } from "effect"
import { exportJWK, type JWTHeaderParameters, type JWTPayload, SignJWT } from "jose"
import Provider from "oidc-provider"

/** What tokens are made for. */
export const audience = "https://licenses.example.com"

export type Algorithm = "RS256" | "ES256" | "EdDSA"

interface Key {
  readonly kid: string
  readonly alg: string
  readonly privateKey: KeyObject
}

interface Claims {
  readonly header?: Partial<JWTHeaderParameters>
  readonly payload?: JWTPayload & { readonly [claim: string]: unknown }
  /** The key that signs; default: the issuer's newest. */
  readonly key?: Key
}

export class Issuer extends Context.Service<
  Issuer,
  {
    /** `http://127.0.0.1:<port>` */
    readonly url: string
    /** A token from the authorization server, for a client that may ask for these scopes. */
    token(scope: string, resource?: string): Effect.Effect<string>
    /** A token signed here: right in everything but what is given. Times are the given clock's. */
    sign(nowMillis: number, claims?: Claims): Effect.Effect<string>
    /** Publishes other keys, and signs with the first. */
    publish(...keys: ReadonlyArray<Key>): Effect.Effect<void>
    /** The keys that are published. */
    readonly keys: Effect.Effect<ReadonlyArray<Key>>
    /** Answers every request with this instead, until it is called without. */
    pretend(listener?: RequestListener): Effect.Effect<void>
    /** How often the keys were fetched. */
    readonly fetches: Effect.Effect<number>
    readonly stop: Effect.Effect<void>
    readonly start: Effect.Effect<void>
  }
>()("licensing/test/Issuer") {
  static readonly layer: Layer.Layer<Issuer> = Layer.effect(
    Issuer,
    Effect.gen(function* () {
      let keys: ReadonlyArray<Key> = [makeKey("RS256", "first")]
      let provider: RequestListener = () => {}
      let pretended: RequestListener | undefined
      let fetches = 0
      const server = createServer((request, response) => {
        if (request.url === "/jwks") fetches++
        return (pretended ?? provider)(request, response)
      })
      yield* listen(server, 0)
      const { port } = server.address() as { readonly port: number }
      const url = `http://127.0.0.1:${port}`
      yield* Effect.addFinalizer(() => close(server))

      const publish = (...published: ReadonlyArray<Key>) =>
        Effect.promise(() =>
          Promise.all(published.map(publicForm)).then((jwks) => {
            keys = published
            provider = new Provider(url, configurationOf(jwks, published[0]!.alg)).callback()
          })
        )
      yield* publish(...keys)

      return Issuer.of({
        url,
        token: (scope, resource = audience) => Effect.promise(() => requestToken(url, scope, resource)),
        sign: (nowMillis, claims = {}) => Effect.promise(() => signed(url, claims.key ?? keys[0]!, nowMillis, claims)),
        publish,
        keys: Effect.sync(() => keys),
        pretend: (listener) =>
          Effect.sync(() => {
            pretended = listener
          }),
        fetches: Effect.sync(() => fetches),
        stop: close(server),
        start: listen(server, port)
      })
    })
  )
}

const types = {
  RS256: () => generateKeyPairSync("rsa", { modulusLength: 2_048 }),
  ES256: () => generateKeyPairSync("ec", { namedCurve: "P-256" }),
  EdDSA: () => generateKeyPairSync("ed25519")
}

export const makeKey = (alg: Algorithm, kid: string): Key => ({ kid, alg, privateKey: types[alg]().privateKey })

/** The key as the provider is given it; what it publishes of it is the public half. */
const publicForm = ({ alg, kid, privateKey }: Key) =>
  exportJWK(privateKey).then((jwk) => ({ ...jwk, kid, alg, use: "sig" }))

/** What a provider would keep of its tokens: JWTs need nothing of it. */
class Nowhere {
  upsert() {
    return Promise.resolve()
  }
  find() {
    return Promise.resolve()
  }
}

const configurationOf = (keys: ReadonlyArray<object>, alg: string) => ({
  jwks: { keys },
  adapter: Nowhere,
  ttl: { ClientCredentials: 3_600 },
  clients: [
    {
      client_id: "backoffice",
      client_secret: "a-secret-of-the-test",
      grant_types: ["client_credentials"],
      id_token_signed_response_alg: alg,
      redirect_uris: [],
      response_types: []
    }
  ],
  features: {
    clientCredentials: { enabled: true },
    devInteractions: { enabled: false },
    resourceIndicators: {
      enabled: true,
      getResourceServerInfo: (_context: unknown, resource: string) => ({
        audience: resource,
        scope: "admin product:read product:write license:read unheard:of",
        accessTokenFormat: "jwt",
        jwt: { sign: { alg } }
      })
    }
  }
})

const requestToken = (url: string, scope: string, resource: string): Promise<string> =>
  fetch(`${url}/token`, {
    method: "POST",
    headers: {
      authorization: `Basic ${btoa("backoffice:a-secret-of-the-test")}`,
      "content-type": "application/x-www-form-urlencoded"
    },
    body: new URLSearchParams({ grant_type: "client_credentials", scope, resource })
  })
    .then((response) => response.json())
    .then((body) => (body as { access_token: string }).access_token)

const signed = (issuer: string, key: Key, nowMillis: number, { header, payload }: Claims): Promise<string> => {
  const now = Math.floor(nowMillis / 1_000)
  const claims = { iss: issuer, aud: audience, sub: "someone", scope: "admin", iat: now, exp: now + 300, ...payload }
  const present = Object.fromEntries(Object.entries(claims).filter(([, value]) => value !== undefined))
  return new SignJWT(present).setProtectedHeader({ alg: key.alg, kid: key.kid, ...header }).sign(key.privateKey)
}

const listen = (server: Server, port: number): Effect.Effect<void> =>
  Effect.callback((resume) => void server.listen(port, "127.0.0.1", () => resume(Effect.void)))

const close = (server: Server): Effect.Effect<void> =>
  Effect.callback((resume) => {
    server.close(() => resume(Effect.void))
    server.closeAllConnections()
  })
