import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { Api } from "../../Api.ts"
import { Events } from "./Events.ts"

export const EventsHttp = HttpApiBuilder.group(
  Api,
  "events",
  Effect.fn(function* (handlers) {
    const events = yield* Events
    return handlers.handleAll({ list: ({ query }) => events.list(query) })
  })
)
