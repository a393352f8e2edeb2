import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { Api } from "../../Api.ts"
import { DeliveryHealth } from "../../ledger/webhooks/DeliveryHealth.ts"
import { Operations } from "./Operations.ts"

export const OpsHttp = HttpApiBuilder.group(
  Api,
  "ops",
  Effect.fn(function* (handlers) {
    const operations = yield* Operations
    const deliveries = yield* DeliveryHealth
    return handlers.handleAll({
      webhookHealth: () => deliveries.report,
      summary: () => operations.summary,
      errors: () => operations.errors
    })
  })
)
