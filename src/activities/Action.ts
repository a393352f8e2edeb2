/**
 * What an activity is called and how its call was answered: one vocabulary, `noun.verb`, for what was done and what was refused.
 * Tables, so that an event that is added without its action does not compile.
 */
import type { EventType } from "../events/EventType.ts"

/** What an event stands for in the feed. */
interface Act {
  readonly action: string
  /** Of the answer to the call that recorded it; absent where no call ever does. */
  readonly status?: number
}

const changes = <const N extends string>(noun: N) =>
  ({
    [`${noun}.created`]: { action: `${noun}.create`, status: 201 },
    [`${noun}.updated`]: { action: `${noun}.update`, status: 200 }
  }) as { readonly [K in `${N}.created` | `${N}.updated`]: Act }

const done = (action: string, status = 200): Act => ({ action, status })

/** What the event of a refused activation stands for; the refusal itself is not written a second time. */
const refusedActivation = "license.activation_limit_reached"

const acts: { readonly [K in EventType]: Act } = {
  ...changes("product"),
  "product.deleted": done("product.delete", 204),
  ...changes("policy"),
  "policy.deleted": done("policy.delete", 204),
  ...changes("feature"),
  "feature.deleted": done("feature.delete", 204),
  ...changes("customer"),
  "customer.deleted": done("customer.delete", 204),
  "product_version.created": done("product_version.create", 201),
  "product_version.deleted": done("product_version.delete", 204),
  ...changes("order"),
  ...changes("subscription"),
  ...changes("custom_field"),
  "custom_field.deleted": done("custom_field.delete", 204),
  "custom_field_value.set": done("custom_field_value.set"),
  "custom_field_value.cleared": done("custom_field_value.clear", 204),
  ...changes("api_key"),
  "api_key.revoked": done("api_key.revoke", 204),
  ...changes("license"),
  "license.suspended": done("license.suspend"),
  "license.reinstated": done("license.reinstate"),
  "license.revoked": done("license.revoke"),
  "license.renewed": done("license.renew"),
  "license.transferred": done("license.transfer"),
  "license.key_rotated": done("license.rotate_key"),
  "license.feature_assigned": done("license.assign_feature"),
  "license.feature_removed": done("license.remove_feature", 204),
  "license.usage_reset": done("license.reset_usage"),
  "license.activated": done("license.activate"),
  "license.deactivated": done("license.deactivate"),
  "license.offline_issued": done("license.issue_offline"),
  "license.grace_period_started": { action: "license.start_grace_period" },
  "license.expired": { action: "license.expire" },
  "license.expiring": { action: "license.announce_expiry" },
  [refusedActivation]: done("license.activate", 403),
  "usage.consumed": done("usage.consume"),
  "usage.threshold_reached": done("usage.reach_threshold"),
  "usage.exhausted": done("usage.exhaust"),
  "lease.checked_out": done("lease.check_out"),
  "lease.checked_in": done("lease.check_in"),
  "lease.expired": { action: "lease.expire" },
  "device.reset": done("device.reset"),
  "device.blacklisted": done("device.blacklist"),
  "device.unblacklisted": done("device.unblacklist"),
  "device.expired": { action: "device.expire" },
  ...changes("webhook"),
  "webhook.secret_rotated": done("webhook.rotate_secret"),
  "webhook.deleted": done("webhook.delete", 204),
  "webhook.disabled": { action: "webhook.disable" },
  "report_export.created": done("report_export.create", 201),
  "signing_key.rotated": { action: "signing_key.rotate" }
}

/** What a runtime operation is called where it is refused. */
export const runtimeActions: { readonly [operation: string]: string } = {
  activate: "license.activate",
  validate: "license.validate",
  check: "license.check",
  consume: "usage.consume",
  deactivate: "license.deactivate",
  offline: "license.issue_offline",
  checkout: "lease.check_out",
  heartbeat: "lease.heartbeat",
  checkin: "lease.check_in"
}

/** Every action that the feed knows. */
export const actions: ReadonlyArray<string> = [
  ...new Set([...Object.values(acts).map(({ action }) => action), ...Object.values(runtimeActions)])
].sort()

export const resultClasses = ["succeeded", "refused"] as const
export type ResultClass = (typeof resultClasses)[number]

export const resultOf = (eventType: EventType): ResultClass =>
  eventType === refusedActivation ? "refused" : "succeeded"

/** What an event stands for. What the system does by itself answers nobody. */
export const actOf = (eventType: EventType, actorType: string): Act => {
  const { action, ...answered } = acts[eventType]
  return actorType === "system" ? { action } : { action, ...answered }
}

interface Wanted {
  readonly action?: string | undefined
  readonly result_class?: ResultClass | undefined
  readonly status_code?: number | undefined
}

/** The events that a filter leaves over, or undefined where it leaves all. */
export const wantedTypes = ({ action, result_class, status_code }: Wanted): ReadonlyArray<EventType> | undefined =>
  action === undefined && result_class === undefined && status_code === undefined
    ? undefined
    : (Object.keys(acts) as ReadonlyArray<EventType>).filter(
        (type) =>
          (action === undefined || acts[type].action === action) &&
          (result_class === undefined || resultOf(type) === result_class) &&
          (status_code === undefined || acts[type].status === status_code)
      )
