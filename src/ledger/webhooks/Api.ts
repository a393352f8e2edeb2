/** The operations on webhook endpoints. Reads need the scope webhook:write too: there is no read scope. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { Idempotency } from "../../access/idempotency/Idempotency.ts"
import { ManagementAuthorization, operation } from "../../access/Management.ts"
import { Conditional } from "../../access/preconditions/Conditional.ts"
import { Data, Paged } from "../../contract/api/Envelope.ts"
import { failures } from "../../contract/api/Failure.ts"
import { listQuery } from "../../contract/api/Paging.ts"
import { Decoding, PathTables } from "../../contract/api/Requests.ts"
import {
  WebhookEndpoint,
  WebhookEndpointCreate,
  WebhookEndpointUpdate,
  WebhookEndpointWithSecret,
  webhookSorts
} from "./Webhook.ts"

const params = { id: Schema.String }

export class WebhooksApi extends HttpApiGroup.make("webhooks")
  .add(
    HttpApiEndpoint.get("list", "/webhooks", {
      query: listQuery(webhookSorts, { is_active: Schema.optionalKey(Schema.Literals(["true", "false"])) }),
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
        description:
          "The response contains the secret. The endpoint's own webhook.created is the first event that it can receive.",
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
    })
      .middleware(Conditional)
      .annotateMerge(
        operation({
          id: "updateWebhook",
          summary: "Update a webhook endpoint",
          description:
            "With rotate_secret the response contains the new secret, otherwise only the endpoint. After a change of the secret " +
            "deliveries are also signed with the old one for 24 hours.",
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
        description: "Its pending deliveries are dropped.",
        scopes: ["webhook:write"]
      })
    )
  )
  .middleware(Decoding)
  .middleware(Idempotency)
  .middleware(ManagementAuthorization)
  .annotate(PathTables, { id: "webhook_endpoints" })
  .annotate(OpenApi.Description, "The endpoints that events are delivered to.") {}
