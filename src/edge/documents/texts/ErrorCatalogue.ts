/** Every code of a refusal: when the service gives it, and what the caller does. The compiler asks for a line for each new code. */
import type { Code } from "../../../contract/api/ErrorCode.ts"

interface Entry {
  readonly when: string
  readonly remedy: string
}

const entry = (when: string, remedy: string): Entry => ({ when, remedy })

export const errorCatalogue: { readonly [C in Code]: Entry } = {
  BAD_REQUEST: entry(
    "The request target, its headers or its Idempotency-Key cannot be read.",
    "Correct the part that the message names."
  ),
  INVALID_JSON: entry(
    "The body is no JSON object in UTF-8, has a field that the operation does not know, or a value of a wrong JSON type.",
    "Correct the field in `detail`; `details` lists all wrong fields."
  ),
  INVALID_QUERY: entry(
    "A query parameter is unknown, missing or has a wrong value, or a cursor is malformed or of another sort.",
    "Correct the parameter in `detail`. Pass cursors on unchanged."
  ),
  IDEMPOTENCY_KEY_REQUIRED: entry(
    "A renewal has no Idempotency-Key.",
    "Send a key that is new for each renewal and the same for each repetition of it."
  ),
  TOKEN_MISSING: entry("The request has no API token.", "Send `Authorization: Bearer <API token>`."),
  TOKEN_MALFORMED: entry(
    "The API token is incomplete or mistyped, or the Authorization header has another scheme.",
    "Copy the whole token again."
  ),
  TOKEN_INVALID: entry("The API token is unknown or was deleted.", "Use a token that exists, or create a new one."),
  TOKEN_EXPIRED: entry("The API token's expires_at has passed.", "Create a new API key."),
  TOKEN_INACTIVE: entry("The API key is switched off.", "Set is_active to true, or use another token."),
  TOKEN_ADDRESS_BLOCKED: entry(
    "The request comes from an address outside the token's allowed_cidrs.",
    "Call from an allowed network, or extend allowed_cidrs. Behind a proxy, check LICENSING_TRUSTED_PROXIES."
  ),
  LICENSE_KEY_MISSING: entry("A runtime request has no license key.", "Send `Authorization: License <license key>`."),
  LICENSE_KEY_INVALID: entry(
    "The license key is mistyped or unknown, or a rotation ended it. The refusal is not signed.",
    "Ask the user for the key. Do not end a running application for this code."
  ),
  TOKEN_SCOPE_DENIED: entry(
    "The API token lacks the scope of the operation, or it is for some products and the operation is not.",
    "Use a token with the scope in `detail`. A write scope does not include its read scope. If `detail` is product_ids, use a token without product_ids."
  ),
  LICENSE_SUSPENDED: entry(
    "The license is suspended.",
    "Stop the licensed use, and ask again later: it may be reinstated."
  ),
  LICENSE_EXPIRED: entry(
    "expires_at and the policy's grace after it have passed.",
    "Offer a renewal; see `expires_at` and `access_ends_at`."
  ),
  LICENSE_REVOKED: entry("The license was revoked.", "Stop the licensed use: a revocation is permanent."),
  LICENSE_NOT_STARTED: entry(
    "The license's starts_at is in the future.",
    "Wait until `starts_at` or for `retry_after_seconds`."
  ),
  DEVICE_BLACKLISTED: entry("The device is blacklisted.", "Stop the licensed use on this device."),
  DEVICE_NOT_ACTIVE: entry(
    "The device is known and not active: deactivated, reset or expired. For an offline envelope also: it has a seat and no activation.",
    "Activate it once; stop if that is refused."
  ),
  HEARTBEAT_OVERDUE: entry(
    "The policy requires heartbeats, and the device was silent too long.",
    "Activate it again, and validate at each `next_check_at`."
  ),
  TRIAL_NOT_ALLOWED: entry(
    "The product has no policy with this code, or one without public trials.",
    "Check the code; ask the vendor for a license key, or for a policy with public trials."
  ),
  TRIAL_ALREADY_USED: entry(
    "This device has used its trial of the product; each device has one trial.",
    "Use the license key of that trial, or buy a license. If the response with the key was lost, the vendor finds the license by the device and rotates its key."
  ),
  VM_NOT_ALLOWED: entry(
    "The policy excludes virtual machines, and is_vm is true.",
    "Use a physical machine, or another policy."
  ),
  CONTAINER_NOT_ALLOWED: entry(
    "The policy excludes containers, and is_container is true.",
    "Run outside a container, or use another policy."
  ),
  OFFLINE_NOT_ALLOWED: entry("The policy gives no offline envelopes.", "Stay connected, or use another policy."),
  FLOATING_NOT_ENABLED: entry("The license has no floating seats.", "Activate the device instead of checking out."),
  ACTIVATION_LIMIT_REACHED: entry(
    "All activations of the license are in use.",
    "Deactivate or reset another device, or raise max_activations; see `max` and `used`."
  ),
  CONTAINER_LIMIT_REACHED: entry(
    "All container instances of the license are in use.",
    "Deactivate another instance, or raise max_container_instances."
  ),
  FLOATING_LIMIT_REACHED: entry(
    "All floating seats are taken.",
    "Try again later, check a seat in, or raise max_floating_users."
  ),
  SELF_DEACTIVATION_LIMIT_REACHED: entry(
    "The license's devices were deactivated by their ids as often as self_deactivations_per_month allows in 30 days.",
    "Deactivate on the device itself, wait for retry_after_seconds, or raise self_deactivations_per_month."
  ),
  BORROWING_NOT_ALLOWED: entry(
    "`until` asks for a borrowed seat, and the policy has no borrow_days_max.",
    "Check out without `until` and send heartbeats, or set borrow_days_max."
  ),
  BORROW_TOO_LONG: entry(
    "`until` is later than borrow_days_max allows, or later than the end of access.",
    "Ask for an earlier `until`, renew the license, or raise borrow_days_max."
  ),
  USAGE_LIMIT_EXCEEDED: entry(
    "The amount does not fit into what is left of the feature's quota. Nothing was counted.",
    "Use at most what the message says, wait until `resets_at` if there is one, or add credits with a usage reset."
  ),
  REVERSAL_NOT_POSSIBLE: entry(
    "The current period has no such consumption, or it was taken back before. Nothing was changed.",
    "Give the event_id of a consumption of this feature in the current period."
  ),
  FEATURE_NOT_ENTITLED: entry("The feature is not assigned to the license.", "Assign it, or switch the feature off."),
  FEATURE_DISABLED: entry("The assignment of the feature is disabled.", "Enable it, or switch the feature off."),
  FEATURE_EXPIRED: entry("The assignment's expires_at has passed.", "Assign the feature with a later end."),
  VERSION_UNKNOWN: entry(
    "The product has a version catalog, and app_version is not in it.",
    "Add the version to the catalog, written exactly as the application sends it."
  ),
  VERSION_NOT_ENTITLED: entry(
    "The version was released after the license's cutoff.",
    "Use a version released until `eligible_through`, or renew the license."
  ),
  LEASE_EXPIRED: entry("The lease ended, and no heartbeat can bring it back.", "Check out again."),
  TRANSFER_NOT_ALLOWED: entry(
    "The license's policy allows no transfers.",
    "Move the license to another policy first, or issue a new one."
  ),
  PRODUCT_MISMATCH: entry(
    "The license belongs to another product than the request's product_code.",
    "Ask the user for the key of this product."
  ),
  NOT_FOUND: entry(
    "The path, or the record that the path or the body names, does not exist, or the token does not reach it.",
    "Check the path and the ids; `detail` names the field of a body."
  ),
  DEVICE_NOT_FOUND: entry("The device was never activated on this license.", "Activate it."),
  LEASE_NOT_FOUND: entry("No lease has this lease_token.", "Check out again."),
  METHOD_NOT_ALLOWED: entry("The path exists and does not take the method.", "Use a method of the header `Allow`."),
  CONFLICT: entry(
    "The request conflicts with a concurrent one or with the record's state; with If-Match, the record was changed meanwhile.",
    "Read the record, then decide again."
  ),
  DUPLICATE_CODE: entry("Another record has this code.", "Choose another code, or use the existing record."),
  DUPLICATE_LICENSE_KEY: entry(
    "Another license has the license_key of the request.",
    "Choose another key, or leave license_key out. In a batch `detail` names the license."
  ),
  DUPLICATE_EXTERNAL_ID: entry("An order or subscription with this external id exists.", "Update the existing record."),
  DUPLICATE_VERSION: entry("The product has this version already.", "Use the existing version."),
  RESOURCE_IN_USE: entry("Other records depend on this one.", "Remove or change those first."),
  LICENSE_STATE_CONFLICT: entry(
    "The license's state does not allow the change: it is revoked, or expired and only a renewal helps.",
    "Read the license; the page of states lists what each state allows."
  ),
  DEVICE_STATE_CONFLICT: entry(
    "The device's state does not allow the action, such as deactivating it twice.",
    "Read the device; often the wanted state is reached already."
  ),
  TRANSFER_LIMIT_REACHED: entry(
    "The license was transferred max_transfers times.",
    "Raise max_transfers of the license or policy."
  ),
  IDEMPOTENCY_IN_PROGRESS: entry(
    "The first request with this Idempotency-Key is still running.",
    "Repeat the request in a moment to get its response."
  ),
  EVENT_ID_CONFLICT: entry(
    "The event_id was used for another feature or amount.",
    "Give each use an event_id of its own, and repeat a use unchanged."
  ),
  LEASE_NOT_ACTIVE: entry(
    "The lease was checked in, ended by the vendor, or replaced by a newer checkout.",
    "Check out again if a seat is still needed."
  ),
  EXPORT_NOT_READY: entry(
    "The export is not complete.",
    "Poll the export until its status is completed, then download."
  ),
  BULK_JOB_STATE_CONFLICT: entry(
    "The bulk job has ended.",
    "Only a job that is pending or running can be canceled; create another one to change more."
  ),
  PAYLOAD_TOO_LARGE: entry(
    "The body is larger than the operation takes: 256 KiB, unless its description says otherwise.",
    "Send less, in several requests."
  ),
  UNSUPPORTED_MEDIA_TYPE: entry(
    "The body is not declared as JSON in UTF-8, or has a content encoding.",
    "Send `Content-Type: application/json`, and no Content-Encoding."
  ),
  VALIDATION_ERROR: entry(
    "A field is missing, out of range, malformed, or contradicts another.",
    "Correct the field in `detail`; `details` lists all wrong fields."
  ),
  IDEMPOTENCY_KEY_REUSED: entry(
    "The Idempotency-Key was used with another body or If-Match, or while the token was for other products.",
    "Use a new key for a new request, and the same body and If-Match for a repetition."
  ),
  LICENSE_NOT_RENEWABLE: entry(
    "Perpetual and consumption licenses have no term.",
    "Do not renew it; edit the license or its quota."
  ),
  EXPIRY_NOT_IN_FUTURE: entry("The new expires_at is not in the future.", "Give a later expires_at, or more days."),
  RENEWAL_NOT_LATER: entry(
    "The renewal would not end later than the license does.",
    "Give a later end. To shorten a license, update expires_at."
  ),
  CUSTOM_FIELD_TYPE_MISMATCH: entry(
    "The value has another type than its definition.",
    "Send the field of the definition's value_type."
  ),
  CUSTOM_FIELD_REQUIRED: entry(
    "A required custom field cannot be cleared.",
    "Set another value, or make the definition optional."
  ),
  LINKAGE_MISMATCH: entry(
    "The named record must not be linked: it belongs to another product, or the order and the subscription do not match.",
    "Use records of the same product; `detail` names the field."
  ),
  RATE_LIMITED: entry(
    "More requests than a limit allows; `detail` names the limit. The refusal is not signed.",
    "Wait for the seconds in `Retry-After`, then repeat the request."
  ),
  INTERNAL_ERROR: entry(
    "A fault of the service. The response shows no details.",
    "Give the operator the request id: the log has the cause under it. Repeating is safe with an event_id or an Idempotency-Key."
  ),
  NOT_READY: entry(
    "The service starts, stops, is overloaded, or cannot reach its database.",
    "Repeat the request after the seconds in `Retry-After`. An application continues with its stored response."
  )
}
