/**
 * The names of actions and the statuses of their calls. Succeeded and refused actions share one vocabulary, `noun.verb`. The
 * tables make the compiler refuse an event type without its action.
 */
import type { EventType } from "../../ledger/events/EventType.ts"

interface EventAction {
  readonly action: string
  /** The status of the call that recorded the event; absent for events that no call records. */
  readonly status?: number
}

const changes = <const N extends string>(noun: N) =>
  ({
    [`${noun}.created`]: { action: `${noun}.create`, status: 201 },
    [`${noun}.updated`]: { action: `${noun}.update`, status: 200 }
  }) as { readonly [K in `${N}.created` | `${N}.updated`]: EventAction }

const succeeded = (action: string, status = 200): EventAction => ({ action, status })

/** A refused activation has this event, so the refusal is not recorded again. */
const refusedActivation = "license.activation_limit_reached"

const eventActions: { readonly [K in EventType]: EventAction } = {
  ...changes("product"),
  "product.deleted": succeeded("product.delete", 204),
  ...changes("policy"),
  "policy.deleted": succeeded("policy.delete", 204),
  ...changes("feature"),
  "feature.deleted": succeeded("feature.delete", 204),
  ...changes("customer"),
  "customer.deleted": succeeded("customer.delete", 204),
  "customer.erased": succeeded("customer.erase"),
  "product_version.created": succeeded("product_version.create", 201),
  "product_version.deleted": succeeded("product_version.delete", 204),
  ...changes("order"),
  ...changes("subscription"),
  ...changes("custom_field"),
  "custom_field.deleted": succeeded("custom_field.delete", 204),
  "custom_field_value.set": succeeded("custom_field_value.set"),
  "custom_field_value.cleared": succeeded("custom_field_value.clear", 204),
  ...changes("api_key"),
  "api_key.revoked": succeeded("api_key.revoke", 204),
  ...changes("license"),
  "license.suspended": succeeded("license.suspend"),
  "license.reinstated": succeeded("license.reinstate"),
  "license.revoked": succeeded("license.revoke"),
  "license.renewed": succeeded("license.renew"),
  "license.maintenance_renewed": succeeded("license.renew_maintenance"),
  "license.maintenance_expiring": { action: "license.announce_maintenance_end" },
  "license.maintenance_expired": { action: "license.end_maintenance" },
  "license.transferred": succeeded("license.transfer"),
  "license.policy_changed": succeeded("license.change_policy"),
  "license.key_rotated": succeeded("license.rotate_key"),
  "license.feature_assigned": succeeded("license.assign_feature"),
  "license.feature_removed": succeeded("license.remove_feature", 204),
  "license.usage_reset": succeeded("license.reset_usage"),
  "license.activated": succeeded("license.activate"),
  "license.deactivated": succeeded("license.deactivate"),
  "license.offline_issued": succeeded("license.issue_offline"),
  "license.grace_period_started": { action: "license.start_grace_period" },
  "license.expired": { action: "license.expire" },
  "license.feature_expired": { action: "license.expire_feature" },
  "license.expiring": { action: "license.announce_expiry" },
  [refusedActivation]: succeeded("license.activate", 403),
  "usage.consumed": succeeded("usage.consume"),
  "usage.reversed": succeeded("usage.reverse"),
  "usage.period_closed": succeeded("usage.close_period"),
  "usage.overage_started": succeeded("usage.start_overage"),
  "usage.threshold_reached": succeeded("usage.reach_threshold"),
  "usage.exhausted": succeeded("usage.exhaust"),
  "lease.checked_out": succeeded("lease.check_out"),
  "lease.checked_in": succeeded("lease.check_in"),
  "lease.expired": { action: "lease.expire" },
  "device.reset": succeeded("device.reset"),
  "device.blacklisted": succeeded("device.blacklist"),
  "device.unblacklisted": succeeded("device.unblacklist"),
  "device.expired": { action: "device.expire" },
  ...changes("webhook"),
  "webhook.secret_rotated": succeeded("webhook.rotate_secret"),
  "webhook.deleted": succeeded("webhook.delete", 204),
  "webhook.disabled": { action: "webhook.disable" },
  "report_export.created": succeeded("report_export.create", 201),
  "bulk_job.created": succeeded("bulk_job.create", 202),
  "bulk_job.completed": { action: "bulk_job.complete" },
  "bulk_job.canceled": succeeded("bulk_job.cancel"),
  "bulk_job.failed": { action: "bulk_job.fail" },
  "portal.signed_in": succeeded("portal.sign_in"),
  "portal.key_requested": succeeded("portal.request_key", 204),
  "signing_key.rotated": { action: "signing_key.rotate" }
}

export const runtimeActions: { readonly [operation: string]: string } = {
  activate: "license.activate",
  validate: "license.validate",
  check: "license.check",
  consume: "usage.consume",
  deactivate: "license.deactivate",
  listOwnDevices: "license.list_devices",
  deactivateOwnDevice: "license.deactivate_device",
  offline: "license.issue_offline",
  checkout: "lease.check_out",
  heartbeat: "lease.heartbeat",
  checkin: "lease.check_in"
}

export const actions: ReadonlyArray<string> = [
  ...new Set([...Object.values(eventActions).map(({ action }) => action), ...Object.values(runtimeActions)])
].sort()

export const resultClasses = ["succeeded", "refused"] as const
export type ResultClass = (typeof resultClasses)[number]

export const resultOf = (eventType: EventType): ResultClass =>
  eventType === refusedActivation ? "refused" : "succeeded"

/** The system's own actions have no response, so no status. */
export const eventActionOf = (eventType: EventType, actorType: string): EventAction => {
  const { action, ...response } = eventActions[eventType]
  return actorType === "system" ? { action } : { action, ...response }
}

interface ActionFilter {
  readonly action?: string | undefined
  readonly result_class?: ResultClass | undefined
  readonly status_code?: number | undefined
}

export const matchingTypes = ({
  action,
  result_class,
  status_code
}: ActionFilter): ReadonlyArray<EventType> | undefined =>
  action === undefined && result_class === undefined && status_code === undefined
    ? undefined
    : (Object.keys(eventActions) as ReadonlyArray<EventType>).filter(
        (type) =>
          (action === undefined || eventActions[type].action === action) &&
          (result_class === undefined || resultOf(type) === result_class) &&
          (status_code === undefined || eventActions[type].status === status_code)
      )
