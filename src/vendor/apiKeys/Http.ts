import { Effect } from "effect"
import { Api } from "../../Api.ts"
import { withTag } from "../../access/preconditions/TaggedResponse.ts"
import { operationGroup } from "../../access/requests/OperationGroup.ts"
import { ApiKeyUpdate } from "./ApiKey.ts"
import { ApiKeys } from "./ApiKeys.ts"

export const ApiKeysHttp = operationGroup(
  Api,
  "api-keys",
  Effect.fn(function* (handlers) {
    const keys = yield* ApiKeys
    return handlers.handleAll({
      list: ({ query }) => keys.list(query),
      create: ({ payload }) => keys.create(payload),
      get: ({ params }) => withTag(ApiKeyUpdate, keys.get(params.id)),
      update: ({ params, payload }) => withTag(ApiKeyUpdate, keys.update(params.id, payload)),
      delete: ({ params }) => keys.delete(params.id)
    })
  })
)
