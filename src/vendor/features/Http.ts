import { Effect } from "effect"
import { Api } from "../../Api.ts"
import { withTag } from "../../access/preconditions/TaggedResponse.ts"
import { operationGroup } from "../../access/requests/OperationGroup.ts"
import { FeatureUpdate } from "./Feature.ts"
import { Features } from "./Features.ts"

export const FeaturesHttp = operationGroup(
  Api,
  "features",
  Effect.fn(function* (handlers) {
    const features = yield* Features
    return handlers.handleAll({
      list: ({ params, query }) => features.list(params.id, query),
      create: ({ params, payload }) => features.create(params.id, payload),
      get: ({ params }) => withTag(FeatureUpdate, features.get(params.id)),
      update: ({ params, payload }) => withTag(FeatureUpdate, features.update(params.id, payload)),
      delete: ({ params }) => features.delete(params.id)
    })
  })
)
