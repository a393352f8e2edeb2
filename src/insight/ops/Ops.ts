/** Operator schemas. All statuses are present, with 0 if no record has the status. */
import { Schema } from "effect"
import { statuses } from "../../contract/api/ErrorCode.ts"
import { Count } from "../../contract/api/Int64.ts"
import { Instant, Timestamp } from "../../contract/api/Timestamp.ts"
import { DeviceStatus } from "../../licensing/model/Device.ts"
import { LicenseStatus } from "../../licensing/model/License.ts"

const byStatus = <S extends string>(...names: ReadonlyArray<S>) =>
  Schema.Struct({
    total: Count,
    ...(Object.fromEntries(
      names.map((name) => [name, Count.annotate({ description: `The number with the status ${name}.` })])
    ) as { readonly [K in S]: typeof Count })
  })

const WorkerState = Schema.Struct({
  name: Schema.String.annotate({ description: "The name of the worker." }),
  status: Schema.Literals(["ok", "failing", "dead"]).annotate({
    description: "dead: it crashed or its pass is stuck, and no pass has succeeded since."
  }),
  started_at: Instant("When the worker started."),
  last_success_at: Schema.optionalKey(Instant("When a pass last succeeded.")),
  last_failure_at: Schema.optionalKey(Instant("When a pass last failed.")),
  failures: Count.annotate({ description: "Failed passes since the last success." }),
  passes: Count.annotate({ description: "The passes since the start of the node." }),
  deaths: Count.annotate({ description: "The number of crashes; the service restarts the worker after each." })
}).annotate({ identifier: "WorkerState" })

export const OpsSummary = Schema.Struct({
  licenses: byStatus(...LicenseStatus.literals).annotate({
    description:
      "By the current status, even if the stored status is not updated yet. Each node counts licenses, devices, products and customers once a minute."
  }),
  devices: byStatus(...DeviceStatus.literals).annotate({ description: "The devices by status." }),
  leases: Schema.Struct({ live: Count.annotate({ description: "The number of live leases." }) }).annotate({
    description: "The floating leases."
  }),
  products: Count.annotate({ description: "The number of products." }),
  customers: Count.annotate({ description: "The number of customers." }),
  event_sequence: Count.annotate({ description: "Sequence number of the newest event." }),
  workers: Schema.Array(WorkerState).annotate({ description: "The workers of the node that responds." })
}).annotate({
  identifier: "OpsSummary",
  description: "The number of records, and the state of the background workers."
})
export type OpsSummary = typeof OpsSummary.Type

const codes = Object.keys(statuses) as ReadonlyArray<keyof typeof statuses>

export const OpsErrors = Schema.Struct({
  since: Instant("The start of the counts: when the node that responds started."),
  recent: Schema.Array(
    Schema.Struct({
      request_id: Schema.String,
      occurred_at: Timestamp,
      method: Schema.String.annotate({ description: "The HTTP method." }),
      route: Schema.optionalKey(Schema.String.annotate({ description: "The path with placeholders." })),
      code: Schema.Literals(codes).annotate({ description: "The code of the refusal, or INTERNAL_ERROR." })
    }).annotate({ identifier: "OpsError" })
  ).annotate({ description: "The last requests that failed inside the service, newest first. The log has the cause." }),
  counts: Schema.Record(Schema.String, Count).annotate({ description: "Refused requests by error code." })
}).annotate({ identifier: "OpsErrors", description: "Recent errors of the service, and their counts." })
export type OpsErrors = typeof OpsErrors.Type

export const OpsNodes = Schema.Struct({
  nodes: Schema.Array(
    Schema.Struct({
      id: Schema.String.annotate({ description: "The node's id, new at each start." }),
      status: Schema.Literals(["running", "silent"]).annotate({
        description: "silent: no sign of life for 20 seconds. It crashed, is frozen, or cannot reach the database."
      }),
      epoch: Schema.String.annotate({ description: "The name under which the node commits changes now." }),
      version: Schema.String.annotate({ description: "The version of its software." }),
      started_at: Instant("When the node started."),
      last_heard_at: Instant("Its last sign of life."),
      address: Schema.optionalKey(
        Schema.String.annotate({ description: "Where other nodes reach it, if licenses have owners." })
      ),
      owned_shards: Schema.optionalKey(
        Count.annotate({ description: "How many of the 256 shards of licenses it owns, if licenses have owners." })
      )
    }).annotate({ identifier: "OpsNode" })
  ).annotate({ description: "The oldest first. One that stopped is not listed; one that crashed is, for an hour." })
}).annotate({ identifier: "OpsNodes", description: "The nodes that use the database." })
export type OpsNodes = typeof OpsNodes.Type
