/** A policy: the rules that a license follows. An edit applies to all of its licenses at once. */
import { Schema, Struct } from "effect"
import { Int32 } from "../../contract/api/Int64.ts"
import { Metadata } from "../../contract/api/Metadata.ts"
import { Code, isMinCharacters, Name, Text } from "../../contract/api/Text.ts"
import { Timestamp } from "../../contract/api/Timestamp.ts"

export const LicenseType = Schema.Literals([
  "perpetual",
  "time_limited",
  "subscription",
  "trial",
  "consumption"
]).annotate({
  identifier: "LicenseType",
  description: "How long licenses last, and whether they can be renewed."
})
export type LicenseType = typeof LicenseType.Type

/** At most a hundred years, so that sums of instants stay within the calendar. */
const Days = Int32(0, 36_500)
const TermDays = Int32(1, 36_500)
const Minutes = Int32(1, 525_600)

const DurationStart = Schema.Literals(["creation", "first_activation"]).annotate({ identifier: "DurationStart" })

const rules = {
  max_activations: Int32(0).annotate({ description: "Devices that may be active at once; 0 = unlimited.", default: 1 }),
  floating_timeout_minutes: Minutes.annotate({
    description: "Life of a floating lease without a heartbeat.",
    default: 30
  }),
  grace_period_days: Days.annotate({ description: "Days of access after expiry.", default: 0 }),
  validation_interval_minutes: Minutes.annotate({ description: "How often a client should validate.", default: 1440 }),
  require_heartbeat: Schema.Boolean.annotate({
    description: "Whether a device that stops validating expires.",
    default: false
  }),
  allow_offline_activation: Schema.Boolean.annotate({ default: true }),
  offline_grace_days: Days.annotate({ description: "Days that an offline envelope is valid.", default: 7 }),
  allow_vm: Schema.Boolean.annotate({ default: true }),
  allow_container: Schema.Boolean.annotate({ default: true }),
  max_transfers: Int32(0).annotate({ description: "Changes of ownership; 0 = unlimited.", default: 0 }),
  allow_transfer: Schema.Boolean.annotate({ description: "False = licenses cannot change owners.", default: true }),
  self_deactivations_per_month: Int32(0, 100).annotate({
    description: "Devices that the holder of the key may deactivate by their ids in any 30 days; 0 = none.",
    default: 3
  }),
  hold_offline_slots: Schema.Boolean.annotate({
    description: "Whether the slot of a device that deactivates itself stays taken until its offline envelope expires.",
    default: false
  }),
  show_licensee: Schema.Boolean.annotate({
    description: "Whether signed payloads have the license's customer_name, as licensee.name.",
    default: false
  }),
  show_metadata: Schema.Array(Text(255).check(isMinCharacters(1)))
    .check(Schema.isMaxLength(16), Schema.isUnique({ expected: "each name once" }))
    .annotate({ description: "The members of the license's metadata that signed payloads have.", default: [] }),
  duration_starts: DurationStart.annotate({
    description:
      "When the days of duration_days and maintenance_days begin. The first activation may also be a floating checkout.",
    default: "creation"
  }),
  reminder_days: Schema.Array(Int32(1, 365))
    .check(Schema.isMaxLength(5), Schema.isUnique({ expected: "each number once" }))
    .annotate({
      description:
        "The days before a license's expiry, or the end of its maintenance, at which that is announced by an event; [] = never.",
      default: [7, 3, 1]
    }),
  mail_reminders: Schema.Boolean.annotate({
    description: "Whether that is also mailed to the license's customer_email, or else to its customer's email.",
    default: false
  }),
  public_trial: Schema.Boolean.annotate({
    description:
      "Whether applications may start trials of the policy without a license key. Only for the type trial, with duration_days.",
    default: false
  })
}

const optional = {
  max_floating_users: Int32(0).annotate({ description: "Floating seats; absent or 0 = floating is off." }),
  max_container_instances: Int32(0).annotate({
    description:
      "Container instances that may be active at once; 0 = unlimited; absent = they count against max_activations."
  }),
  borrow_days_max: Days.annotate({
    description: "Days for which a floating seat may be borrowed; absent or 0 = seats cannot be borrowed."
  }),
  maintenance_days: TermDays.annotate({
    description:
      "Days of maintenance of a perpetual license that is created without maintenance_expires_at; absent = it has no such end."
  }),
  duration_days: TermDays.annotate({
    description: "Days after which a license expires that is created without expires_at; absent = it has no such term."
  })
}

