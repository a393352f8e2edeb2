/** The names of all event types, `noun.past_tense`. A webhook endpoint lists single types or `noun.*`. */

const changes = <const N extends string>(noun: N) => [`${noun}.created`, `${noun}.updated`, `${noun}.deleted`] as const

export const eventTypes = [
  ...changes("product"),
  ...changes("policy"),
  ...changes("feature"),
  ...changes("customer"),
  "customer.erased",
  "product_version.created",
  "product_version.deleted",
  "order.created",
  "order.updated",
  "subscription.created",
  "subscription.updated",
  ...changes("custom_field"),
  "custom_field_value.set",
  "custom_field_value.cleared",
  "api_key.created",
  "api_key.updated",
  "api_key.revoked",
  "license.created",
  "license.updated",
  "license.suspended",
  "license.reinstated",
  "license.revoked",
  "license.renewed",
  "license.maintenance_renewed",
  "license.maintenance_expiring",
  "license.maintenance_expired",
  "license.transferred",
  "license.policy_changed",
  "license.key_rotated",
  "license.feature_assigned",
  "license.feature_removed",
  "license.feature_expired",
  "license.usage_reset",
  "license.activated",
  "license.deactivated",
  "license.offline_issued",
  "license.grace_period_started",
  "license.expired",
  "license.expiring",
  "license.activation_limit_reached",
  "usage.consumed",
  "usage.reversed",
  "usage.period_closed",
  "usage.overage_started",
  "usage.threshold_reached",
  "usage.exhausted",
  "lease.checked_out",
  "lease.checked_in",
  "lease.expired",
  "device.reset",
  "device.blacklisted",
  "device.unblacklisted",
  "device.expired",
  "webhook.created",
  "webhook.updated",
  "webhook.secret_rotated",
  "webhook.deleted",
  "webhook.disabled",
  "report_export.created",
  "bulk_job.created",
  "bulk_job.completed",
  "bulk_job.canceled",
  "bulk_job.failed",
  "portal.signed_in",
  "portal.key_requested",
  "signing_key.rotated"
] as const

export type EventType = (typeof eventTypes)[number]

export type ResourceType =
  | "product"
  | "policy"
  | "feature"
  | "customer"
  | "product_version"
  | "order"
  | "subscription"
  | "custom_field"
  | "api_key"
  | "license"
  | "device"
  | "lease"
  | "webhook"
  | "report_export"
  | "bulk_job"
  | "portal_session"
  | "signing_key"
