import { Effect } from "effect"
import { Api } from "../../Api.ts"
import { withTag } from "../../access/preconditions/TaggedResponse.ts"
import { operationGroup } from "../../access/requests/OperationGroup.ts"
import { WebhookEndpointUpdate } from "./Webhook.ts"
import { Webhooks } from "./Webhooks.ts"

export const WebhooksHttp = operationGroup(
  Api,
  "webhooks",
  Effect.fn(function* (handlers) {
    const webhooks = yield* Webhooks
    return handlers.handleAll({
      list: ({ query }) => webhooks.list(query),
      create: ({ payload }) => webhooks.create(payload),
      get: ({ params }) => withTag(WebhookEndpointUpdate, webhooks.get(params.id)),
      update: ({ params, payload }) =>
        withTag(WebhookEndpointUpdate, webhooks.update(params.id, payload), (data) =>
          "webhook" in data ? data.webhook : data
        ),
      delete: ({ params }) => webhooks.delete(params.id)
    })
  })
)
