import { Effect } from "effect"
import { Api } from "../../Api.ts"
import { withTag } from "../../access/preconditions/TaggedResponse.ts"
import { operationGroup } from "../../access/requests/OperationGroup.ts"
import { Policies } from "./Policies.ts"
import { PolicyUpdate } from "./Policy.ts"
import { PolicyFeatures } from "./PolicyFeatures.ts"

export const PoliciesHttp = operationGroup(
  Api,
  "policies",
  Effect.fn(function* (handlers) {
    const policies = yield* Policies
    const features = yield* PolicyFeatures
    return handlers.handleAll({
      list: ({ params, query }) => policies.list(params.id, query),
      create: ({ params, payload }) => policies.create(params.id, payload),
      get: ({ params }) => withTag(PolicyUpdate, policies.get(params.id)),
      update: ({ params, payload }) => withTag(PolicyUpdate, policies.update(params.id, payload)),
      delete: ({ params }) => policies.delete(params.id),
      listFeatures: ({ params, query }) => features.list(params.id, query),
      setFeature: ({ params, payload }) => features.set(params.id, params.feature_id, payload),
      removeFeature: ({ params }) => features.delete(params.id, params.feature_id)
    })
  })
)
