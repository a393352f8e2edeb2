import { Effect } from "effect"
import { Api } from "../../Api.ts"
import { operationGroup } from "../../access/requests/OperationGroup.ts"
import { MailStatus } from "../../ledger/mail/MailStatus.ts"
import { DeliveryHealth } from "../../ledger/webhooks/DeliveryHealth.ts"
import { Nodes } from "./Nodes.ts"
import { Operations } from "./Operations.ts"

export const OpsHttp = operationGroup(
  Api,
  "ops",
  Effect.fn(function* (handlers) {
    const operations = yield* Operations
    const deliveries = yield* DeliveryHealth
    const mail = yield* MailStatus
    const nodes = yield* Nodes
    return handlers.handleAll({
      webhookHealth: () => deliveries.report,
      mailHealth: () => mail.report,
      summary: () => operations.summary,
      nodes: () => nodes.list,
      errors: () => operations.errors
    })
  })
)
