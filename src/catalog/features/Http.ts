import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { Api } from "../../Api.ts"
import { Features } from "./Features.ts"

export const FeaturesHttp = HttpApiBuilder.group(
  Api,
  "features",
  Effect.fn(function* (handlers) {
    const features = yield* Features
    return handlers.handleAll({
      list: ({ params, query }) => features.list(params.id, query),
      create: ({ params, payload }) => features.create(params.id, payload),
      get: ({ params }) => features.get(params.id),
      update: ({ params, payload }) => features.update(params.id, payload),
      delete: ({ params }) => features.delete(params.id)
    })
  })
)
