import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { Api } from "../../Api.ts"
import { Searches } from "./Searches.ts"

export const SearchHttp = HttpApiBuilder.group(
  Api,
  "search",
  Effect.fn(function* (handlers) {
    const searches = yield* Searches
    return handlers.handleAll({ search: ({ query }) => searches.search(query.q) })
  })
)
