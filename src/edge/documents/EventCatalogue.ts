/** Every type of event: when it is recorded. The compiler asks for a line for each new type. */
import type { EventType } from "../../ledger/events/EventType.ts"

export const eventCatalogue: { readonly [T in EventType]: string } = {
  "product.created": "A product was created.",
  "product.updated": "A product's name, code or metadata was changed.",
  "product.deleted": "A product was deleted.",
  "policy.created": "A policy was created.",
  "policy.updated": "A policy's rules were changed, or its features (`features.<code>`).",
  "policy.deleted": "A policy was deleted.",
  "feature.created": "A feature was created.",
  "feature.updated": "A feature's name, code or metadata was changed.",
  "feature.deleted": "A feature was deleted.",
  "customer.created": "A customer was created.",
  "customer.updated": "A customer's fields were changed.",
  "customer.deleted": "A customer was deleted.",
  "customer.erased": "A customer's personal data was erased, also in earlier events.",
  "product_version.created": "A version was added to a product's catalog.",
  "product_version.deleted": "A version was removed from a product's catalog.",
  "order.created": "An order was recorded.",
  "order.updated": "An order's status, period, links or other fields were changed.",
  "subscription.created": "A subscription was recorded.",
  "subscription.updated": "A subscription's status, period, links or other fields were changed.",
  "custom_field.created": "A custom field was defined.",
  "custom_field.updated": "The definition of a custom field was changed.",
  "custom_field.deleted": "The definition of a custom field was deleted.",
  "custom_field_value.set": "A license or customer got a value of a custom field.",
  "custom_field_value.cleared": "A value of a custom field was removed.",
  "api_key.created": "An API key was created.",
  "api_key.updated": "An API key's name, scopes, networks, products, expiry or activity was changed.",
  "api_key.revoked": "An API key was deleted; its token is no longer valid.",
  "license.created": "A license was issued, alone, in a batch or as a public trial, or imported (`imported: true`).",
  "license.updated": "A license's fields or limits were changed, or its term began with its first use.",
  "license.suspended": "A license was suspended: applications are refused.",
  "license.reinstated": "A suspended license was reinstated.",
  "license.revoked": "A license was revoked permanently.",
  "license.renewed": "A license's expiry was extended.",
  "license.maintenance_renewed": "A perpetual license's maintenance was extended.",
  "license.maintenance_expiring":
    "A perpetual license's maintenance ends in at most one of its policy's reminder_days: once for each, for the same end. If several are due, only the latest.",
  "license.maintenance_expired": "A perpetual license's maintenance ended. The license itself stays valid.",
  "license.transferred": "A license got another owner, or its devices were reset by a transfer.",
  "license.policy_changed": "A license was moved to another policy, or got what its policy has now.",
  "license.key_rotated": "A license got a new key; the old key is no longer valid.",
  "license.feature_assigned": "A feature was assigned to a license, or its assignment was changed.",
  "license.feature_removed": "A feature was removed from a license; `changes` has what its assignment had.",
  "license.feature_expired":
    "The expiry of an enabled feature of a license has passed. A feature that ends with the license has none of its own.",
  "license.usage_reset": "The quota or the counted usage of a feature was changed by a request.",
  "license.activated":
    "A device was activated and takes a slot. Another activation of an active device records nothing.",
  "license.deactivated": "An application, or the holder of the key, released a device's slot.",
  "license.offline_issued": "An offline envelope was issued.",
  "license.grace_period_started":
    "A license's expires_at has passed, and its policy's grace period has begun; or it was reinstated in that period.",
  "license.expired":
    "A license's access has ended: its expires_at, and the grace period if there is one; or it was reinstated after that.",
  "license.expiring":
    "A license expires in at most one of its policy's reminder_days: once for each, for the same expiry. If several are due, only the latest.",
  "license.activation_limit_reached":
    "An activation was refused because of a limit; at most once an hour for a license.",
  "usage.consumed": "A metered feature was used: once for each event_id.",
  "usage.reversed": "A consumption was taken back as a whole.",
  "usage.period_closed":
    "A period of a quota ended, with its consumption, and the quota began anew: once, however many periods have passed.",
  "usage.overage_started": "A consumption exceeded quota and bought credits, and the overage was 0 before.",
  "usage.threshold_reached": "A consumption brought the counted usage to 80 % of the quota.",
  "usage.exhausted": "A consumption brought the counted usage to the quota.",
  "lease.checked_out":
    "A floating seat was taken. With `borrowed_until` it is borrowed: it needs no heartbeat until then.",
  "lease.checked_in": "A floating seat was released. With `borrowed_until` it was borrowed, and was given back early.",
  "lease.expired":
    "A floating seat lapsed: no heartbeat arrived in time, or the borrowed time passed. What else ends a seat has its own event, such as license.expired.",
  "device.reset":
    "A device was reset: its slot and seats are free, except a borrowed seat, which stays taken until `borrowed_until`.",
  "device.blacklisted":
    "A device was blacklisted: it is refused until it is unblacklisted. A borrowed seat stays taken until `borrowed_until`.",
  "device.unblacklisted": "A device is no longer blacklisted.",
  "device.expired": "A device missed its heartbeat; its slot is free.",
  "webhook.created": "A webhook endpoint was created. It is the endpoint's first delivery, if it takes this type.",
  "webhook.updated": "A webhook endpoint was changed, enabled or disabled by a request.",
  "webhook.secret_rotated": "A webhook endpoint got a new secret; for 24 hours both secrets sign.",
  "webhook.deleted": "A webhook endpoint was deleted.",
  "webhook.disabled":
    "The service disabled a webhook endpoint: it responded with 410, or ten deliveries in a row failed.",
  "report_export.created": "A report export was requested.",
  "bulk_job.created": "A change of many licenses was requested.",
  "bulk_job.completed": "A bulk job has processed all of its licenses.",
  "bulk_job.canceled": "A change of many licenses was canceled. What it had changed stays.",
  "bulk_job.failed": "A change of many licenses was given up. What it had changed stays.",
  "portal.signed_in":
    "Somebody signed in at the customer's page, with a license key (an event of that license) or with a link.",
  "portal.key_requested":
    "A customer asked for a new key at the customer's page. It was mailed; license.key_rotated follows.",
  "signing_key.rotated": "Responses are signed with a new key."
}
