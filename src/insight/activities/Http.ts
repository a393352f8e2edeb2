import { Effect } from "effect"
import { Api } from "../../Api.ts"
import { operationGroup } from "../../access/requests/OperationGroup.ts"
import { Activities } from "./Activities.ts"

export const ActivitiesHttp = operationGroup(
  Api,
  "activities",
  Effect.fn(function* (handlers) {
    const activities = yield* Activities
    return handlers.handleAll({ list: ({ query }) => activities.list(query) })
  })
)
