/** The public operations: the signing keys that answers are verified with, and the probes, which live outside of /api/v1. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { Data, Paged } from "../api/Envelope.ts"
import { failures } from "../api/Failure.ts"
import { PublicKey } from "../signing/PublicKey.ts"

const described = (id: string, summary: string, description: string) =>
  OpenApi.annotations({ identifier: id, summary, description })

export class SystemApi extends HttpApiGroup.make("system")
  .add(
    HttpApiEndpoint.get("listPublicKeys", "/system/public-keys", { success: Paged(PublicKey) }).annotateMerge(
      described(
        "listPublicKeys",
        "List the public signing keys",
        "All of them on one page: the active key first, then the retired ones, which stay published for ever."
      )
    )
  )
  .annotate(OpenApi.Description, "Signing keys and probes. Public.") {}

/** A service that runs. */
const Liveness = Schema.Struct({ status: Schema.Literal("ok") }).annotate({ identifier: "Liveness" })

const check = Schema.Literal("ok")

/** A service that can do its work; with any other outcome the probe answers 503. */
export const Readiness = Schema.Struct({
  status: Schema.Literal("ready"),
  checks: Schema.Struct({ database: check, migrations: check, signing_key: check, workers: check, shutdown: check })
}).annotate({ identifier: "Readiness" })
export type Readiness = typeof Readiness.Type

export class ProbesApi extends HttpApiGroup.make("probes")
  .add(
    HttpApiEndpoint.get("health", "/health", { success: Data(Liveness) }).annotateMerge(
      described(
        "getHealth",
        "Tell that the service runs",
        "The liveness alias for hosted use. Looks at nothing, not even the database."
      )
    ),
    HttpApiEndpoint.get("healthz", "/healthz", { success: Data(Liveness) }).annotateMerge(
      described(
        "getLiveness",
        "Tell that the service runs",
        "The liveness probe. Looks at nothing, not even the database."
      )
    ),
    HttpApiEndpoint.get("readyz", "/readyz", { success: Data(Readiness), error: failures("NOT_READY") }).annotateMerge(
      described(
        "getReadiness",
        "Tell whether the service can do its work",
        "The readiness probe: database, migrations, signing key, that no worker is dead, and that the service is not " +
          "stopping. Nothing listens before the service has started. No liveness probe: a restart heals none of these. The " +
          "detail of a 503 names the checks that fail."
      )
    ),
    HttpApiEndpoint.get("metrics", "/metrics", {
      success: Schema.String.pipe(HttpApiSchema.asText({ contentType: "text/plain; version=0.0.4; charset=utf-8" })),
      error: failures("TOKEN_MISSING", "TOKEN_MALFORMED", "TOKEN_INVALID")
    }).annotateMerge(
      described(
        "getMetrics",
        "Read the metrics",
        "Prometheus text, of the node that answers. Open, unless the operator has set a token for it: then " +
          "`Authorization: Bearer <METRICS_TOKEN>` is wanted. API tokens are not taken."
      )
    )
  )
  .annotate(OpenApi.Title, "system") {}
