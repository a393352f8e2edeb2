/** Adds to each request its credential, and to each change its Idempotency-Key. */
import { Effect, Layer, Redacted } from "effect"
import { type HttpClientRequest, HttpClientRequest as Requests } from "effect/http"
import { HttpApiMiddleware } from "effect/http-api"
import { ManagementAuthorization } from "../auth/Management.ts"
import { RuntimeAuthorization } from "../runtime/credentials/RuntimeAuthorization.ts"
import { Call, type CallFacts } from "./Call.ts"

export type Credentials = Pick<CallFacts, "token" | "licenseKey">

type Sent = HttpClientRequest.HttpClientRequest

export const authorization = Layer.mergeAll(
  HttpApiMiddleware.layerClient(ManagementAuthorization, ({ next, request }) =>
    Effect.flatMap(Call, ({ idempotencyKey, token }) =>
      next(request.method === "GET" ? bearer(request, token) : keyed(bearer(request, token), idempotencyKey))
    )
  ),
  HttpApiMiddleware.layerClient(RuntimeAuthorization, ({ next, request }) =>
    Effect.flatMap(Call, ({ licenseKey }) =>
      next(
        licenseKey === undefined
          ? request
          : Requests.setHeader(request, "authorization", `License ${Redacted.value(licenseKey)}`)
      )
    )
  )
)

const bearer = (request: Sent, token: Credentials["token"]): Sent =>
  token === undefined ? request : Requests.bearerToken(request, token)

const keyed = (request: Sent, key: string | undefined): Sent =>
  key === undefined ? request : Requests.setHeader(request, "idempotency-key", key)
