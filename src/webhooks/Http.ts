import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { Api } from "../Api.ts"
import { Webhooks } from "./Webhooks.ts"

export const WebhooksHttp = HttpApiBuilder.group(
  Api,
  "webhooks",
  Effect.fn(function* (handlers) {
    const webhooks = yield* Webhooks
    return handlers.handleAll({
      list: ({ query }) => webhooks.list(query),
      create: ({ payload }) => webhooks.create(payload),
      get: ({ params }) => webhooks.get(params.id),
      update: ({ params, payload }) => webhooks.update(params.id, payload),
      delete: ({ params }) => webhooks.delete(params.id)
    })
  })
)
