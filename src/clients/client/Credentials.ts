/** Adds to each request its credential, to each change its Idempotency-Key, and to the change of a record its If-Match. */
import { Effect, Layer, Redacted } from "effect"
import { type HttpClientRequest, HttpClientRequest as Requests } from "effect/http"
import { HttpApiMiddleware } from "effect/http-api"
import { ManagementAuthorization } from "../../access/Management.ts"
import { RuntimeAuthorization } from "../../licensing/runtime/credentials/RuntimeAuthorization.ts"
import { Call, type CallFacts } from "./Call.ts"

export type Credentials = Pick<CallFacts, "token" | "licenseKey">

type Sent = HttpClientRequest.HttpClientRequest

export const authorization = Layer.mergeAll(
  HttpApiMiddleware.layerClient(ManagementAuthorization, ({ next, request }) =>
    Effect.flatMap(Call, ({ idempotencyKey, ifMatch, token }) => {
      const authorized = bearer(request, token)
      if (request.method === "GET") return next(authorized)
      const keyed = withHeader(authorized, "idempotency-key", idempotencyKey)
      return next(request.method === "PATCH" ? withHeader(keyed, "if-match", ifMatch) : keyed)
    })
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

const withHeader = (request: Sent, name: string, value: string | undefined): Sent =>
  value === undefined ? request : Requests.setHeader(request, name, value)
