/**
 * A client as `HttpApiClient` derives it, by group and endpoint, without retries: tests see each response as it came. Applications
 * use `src/clients/client/Client.ts`.
 */
import { Effect, Redacted } from "effect"
import { HttpClientRequest } from "effect/http"
import { HttpApiClient, HttpApiMiddleware } from "effect/http-api"
import { Api } from "../../../src/Api.ts"
import { ManagementAuthorization } from "../../../src/access/Management.ts"
import { RuntimeAuthorization } from "../../../src/licensing/runtime/credentials/RuntimeAuthorization.ts"

export type GroupedClient = HttpApiClient.ForApi<typeof Api>

/** The credentials of a client: a management token, a license key, or none. */
export interface Credentials {
  readonly token?: string
  readonly licenseKey?: string
}

export const groupedClient = (baseUrl: string, { token = "", licenseKey = "" }: Credentials) =>
  HttpApiClient.make(Api, { baseUrl }).pipe(
    Effect.provide([
      HttpApiMiddleware.layerClient(ManagementAuthorization, ({ next, request }) =>
        next(HttpClientRequest.bearerToken(request, Redacted.make(token)))
      ),
      HttpApiMiddleware.layerClient(RuntimeAuthorization, ({ next, request }) =>
        next(HttpClientRequest.setHeader(request, "authorization", `License ${licenseKey}`))
      )
    ])
  )
