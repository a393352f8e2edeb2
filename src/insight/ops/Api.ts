import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { Idempotency } from "../../access/idempotency/Idempotency.ts"
import { ManagementAuthorization, operation } from "../../access/Management.ts"
import { Data } from "../../contract/api/Envelope.ts"
import { Decoding } from "../../contract/api/Requests.ts"
import { MailHealth } from "../../ledger/mail/MailHealth.ts"
import { WebhookHealth } from "../../ledger/webhooks/WebhookHealth.ts"
import { OpsErrors, OpsNodes, OpsSummary } from "./Ops.ts"

export class OpsApi extends HttpApiGroup.make("ops")
  .add(
    HttpApiEndpoint.get("webhookHealth", "/ops/webhook-health", { success: Data(WebhookHealth) }).annotateMerge(
      operation({
        id: "getWebhookHealth",
        summary: "Get the health of webhook deliveries",
        description: "For each endpoint: its state, pending and failed deliveries, and the last success and failure.",
        scopes: ["ops:read"]
      })
    ),
    HttpApiEndpoint.get("mailHealth", "/ops/mail-health", { success: Data(MailHealth) }).annotateMerge(
      operation({
        id: "getMailHealth",
        summary: "Get the health of mail",
        description:
          "Whether mail works: pending mails, those sent and given up within 24 hours, and why the last attempt failed.",
        scopes: ["ops:read"]
      })
    ),
    HttpApiEndpoint.get("summary", "/ops/summary", { success: Data(OpsSummary) }).annotateMerge(
      operation({
        id: "getOpsSummary",
        summary: "Summarize records and worker statuses",
        description: "The number of records of each kind, and the state of each worker on the node that responds.",
        scopes: ["ops:read"]
      })
    ),
    HttpApiEndpoint.get("nodes", "/ops/nodes", { success: Data(OpsNodes) }).annotateMerge(
      operation({
        id: "getOpsNodes",
        summary: "List the nodes",
        description:
          "The nodes that use the database: version, start, last sign of life, and what they own of the licenses. Each writes a sign " +
          "of life every five seconds.",
        scopes: ["ops:read"]
      })
    ),
    HttpApiEndpoint.get("errors", "/ops/errors", { success: Data(OpsErrors) }).annotateMerge(
      operation({
        id: "getOpsErrors",
        summary: "List recent errors",
        description:
          "For the node that responds, since its start: refused requests by code, and the last requests that failed inside " +
          "the service. The log has the cause, under the request id.",
        scopes: ["ops:read"]
      })
    )
  )
  .middleware(Decoding)
  .middleware(Idempotency)
  .middleware(ManagementAuthorization)
  .annotate(OpenApi.Description, "The operator's view.") {}
