/** The shape and the parameters of the overview report. */
import { Schema } from "effect"
import { Count } from "../../../contract/api/Int64.ts"
import { Instant, Timestamp } from "../../../contract/api/Timestamp.ts"
import { filterFields } from "./Filter.ts"
import { ReportPeriod } from "./Report.ts"

const { bucket, from, product_id, to, tz } = filterFields["usage-summary"]

export const overviewFields = { from, to, product_id, bucket, tz }
export type OverviewFilter = Schema.Struct.Type<typeof overviewFields>

const OverviewFigures = Schema.Struct({
  bucket_start: Timestamp,
  licenses_created: Count.annotate({ description: "Licenses that were created." }),
  licenses_expired: Count.annotate({
    description: "Licenses whose access ended, in the bucket in which that was recorded."
  }),
  maintenance_renewed: Count.annotate({ description: "Renewals of the maintenance of perpetual licenses." }),
  maintenance_expired: Count.annotate({ description: "Perpetual licenses whose maintenance ended." }),
  licenses_active: Schema.optionalKey(
    Count.annotate({
      description:
        "Licenses in the state active at the end of the bucket, or now. Absent if no count was made in the bucket."
    })
  ),
  licenses_expiring: Schema.optionalKey(
    Count.annotate({ description: "Those of them that expire within the 30 days that follow." })
  ),
  activations: Count.annotate({ description: "Activations of devices, those of returning ones included." }),
  seats_peak: Schema.optionalKey(
    Count.annotate({ description: "The most floating seats taken at once. Absent if no count was made in the bucket." })
  ),
  consumption: Schema.Array(
    Schema.Struct({
      feature_code: Schema.optionalKey(Schema.String),
      consumed: Count.annotate({ description: "The sum of the consumed amounts." }),
      consumptions: Count.annotate({ description: "The number of consumptions." })
    })
  ).annotate({ description: "By feature; features of several products with the same code are one." }),
  refusals: Schema.Record(Schema.String, Count).annotate({ description: "Refused runtime calls by error code." })
}).annotate({ identifier: "OverviewFigures" })
export type OverviewFigures = typeof OverviewFigures.Type

export const Overview = Schema.Struct({
  period: ReportPeriod,
  bucket: Schema.Literals(["1h", "1d"]),
  tz: Schema.String,
  product_id: Schema.optionalKey(Schema.String),
  counted_from: Schema.optionalKey(Instant("Since when active licenses and seats are counted.")),
  buckets: Schema.Array(OverviewFigures).annotate({ description: "All of the period, the earliest first." })
}).annotate({ identifier: "Overview", description: "Figures of a period, and their course." })
export type Overview = typeof Overview.Type
