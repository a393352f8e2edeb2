import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { Api } from "../../Api.ts"
import { Activities } from "./Activities.ts"

export const ActivitiesHttp = HttpApiBuilder.group(
  Api,
  "activities",
  Effect.fn(function* (handlers) {
    const activities = yield* Activities
    return handlers.handleAll({ list: ({ query }) => activities.list(query) })
  })
)
