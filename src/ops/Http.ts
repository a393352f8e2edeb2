import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { Api } from "../Api.ts"
import { Operations } from "./Operations.ts"

export const OpsHttp = HttpApiBuilder.group(
  Api,
  "ops",
  Effect.fn(function* (handlers) {
    const operations = yield* Operations
    return handlers.handleAll({ summary: () => operations.summary, errors: () => operations.errors })
  })
)
