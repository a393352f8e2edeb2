import { Effect } from "effect"
import { Api } from "../../Api.ts"
import { operationGroup } from "../../access/requests/OperationGroup.ts"
import { Events } from "./Events.ts"

export const EventsHttp = operationGroup(
  Api,
  "events",
  Effect.fn(function* (handlers) {
    const events = yield* Events
    return handlers.handleAll({ list: ({ query }) => events.list(query) })
  })
)
