import { Effect } from "effect"
import { HttpServerRequest } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { Api } from "../Api.ts"
import { refuse } from "../api/Failure.ts"
import { unsupportedParameter } from "../reports/model/Filter.ts"
import { Activities } from "./Activities.ts"
import { activityFilter } from "./Activity.ts"

export const ActivitiesHttp = HttpApiBuilder.group(
  Api,
  "activities",
  Effect.fn(function* (handlers) {
    const activities = yield* Activities
    return handlers.handleAll({ list: ({ query }) => Effect.andThen(refuseUnknown, activities.list(query)) })
  })
)

/** Refuses a parameter that only reports accept: the feed would ignore it. */
const refuseUnknown = Effect.flatMap(HttpServerRequest.ParsedSearchParams, (given) => {
  const name = unsupportedParameter(activityFilter, Object.keys(given))
  return name === undefined
    ? Effect.void
    : Effect.fail(refuse("INVALID_QUERY", `The activities feed does not take the parameter ${name}.`, name))
})
