/** What an operator sees of the service. The shapes are whole: a status without licenses is there with a zero. */
import { Schema } from "effect"
import { statuses } from "../api/ErrorCode.ts"
import { Count } from "../api/Int64.ts"
import { Timestamp } from "../api/Timestamp.ts"
import { DeviceStatus } from "../licenses/model/Device.ts"
import { LicenseStatus } from "../licenses/model/License.ts"

const byStatus = <S extends string>(...names: ReadonlyArray<S>) =>
  Schema.Struct({
    total: Count,
    ...(Object.fromEntries(names.map((name) => [name, Count])) as { readonly [K in S]: typeof Count })
  })

const WorkerState = Schema.Struct({
  name: Schema.String,
  status: Schema.Literals(["ok", "failing", "dead"]).annotate({
    description: "dead: it has ended or its pass is stuck, and no pass has succeeded since."
  }),
  started_at: Timestamp,
  last_success_at: Schema.optionalKey(Timestamp),
  last_failure_at: Schema.optionalKey(Timestamp),
  failures: Count.annotate({ description: "Passes that failed since the last one that succeeded." }),
  passes: Count,
  deaths: Count.annotate({ description: "How often it has ended and was raised again." })
}).annotate({ identifier: "WorkerState" })

export const OpsSummary = Schema.Struct({
  licenses: byStatus(...LicenseStatus.literals).annotate({
    description:
      "By what the clock says. Licenses, devices, products and customers are counted once a minute, by each node."
  }),
  devices: byStatus(...DeviceStatus.literals),
  leases: Schema.Struct({ live: Count }),
  products: Count,
  customers: Count,
  event_sequence: Count.annotate({ description: "Sequence number of the newest event." }),
  workers: Schema.Array(WorkerState).annotate({ description: "Those of the node that answers." })
}).annotate({ identifier: "OpsSummary" })
export type OpsSummary = typeof OpsSummary.Type

const codes = Object.keys(statuses) as ReadonlyArray<keyof typeof statuses>

export const OpsErrors = Schema.Struct({
  since: Timestamp.annotate({ description: "When the node that answers began to count." }),
  recent: Schema.Array(
    Schema.Struct({
      request_id: Schema.String,
      occurred_at: Timestamp,
      method: Schema.String,
      route: Schema.optionalKey(Schema.String),
      code: Schema.Literals(codes)
    }).annotate({ identifier: "OpsError" })
  ).annotate({ description: "The last requests that failed inside the service, the newest first; the log knows why." }),
  counts: Schema.Record(Schema.String, Count).annotate({ description: "Refused requests by error code." })
}).annotate({ identifier: "OpsErrors" })
export type OpsErrors = typeof OpsErrors.Type
