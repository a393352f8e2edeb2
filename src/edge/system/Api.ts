/** The public operations: the signing keys for verifying responses, and the probes, which are outside of /api/v1. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { Data, Paged } from "../../contract/api/Envelope.ts"
import { failures } from "../../contract/api/Failure.ts"
import { Decoding } from "../../contract/api/Requests.ts"
import { PublicKey } from "../../platform/signing/PublicKey.ts"

const describe = (id: string, summary: string, description: string) =>
  OpenApi.annotations({ identifier: id, summary, description })

export class SystemApi extends HttpApiGroup.make("system")
  .add(
    HttpApiEndpoint.get("listPublicKeys", "/system/public-keys", { success: Paged(PublicKey) }).annotateMerge(
      describe(
        "listPublicKeys",
        "List the public signing keys",
        "All keys on one page: the active key first, then the retired keys, which stay published permanently."
      )
    )
  )
  .middleware(Decoding)
  .annotate(OpenApi.Description, "Signing keys and probes. Public.") {}

const Liveness = Schema.Struct({ status: Schema.Literal("ok").annotate({ description: "Always ok." }) }).annotate({
  identifier: "Liveness",
  description: "The process responds."
})

const check = (description: string) => Schema.Literal("ok").annotate({ description })

/** If a check fails, the probe responds with 503. */
export const Readiness = Schema.Struct({
  status: Schema.Literal("ready").annotate({ description: "ready, or the response is 503." }),
  checks: Schema.Struct({
    database: check("Whether the database can be reached and takes changes."),
    migrations: check("Whether the schema is the one that this service needs."),
    signing_key: check("Whether responses can be signed."),
    event_counter: check("Whether changes can be recorded: another transaction may hold the counter of events."),
    workers: check("Whether the background workers run."),
    shutdown: check("Whether the service is stopping.")
  }).annotate({ description: "The result of each check." })
}).annotate({ identifier: "Readiness", description: "Whether the service can take requests." })
export type Readiness = typeof Readiness.Type

export class ProbesApi extends HttpApiGroup.make("probes")
  .add(
    HttpApiEndpoint.get("health", "/health", { success: Data(Liveness) }).annotateMerge(
      describe(
        "getHealth",
        "Check that the service runs",
        "An alias of the liveness probe, for hosted use. It checks nothing else, not even the database."
      )
    ),
    HttpApiEndpoint.get("healthz", "/healthz", { success: Data(Liveness) }).annotateMerge(
      describe(
        "getLiveness",
        "Check that the service runs",
        "The liveness probe. It checks nothing else, not even the database."
      )
    ),
    HttpApiEndpoint.get("readyz", "/readyz", { success: Data(Readiness), error: failures("NOT_READY") }).annotateMerge(
      describe(
        "getReadiness",
        "Check that the service can handle requests",
        "The readiness probe. It checks the database, the migrations, the signing key, that no transaction blocks the event " +
          "counter, that no worker is dead, and that the service is neither starting nor stopping. Do not use it as a liveness probe: a restart repairs none of these. The " +
          "detail of a 503 lists the failed checks."
      )
    ),
    HttpApiEndpoint.get("metrics", "/metrics", {
      success: Schema.String.pipe(HttpApiSchema.asText({ contentType: "text/plain; version=0.0.4; charset=utf-8" })),
      error: failures("TOKEN_MISSING", "TOKEN_MALFORMED", "TOKEN_INVALID", "RATE_LIMITED")
    }).annotateMerge(
      describe(
        "getMetrics",
        "Read the metrics",
        "Prometheus text of the node that handles the request. Public, unless the operator has set a token for it: then " +
          "`Authorization: Bearer <METRICS_TOKEN>` is required. API tokens are not accepted."
      )
    )
  )
  .middleware(Decoding)
  .annotate(OpenApi.Title, "system") {}
