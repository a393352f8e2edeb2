/** The operations on webhook endpoints. Reading takes the write scope too: there is no other. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { Data, Paged } from "../api/Envelope.ts"
import { failures } from "../api/Failure.ts"
import { pageQuery } from "../api/Paging.ts"
import { Decoding, PathTables } from "../api/Requests.ts"
import { Idempotency } from "../auth/idempotency/Idempotency.ts"
import { ManagementAuthorization, operation } from "../auth/Management.ts"
import { WebhookEndpoint, WebhookEndpointCreate, WebhookEndpointUpdate, WebhookEndpointWithSecret } from "./Webhook.ts"

const params = { id: Schema.String }

export class WebhooksApi extends HttpApiGroup.make("webhooks")
  .add(
    HttpApiEndpoint.get("list", "/webhooks", {
      query: { ...pageQuery, is_active: Schema.optionalKey(Schema.Literals(["true", "false"])) },
      success: Paged(WebhookEndpoint)
    }).annotateMerge(operation({ id: "listWebhooks", summary: "List webhook endpoints", scopes: ["webhook:write"] })),
    HttpApiEndpoint.post("create", "/webhooks", {
      payload: WebhookEndpointCreate,
      success: Data(WebhookEndpointWithSecret).pipe(HttpApiSchema.status(201)),
      error: failures("VALIDATION_ERROR")
    }).annotateMerge(
      operation({
        id: "createWebhook",
        summary: "Create a webhook endpoint",
        description: "The answer shows the secret. Its own webhook.created is the first event that it may be sent.",
        scopes: ["webhook:write"]
      })
    ),
    HttpApiEndpoint.get("get", "/webhooks/:id", {
      params,
      success: Data(WebhookEndpoint),
      error: failures("NOT_FOUND")
    }).annotateMerge(operation({ id: "getWebhook", summary: "Get a webhook endpoint", scopes: ["webhook:write"] })),
    HttpApiEndpoint.patch("update", "/webhooks/:id", {
      params,
      payload: WebhookEndpointUpdate,
      success: Data(Schema.Union([WebhookEndpointWithSecret, WebhookEndpoint])),
      error: failures("NOT_FOUND", "VALIDATION_ERROR")
    }).annotateMerge(
      operation({
        id: "updateWebhook",
        summary: "Update a webhook endpoint",
        description:
          "With rotate_secret the answer shows the new secret, else it is the endpoint. After a change of secret the old " +
          "one signs too for 24 hours.",
        scopes: ["webhook:write"]
      })
    ),
    HttpApiEndpoint.delete("delete", "/webhooks/:id", {
      params,
      success: HttpApiSchema.NoContent,
      error: failures("NOT_FOUND")
    }).annotateMerge(
      operation({
        id: "deleteWebhook",
        summary: "Delete a webhook endpoint",
        description: "What is still to be delivered to it is given up.",
        scopes: ["webhook:write"]
      })
    )
  )
  .middleware(Decoding)
  .middleware(Idempotency)
  .middleware(ManagementAuthorization)
  .annotate(PathTables, { id: "webhook_endpoints" })
  .annotate(OpenApi.Description, "Where events are delivered to.") {}
