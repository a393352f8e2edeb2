/**
 * Credentials of the management API: requests through its authorization middleware, and an OIDC issuer on this machine. The
 * issuer is a real authorization server; it also signs invalid tokens with its valid keys.
 */

import { generateKeyPairSync, type KeyObject } from "node:crypto"
import { createServer, type RequestListener, type Server } from "node:http"
import { Context, Effect, Layer, Redacted } from "effect"
import { Headers, HttpServerRequest, HttpServerResponse } from "effect/http"
import { HttpApiEndpoint } from "effect/http-api"
import { exportJWK, type JWTHeaderParameters, type JWTPayload, SignJWT } from "jose"
import Provider from "oidc-provider"
import { CurrentActor } from "../../../src/access/CurrentActor.ts"
import { ManagementAuthorization, operation } from "../../../src/access/Management.ts"
import { Oidc } from "../../../src/access/oidc/Oidc.ts"
import { RateLimits } from "../../../src/access/rateLimits/RateLimits.ts"
import type { ManagementScope } from "../../../src/access/Scope.ts"
import type { Refusal } from "../../../src/contract/api/Failure.ts"
import { RequestContext } from "../../../src/contract/api/RequestContext.ts"
import * as ManagementHttp from "../../../src/edge/requests/ManagementHttp.ts"
import { Settings } from "../../../src/platform/config/Config.ts"
import { ApiKeysApi } from "../../../src/vendor/apiKeys/Api.ts"
import type { ApiKeyCreate } from "../../../src/vendor/apiKeys/ApiKey.ts"
import { ApiKeyCache } from "../../../src/vendor/apiKeys/ApiKeyCache.ts"
import { ApiKeys } from "../../../src/vendor/apiKeys/ApiKeys.ts"
import { Foundations } from "../database/Services.ts"

/** Management authorization of one node, with its own cache of keys. */
export const layerNode = ManagementHttp.layer.pipe(
  Layer.provideMerge(ApiKeys.layer),
  Layer.provideMerge(ApiKeyCache.layer),
  Layer.provide([Oidc.layer, RateLimits.layer]),
  Layer.provide(Settings.layerTest({ rateFailures: 0 }))
)
/** One node on a new database. */
export const layerOneNode = Layer.provideMerge(layerNode, Foundations)

const endpointWith = (...scopes: [ManagementScope, ...Array<ManagementScope>]) =>
  HttpApiEndpoint.get("read", "/things").annotateMerge(operation({ id: "read", summary: "Read", scopes }))

/** A request with these headers, as the middleware receives it. */
const requestWith = (...authorization: ReadonlyArray<string>) => {
  const rawHeaders = authorization.flatMap((text) => ["Authorization", text])
  const headers = Headers.fromInput(authorization.slice(0, 1).map((text) => ["authorization", text] as const))
  return { headers, source: { rawHeaders } } as HttpServerRequest.HttpServerRequest
}

const currentActor = Effect.map(CurrentActor, (actor) => HttpServerResponse.jsonUnsafe(actor))

interface AuthorizationRequest {
  readonly authorization?: ReadonlyArray<string>
  readonly scopes?: [ManagementScope, ...Array<ManagementScope>]
  readonly address?: string
}

/** Sends a request through the middleware. Returns the actor, or the refusal's code and detail. */
export const authorize = Effect.fnUntraced(function* ({
  authorization = [],
  scopes = ["product:read"],
  address
}: AuthorizationRequest) {
  const { ApiToken } = yield* ManagementAuthorization
  const admitted = ApiToken(currentActor, {
    credential: Redacted.make(""),
    endpoint: endpointWith(...scopes) as never,
    group: ApiKeysApi as never
  }) as Effect.Effect<HttpServerResponse.HttpServerResponse, Refusal, HttpServerRequest.HttpServerRequest>
  return yield* admitted.pipe(
    Effect.match({
      onSuccess: (response) => JSON.parse(new TextDecoder().decode((response.body as { body: Uint8Array }).body)),
      onFailure: (refusal) => [refusal.code, refusal.detail]
    }),
    Effect.provideService(HttpServerRequest.HttpServerRequest, requestWith(...authorization)),
    Effect.provideService(RequestContext, { requestId: "req_test", clientAddress: address })
  )
})

/** Makes an API key. Returns its token, the Authorization header, and the actor. */
export const makeApiKey = Effect.fnUntraced(function* (input: Partial<typeof ApiKeyCreate.Type> = {}) {
  const { api_key, token } = yield* (yield* ApiKeys).create({ name: "tested", ...input })
  const actor = { actor_type: "api_key", actor_id: api_key.id, actor_name: api_key.name }
  return { id: api_key.id, token, bearer: [`Bearer ${token}`], actor }
})

/** The audience of the tokens. */
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
    /** A token signed by the test, valid except for the given claims. Its times follow `nowMillis`. */
    sign(nowMillis: number, claims?: Claims): Effect.Effect<string>
    /** Publishes other keys, and signs with the first. */
    publish(...keys: ReadonlyArray<Key>): Effect.Effect<void>
    /** The keys that are published. */
    readonly keys: Effect.Effect<ReadonlyArray<Key>>
    /** Replaces the handler of all requests; without an argument restores it. */
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
      let keys: ReadonlyArray<Key> = [makeSigningKey("RS256", "first")]
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

const keyTypes = {
  RS256: () => generateKeyPairSync("rsa", { modulusLength: 2_048 }),
  ES256: () => generateKeyPairSync("ec", { namedCurve: "P-256" }),
  EdDSA: () => generateKeyPairSync("ed25519")
}

export const makeSigningKey = (alg: Algorithm, kid: string): Key => ({
  kid,
  alg,
  privateKey: keyTypes[alg]().privateKey
})

/** The key in the provider's configuration; the provider publishes its public half. */
const publicForm = ({ alg, kid, privateKey }: Key) =>
  exportJWK(privateKey).then((jwk) => ({ ...jwk, kid, alg, use: "sig" }))

/** The provider's token storage, which JWTs do not need. */
class NoStorage {
  upsert() {
    return Promise.resolve()
  }
  find() {
    return Promise.resolve()
  }
}

const configurationOf = (keys: ReadonlyArray<object>, alg: string) => ({
  jwks: { keys },
  adapter: NoStorage,
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

/** Builds the service's OIDC verifier with an empty cache. */
export const makeOidc = Effect.fnUntraced(function* (oidcScopeClaim = "scope", oidcProductsClaim?: string) {
  const { url } = yield* Issuer
  const settings = Settings.layerTest({ oidcIssuer: url, oidcAudience: audience, oidcScopeClaim, oidcProductsClaim })
  return Context.get(yield* Layer.build(Layer.fresh(Oidc.layer).pipe(Layer.provide(settings))), Oidc)
})

/** The subject and scopes of a token, or the code of its refusal. */
export const authenticationOf = (oidc: Oidc["Service"], token: string) =>
  Effect.match(oidc.authenticate(token), {
    onSuccess: ({ actor, scopes }) => [actor.actor_type, actor.actor_id, ...scopes],
    onFailure: ({ code }) => code
  })

/** The subject and scopes of the tokens that the test signs by default. */
export const defaultIdentity = ["oidc_subject", "someone", "admin"]
