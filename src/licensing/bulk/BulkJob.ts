/** A change of many licenses at once: the job, its request, and the licenses that it could not change. */
import { Schema } from "effect"
import { Count } from "../../contract/api/Int64.ts"
import { Reference, Text } from "../../contract/api/Text.ts"
import { Instant, Timestamp } from "../../contract/api/Timestamp.ts"
import { ActorName } from "../../ledger/events/Event.ts"
import { LicensePolicyChange, LicenseTransfer, LicenseUpdate } from "../model/License.ts"
import { limitNames } from "../model/Limits.ts"
import { exactlyOne, LicenseRenew } from "../model/RenewalRequests.ts"

/** Licenses of one job. */
export const licensesMax = 1_000_000
/** Licenses that one request can name. */
const namedMax = 5_000

export const parameters = Schema.Struct({
  expires_at: LicenseRenew.fields.expires_at,
  extend_by_days: LicenseRenew.fields.extend_by_days,
  policy_id: Schema.optionalKey(LicensePolicyChange.fields.policy_id),
  keep_features: LicensePolicyChange.fields.keep_features,
  max_activations: LicenseUpdate.fields.max_activations,
  max_container_instances: LicenseUpdate.fields.max_container_instances,
  max_floating_users: LicenseUpdate.fields.max_floating_users,
  max_transfers: LicenseUpdate.fields.max_transfers,
  offline_grace_days: LicenseUpdate.fields.offline_grace_days,
  self_deactivations_per_month: LicenseUpdate.fields.self_deactivations_per_month,
  metadata: LicenseUpdate.fields.metadata,
  release_borrowed: LicenseTransfer.fields.release_borrowed
}).annotate({
  description:
    "Of renew: exactly one of expires_at and extend_by_days. Of policy: policy_id, and perhaps expires_at and keep_features. Of update: limits and metadata. Of reset_devices: perhaps release_borrowed. The other actions take none."
})
export type BulkParameters = typeof parameters.Type

/** The parameters of each action. */
const parametersOf = {
  suspend: [],
  reinstate: [],
  revoke: [],
  renew: ["expires_at", "extend_by_days"],
  policy: ["policy_id", "expires_at", "keep_features"],
  apply_policy: [],
  update: [...limitNames, "metadata"],
  reset_devices: ["release_borrowed"]
} as const satisfies { readonly [action: string]: ReadonlyArray<keyof BulkParameters> }

export type BulkAction = keyof typeof parametersOf

export const BulkAction = Schema.Literals(Object.keys(parametersOf) as ReadonlyArray<BulkAction>).annotate({
  identifier: "BulkJobAction",
  description:
    "apply_policy gives each license the features that its policy has now; policy moves it to another one. The others are the operations on a single license of the same name."
})

interface Requested {
  readonly action: BulkAction
  readonly parameters?: BulkParameters
}

const fault = (name: string, issue: string) => ({ path: ["parameters", name], issue })

/** The fault of a parameter that the action does not take. */
export const otherParameter = (takes: ReadonlyArray<string>, action: string, parameters: object) => {
  const other = Object.keys(parameters).find((name) => !takes.includes(name))
  const expected = takes.length === 0 ? "no parameters" : `only ${takes.join(", ")}`
  return other === undefined ? undefined : fault(other, `Expected ${expected} of ${action}`)
}

export const parameterFault = ({ action, parameters = {} }: Requested) => {
  const takes: ReadonlyArray<string> = parametersOf[action]
  const given = Object.keys(parameters)
  const other = otherParameter(takes, action, parameters)
  if (other !== undefined) return other
  if (action === "renew" && given.length !== 1)
    return fault("extend_by_days", "Expected exactly one of expires_at and extend_by_days")
  if (action === "policy" && parameters.policy_id === undefined) return fault("policy_id", "Expected the policy")
  if (action === "update" && given.length === 0)
    return fault("metadata", `Expected at least one of ${takes.join(", ")}`)
  return undefined
}

