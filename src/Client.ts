/**
 * The typed client, derived from the contract: it takes and returns domain values, and refusals are errors with their code. It
 * imports no server code.
 *
 * Management operations send the token of `Client.withToken`, runtime operations the key of `Client.withLicenseKey`. A client
 * that calls only one kind of operation may leave the other credential empty.
 */
import { Context, Layer, Redacted } from "effect"
import { HttpClientRequest } from "effect/http"
import { HttpApiClient, HttpApiMiddleware } from "effect/http-api"
import { Api } from "./Api.ts"
import { ManagementAuthorization } from "./auth/Management.ts"
import { RuntimeAuthorization } from "./runtime/credentials/RuntimeAuthorization.ts"

export class Client extends Context.Service<Client, HttpApiClient.ForApi<typeof Api>>()("licensing/Client") {
  /** A client of the service at `baseUrl`, for example `https://licenses.example.com`. */
  static readonly layer = (options: { readonly baseUrl: string }) =>
    Layer.effect(Client, HttpApiClient.make(Api, { baseUrl: options.baseUrl }))

  /** Authorizes management operations: `Authorization: Bearer <token>`. */
  static readonly withToken = (token: Redacted.Redacted<string>) =>
    HttpApiMiddleware.layerClient(ManagementAuthorization, ({ next, request }) =>
      next(HttpClientRequest.bearerToken(request, token))
    )

  /** Authorizes runtime operations: `Authorization: License <key>`. */
  static readonly withLicenseKey = (key: Redacted.Redacted<string>) =>
    HttpApiMiddleware.layerClient(RuntimeAuthorization, ({ next, request }) =>
      next(HttpClientRequest.setHeader(request, "authorization", `License ${Redacted.value(key)}`))
    )
}
