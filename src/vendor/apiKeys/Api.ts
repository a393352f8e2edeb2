/** The operations on API keys. They need `admin`, because a caller that can create keys can do everything. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { Idempotency } from "../../access/idempotency/Idempotency.ts"
import { ManagementAuthorization, operation } from "../../access/Management.ts"
import { Conditional } from "../../access/preconditions/Conditional.ts"
import { Data, Paged } from "../../contract/api/Envelope.ts"
import { failures } from "../../contract/api/Failure.ts"
import { listQuery } from "../../contract/api/Paging.ts"
import { Decoding, PathTables } from "../../contract/api/Requests.ts"
import { ApiKey, ApiKeyCreate, ApiKeyUpdate, ApiKeyWithToken, apiKeySorts } from "./ApiKey.ts"

const params = { id: Schema.String }

export class ApiKeysApi extends HttpApiGroup.make("api-keys")
  .add(
    HttpApiEndpoint.get("list", "/api-keys", {
      query: listQuery(apiKeySorts, { is_active: Schema.optionalKey(Schema.Literals(["true", "false"])) }),
      success: Paged(ApiKey)
    }).annotateMerge(operation({ id: "listApiKeys", summary: "List API keys", scopes: ["admin"] })),
    HttpApiEndpoint.post("create", "/api-keys", {
      payload: ApiKeyCreate,
      success: Data(ApiKeyWithToken).pipe(HttpApiSchema.status(201)),
      error: failures("NOT_FOUND", "VALIDATION_ERROR")
    }).annotateMerge(
      operation({
        id: "createApiKey",
        summary: "Create an API key",
        description:
          "The response contains the token. It is never shown again. With product_ids the token reaches only what belongs to these products.",
        scopes: ["admin"]
      })
    ),
    HttpApiEndpoint.get("get", "/api-keys/:id", {
      params,
      success: Data(ApiKey),
      error: failures("NOT_FOUND")
    }).annotateMerge(operation({ id: "getApiKey", summary: "Get an API key", scopes: ["admin"] })),
    HttpApiEndpoint.patch("update", "/api-keys/:id", {
      params,
      payload: ApiKeyUpdate,
      success: Data(ApiKey),
      error: failures("NOT_FOUND", "VALIDATION_ERROR")
    })
      .middleware(Conditional)
      .annotateMerge(
        operation({
          id: "updateApiKey",
          summary: "Update an API key",
          description: "Takes effect within a second, on every node.",
          scopes: ["admin"]
        })
      ),
    HttpApiEndpoint.delete("delete", "/api-keys/:id", {
      params,
      success: HttpApiSchema.NoContent,
      error: failures("NOT_FOUND")
    }).annotateMerge(
      operation({
        id: "deleteApiKey",
        summary: "Revoke an API key",
        description: "Revokes the key permanently: its token is refused within a second, on every node.",
        scopes: ["admin"]
      })
    )
  )
  .middleware(Decoding)
  .middleware(Idempotency)
  .middleware(ManagementAuthorization)
  .annotate(PathTables, { id: "api_keys" })
  .annotate(OpenApi.Description, "Credentials of the management API.") {}
