import { Effect } from "effect"
import { Api } from "../../Api.ts"
import { operationGroup } from "../../access/requests/OperationGroup.ts"
import { Searches } from "./Searches.ts"

export const SearchHttp = operationGroup(
  Api,
  "search",
  Effect.fn(function* (handlers) {
    const searches = yield* Searches
    return handlers.handleAll({ search: ({ query }) => searches.search(query.q) })
  })
)
