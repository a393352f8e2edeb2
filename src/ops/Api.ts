/** What operators ask of the service. */
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { Data } from "../api/Envelope.ts"
import { Decoding } from "../api/Requests.ts"
import { Idempotency } from "../auth/idempotency/Idempotency.ts"
import { ManagementAuthorization, operation } from "../auth/Management.ts"
import { WebhookHealth } from "../webhooks/WebhookHealth.ts"
import { OpsErrors, OpsSummary } from "./Ops.ts"

export class OpsApi extends HttpApiGroup.make("ops")
  .add(
    HttpApiEndpoint.get("webhookHealth", "/ops/webhook-health", { success: Data(WebhookHealth) }).annotateMerge(
      operation({ id: "getWebhookHealth", summary: "Tell how webhook deliveries go", scopes: ["ops:read"] })
    ),
    HttpApiEndpoint.get("summary", "/ops/summary", { success: Data(OpsSummary) }).annotateMerge(
      operation({
        id: "getOpsSummary",
        summary: "Summarize what there is and how the workers stand",
        scopes: ["ops:read"]
      })
    ),
    HttpApiEndpoint.get("errors", "/ops/errors", { success: Data(OpsErrors) }).annotateMerge(
      operation({
        id: "getOpsErrors",
        summary: "List what has gone wrong lately",
        description:
          "Of the node that answers, since it started: refused requests by code, and the last requests that failed inside " +
          "the service. The log tells why, under the request id.",
        scopes: ["ops:read"]
      })
    )
  )
  .middleware(Decoding)
  .middleware(Idempotency)
  .middleware(ManagementAuthorization)
  .annotate(OpenApi.Description, "The operator's view.") {}
