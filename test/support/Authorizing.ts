/** Requests as management authorization meets them, without a server around it. */
import { Effect, Layer, Redacted } from "effect"
import { Headers, HttpServerRequest, HttpServerResponse } from "effect/http"
import { HttpApiEndpoint } from "effect/http-api"
import type { Refusal } from "../../src/api/Failure.ts"
import { RequestContext } from "../../src/api/RequestContext.ts"
import { ApiKeysApi } from "../../src/auth/apiKeys/Api.ts"
import type { ApiKeyCreate } from "../../src/auth/apiKeys/ApiKey.ts"
import { ApiKeyCache } from "../../src/auth/apiKeys/ApiKeyCache.ts"
import { ApiKeys } from "../../src/auth/apiKeys/ApiKeys.ts"
import { CurrentActor } from "../../src/auth/CurrentActor.ts"
import { ManagementAuthorization, operation } from "../../src/auth/Management.ts"
import { Oidc } from "../../src/auth/oidc/Oidc.ts"
import { RateLimits } from "../../src/auth/rateLimits/RateLimits.ts"
import type { ManagementScope } from "../../src/auth/Scope.ts"
import { Settings } from "../../src/config/Config.ts"
import * as ManagementHttp from "../../src/http/ManagementHttp.ts"
import { Foundations } from "./Slices.ts"

/** What one node of the service has for management authorization: its own memory of keys. */
export const Node = ManagementHttp.layer.pipe(
  Layer.provideMerge(ApiKeys.layer),
  Layer.provideMerge(ApiKeyCache.layer),
  Layer.provide([Oidc.layer, RateLimits.layer]),
  Layer.provide(Settings.layerTest({ rateFailures: 0 }))
)
/** One node over a database. */
export const OneNode = Layer.provideMerge(Node, Foundations)

const endpointWith = (...scopes: [ManagementScope, ...Array<ManagementScope>]) =>
  HttpApiEndpoint.get("read", "/things").annotateMerge(operation({ id: "read", summary: "Read", scopes }))

/** A request with these header texts, as the middleware meets it. */
const requestWith = (...authorization: ReadonlyArray<string>) => {
  const rawHeaders = authorization.flatMap((text) => ["Authorization", text])
  const headers = Headers.fromInput(authorization.slice(0, 1).map((text) => ["authorization", text] as const))
  return { headers, source: { rawHeaders } } as HttpServerRequest.HttpServerRequest
}

const whoActs = Effect.map(CurrentActor, (actor) => HttpServerResponse.jsonUnsafe(actor))

interface Attempt {
  readonly authorization?: ReadonlyArray<string>
  readonly scopes?: [ManagementScope, ...Array<ManagementScope>]
  readonly address?: string
}

/** Sends a request through the middleware: who was let in, or why not. */
export const attempt = Effect.fnUntraced(function* ({
  authorization = [],
  scopes = ["product:read"],
  address
}: Attempt) {
  const { ApiToken } = yield* ManagementAuthorization
  const admitted = ApiToken(whoActs, {
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

/** A new key, what a request sends of it, and who it makes act. */
export const makeKey = Effect.fnUntraced(function* (input: Partial<typeof ApiKeyCreate.Type> = {}) {
  const { api_key, token } = yield* (yield* ApiKeys).create({ name: "tested", ...input })
  return { id: api_key.id, token, bearer: [`Bearer ${token}`], actor: { actor_type: "api_key", actor_id: api_key.id } }
})
