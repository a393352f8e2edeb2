import { Effect } from "effect"
import { Api } from "../../Api.ts"
import { operationGroup } from "../../access/requests/OperationGroup.ts"
import { Versions } from "./Versions.ts"

export const VersionsHttp = operationGroup(
  Api,
  "versions",
  Effect.fn(function* (handlers) {
    const versions = yield* Versions
    return handlers.handleAll({
      list: ({ params, query }) => versions.list(params.id, query),
      create: ({ params, payload }) => versions.create(params.id, payload),
      get: ({ params }) => versions.get(params.id, params.version_id),
      delete: ({ params }) => versions.delete(params.id, params.version_id)
    })
  })
)