/** An empty q is no filter of the list, and a blank one is found in every license: a space stands between name and email. */
const isEveryLicense = (filter: { readonly [name: string]: string } | undefined): boolean =>
  filter !== undefined && Object.entries(filter).every(([name, value]) => name === "q" && value.trim() === "")

const Filter = Schema.Record(Schema.String, Schema.String).annotate({
  description: "The query parameters of GET /licenses, without those of pages and sorting."
})

export const BulkJobCreate = Schema.Struct({
  action: BulkAction,
  filter: Schema.optionalKey(Filter),
  license_ids: Schema.optionalKey(
    Schema.Array(Reference).check(Schema.isMinLength(1), Schema.isMaxLength(namedMax)).annotate({
      description: "The licenses instead of a filter. One that is given twice is changed once."
    })
  ),
  parameters: Schema.optionalKey(parameters),
  dry_run: Schema.optionalKey(
    Schema.Boolean.annotate({ description: "True decides and counts without a change.", default: false })
  ),
  reason: Schema.optionalKey(Text(500).annotate({ description: "Why, in the job and in its event bulk_job.created." })),
  confirm_all: Schema.optionalKey(
    Schema.Boolean.annotate({
      description: "Must be true with an empty filter, or one of a blank q: it matches every license."
    })
  )
})
  .annotate({ description: "Exactly one of filter and license_ids." })
  .check(
    exactlyOne("filter", "license_ids"),
    Schema.makeFilter(({ confirm_all, filter }) =>
      isEveryLicense(filter) && confirm_all !== true
        ? { path: ["confirm_all"], issue: "Expected true, because the filter matches every license" }
        : undefined
    ),
    Schema.makeFilter(parameterFault)
  )
  .annotate({ identifier: "BulkJobCreateRequest" })

const BulkJobStatus = Schema.Literals(["pending", "running", "completed", "canceled", "failed"])

export const BulkJob = Schema.Struct({
  id: Schema.String,
  action: BulkAction,
  filter: Schema.optionalKey(
    Filter.annotate({
      description: "As requested, but the texts of q and metadata[…] are not kept: they may name a person."
    })
  ),
  parameters,
  dry_run: Schema.Boolean.annotate({ description: "Whether it only decides and counts, without a change." }),
  reason: Schema.optionalKey(Schema.String.annotate({ description: "Why, as requested." })),
  status: BulkJobStatus,
  matched: Count.annotate({ description: "The licenses that matched when the job was created." }),
  changed: Count.annotate({ description: "Licenses that were changed, or would be in a dry run." }),
  unchanged: Count.annotate({ description: "Licenses that were as requested already." }),
  refused: Count.annotate({ description: "Licenses that cannot be changed so; each is a refusal of the job." }),
  failure: Schema.optionalKey(Schema.String.annotate({ description: "Why the job has failed." })),
  created_by: Schema.String.annotate({ description: "The id of the API key or OIDC subject that requested it." }),
  created_by_name: ActorName,
  product_ids: Schema.optionalKey(
    Schema.Array(Schema.String).annotate({
      description: "The products of the token that created it; absent: all. Licenses of others are not reached."
    })
  ),
  created_at: Timestamp,
  updated_at: Timestamp,
  ended_at: Schema.optionalKey(Instant("When it was completed, canceled or failed."))
}).annotate({
  identifier: "BulkJob",
  description: "A change of many licenses. What remains of matched is still to be done, or was left when the job ended."
})
export type BulkJob = typeof BulkJob.Type

export const bulkJobSorts = { created_at: "instant" } as const

export const bulkJobFilters = {
  action: Schema.optionalKey(BulkAction),
  status: Schema.optionalKey(BulkJobStatus)
}
const JobFilter = Schema.Struct(bulkJobFilters)
export type BulkJobFilter = typeof JobFilter.Type

export const BulkRefusal = Schema.Struct({
  license_id: Schema.String,
  code: Schema.String.annotate({ description: "The error code of the same change of this license alone." }),
  message: Schema.String.annotate({ description: "Why, in a sentence." }),
  created_at: Timestamp
}).annotate({ identifier: "BulkJobRefusal", description: "A license that a job could not change, and why." })
export type BulkRefusal = typeof BulkRefusal.Type