export const Policy = Schema.Struct({
  id: Schema.String,
  product_id: Schema.String,
  name: Schema.String,
  code: Schema.String,
  license_type: LicenseType,
  ...rules,
  ...Struct.map(optional, Schema.optionalKey),
  metadata: Metadata,
  created_at: Timestamp,
  updated_at: Timestamp
}).annotate({ identifier: "Policy", description: "The rules of the licenses that are issued with it." })
export type Policy = typeof Policy.Type

const given = Struct.map({ ...rules, ...optional }, Schema.optionalKey)

export const policyFilters = {
  code: Schema.optionalKey(Schema.String),
  license_type: Schema.optionalKey(LicenseType),
  feature_id: Schema.optionalKey(Schema.String.annotate({ description: "Only policies that this feature comes with." }))
}

export const policySorts = { created_at: "instant", code: "text" } as const

export const PolicyCreate = Schema.Struct({
  name: Name,
  code: Code,
  license_type: LicenseType,
  ...given,
  metadata: Schema.optionalKey(Metadata)
}).annotate({ identifier: "PolicyCreateRequest" })

export const PolicyUpdate = Schema.Struct({
  name: Schema.optionalKey(Name),
  code: Schema.optionalKey(Code),
  license_type: Schema.optionalKey(LicenseType),
  ...given,
  max_floating_users: Schema.optionalKey(
    Schema.NullOr(optional.max_floating_users).annotate({
      description: "Floating seats that may be in use at once; null: no floating seats. Absent: unchanged."
    })
  ),
  max_container_instances: Schema.optionalKey(
    Schema.NullOr(optional.max_container_instances).annotate({
      description:
        "Container instances that may be active at once; null: they count against max_activations. Absent: unchanged."
    })
  ),
  borrow_days_max: Schema.optionalKey(
    Schema.NullOr(optional.borrow_days_max).annotate({
      description: "Days for which a floating seat may be borrowed; null: seats cannot be borrowed. Absent: unchanged."
    })
  ),
  duration_days: Schema.optionalKey(
    Schema.NullOr(optional.duration_days).annotate({
      description:
        "Days after which a license expires that is created without expires_at; null removes the term. Not for perpetual licenses."
    })
  ),
  maintenance_days: Schema.optionalKey(
    Schema.NullOr(optional.maintenance_days).annotate({
      description:
        "Days of maintenance of a license that is created without maintenance_expires_at; null removes them. Only for perpetual licenses."
    })
  ),
  metadata: Schema.optionalKey(Metadata)
}).annotate({ identifier: "PolicyUpdateRequest" })

export const licenseLimits = {
  max_activations: rules.max_activations,
  max_container_instances: optional.max_container_instances,
  max_floating_users: optional.max_floating_users,
  max_transfers: rules.max_transfers,
  offline_grace_days: rules.offline_grace_days,
  self_deactivations_per_month: rules.self_deactivations_per_month
}

/** What the schemas say to be the default of each rule. */
export const policyDefaults = Object.fromEntries(
  Object.entries(rules).map(([name, rule]) => [name, Schema.resolveAnnotations(rule)?.default])
) as { readonly [K in keyof typeof rules]: (typeof rules)[K]["Type"] }

/**
 * Fields that the signed payloads depend on, next_check_at included: an edit raises the entitlement version of every
 * license.
 */
export const payloadFields = [
  "license_type",
  "grace_period_days",
  "validation_interval_minutes",
  "require_heartbeat",
  "show_licensee",
  "show_metadata"
] as const

/** The tolerance after the validation interval before a heartbeat is overdue. */
export const slackMillis = 30_000

/** When a heartbeat is due whose interval begins at `from`. */
export const heartbeatDueAt = (
  { validation_interval_minutes }: Pick<Policy, "validation_interval_minutes">,
  from: number
): number => from + validation_interval_minutes * 60_000 + slackMillis
