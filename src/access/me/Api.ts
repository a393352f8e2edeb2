/** The operation that describes the token of the request. It needs no scope. */
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { Data } from "../../contract/api/Envelope.ts"
import { Decoding } from "../../contract/api/Requests.ts"
import { ManagementAuthorization, operation } from "../Management.ts"
import { Me } from "./Me.ts"

export class MeApi extends HttpApiGroup.make("me")
  .add(
    HttpApiEndpoint.get("get", "/me", { success: Data(Me) }).annotateMerge(
      operation({
        id: "getMe",
        summary: "Get the token of the request",
        description: "Returns what the token is and what it may do. Any valid token may call it.",
        scopes: [],
        reach: "all"
      })
    )
  )
  .middleware(Decoding)
  .middleware(ManagementAuthorization)
  .annotate(OpenApi.Title, "api-keys") {}
