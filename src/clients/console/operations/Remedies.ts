/**
 * When the service refuses, and what to do, for operators. The catalogue says so for developers; what names fields of the API there is
 * said in plain words here.
 */
import type { Code } from "../../../contract/api/ErrorCode.ts"
import { errorCatalogue } from "../../../edge/documents/texts/ErrorCatalogue.ts"

interface Advice {
  readonly when: string
  readonly remedy: string
}

const plain: Partial<Record<Code, Partial<Advice>>> = {
  INVALID_JSON: { remedy: "Correct the field that the response names." },
  INVALID_QUERY: { remedy: "Correct the parameter that the response names." },
  TOKEN_MISSING: { remedy: "Send an API token with the request." },
  TOKEN_EXPIRED: { when: "The API token has expired." },
  TOKEN_INACTIVE: { remedy: "Switch the key on, or use another token." },
  TOKEN_ADDRESS_BLOCKED: {
    when: "The request comes from a network that the API key does not allow.",
    remedy: "Call from an allowed network, or allow this one. Behind a proxy, check LICENSING_TRUSTED_PROXIES."
  },
  TOKEN_SCOPE_DENIED: {
    when: "The API token may not do this.",
    remedy: "Use a token that may. Permission to change something does not include permission to read it."
  },
  LICENSE_KEY_MISSING: {
    when: "An application sent no license key.",
    remedy: "Send the license key with the request."
  },
  LICENSE_EXPIRED: { when: "The license has expired, and its grace period has passed.", remedy: "Extend the license." },
  LICENSE_NOT_STARTED: { when: "The license has not started yet.", remedy: "Wait until it starts." },
  HEARTBEAT_OVERDUE: { remedy: "The application activates the device again, and must validate more often." },
  VM_NOT_ALLOWED: { when: "The policy excludes virtual machines, and the device is one." },
  CONTAINER_NOT_ALLOWED: { when: "The policy excludes containers, and the device is one." },
  ACTIVATION_LIMIT_REACHED: {
    when: "All devices that the license allows are in use.",
    remedy: "Reset another device, or raise the limit of devices."
  },
  CONTAINER_LIMIT_REACHED: { remedy: "Deactivate another container, or raise the limit of containers." },
  FLOATING_LIMIT_REACHED: { remedy: "Try again later, end a seat, or raise the limit of floating seats." },
  SELF_DEACTIVATION_LIMIT_REACHED: {
    when: "The customer has deactivated as many devices from afar as the license allows in 30 days.",
    remedy: "Deactivate on the device itself, wait, or raise this limit."
  },
  BORROWING_NOT_ALLOWED: {
    when: "An application asks for a borrowed seat, and the policy allows no borrowing.",
    remedy: "Use a seat that is not borrowed, or allow borrowing in the policy."
  },
  BORROW_TOO_LONG: {
    when: "A seat is to be borrowed for longer than the policy allows, or beyond the end of the license.",
    remedy: "Borrow it for fewer days, extend the license, or allow more days in the policy."
  },
  USAGE_LIMIT_EXCEEDED: { remedy: "Use less, wait until the quota begins anew, or add credits." },
  REVERSAL_NOT_POSSIBLE: { remedy: "Take back a use of this feature in the current period." },
  FEATURE_DISABLED: { when: "The feature is switched off for the license.", remedy: "Switch it on." },
  FEATURE_EXPIRED: { when: "The feature has expired.", remedy: "Give it a later end." },
  VERSION_UNKNOWN: {
    when: "The version of the application is not in the product’s list.",
    remedy: "Add the version, written exactly as the application sends it."
  },
  VERSION_NOT_ENTITLED: {
    when: "The version was released after the license’s updates ended.",
    remedy: "Use an earlier version, or renew the license."
  },
  PRODUCT_MISMATCH: { when: "The license belongs to another product than the application." },
  NOT_FOUND: { remedy: "Check the path and the ids in the request." },
  LEASE_NOT_FOUND: { when: "No floating seat has this token." },
  METHOD_NOT_ALLOWED: {
    when: "The path exists, for requests of another method.",
    remedy: "Use a method of the documentation."
  },
  DUPLICATE_LICENSE_KEY: {
    when: "Another license has this key.",
    remedy: "Choose another key, or let the service make one."
  },
  DUPLICATE_EXTERNAL_ID: { when: "An order or subscription with this number exists." },
  LICENSE_STATE_CONFLICT: { remedy: "Look at the license: a revoked one cannot be changed." },
  TRANSFER_LIMIT_REACHED: {
    when: "The license was transferred as often as it may be.",
    remedy: "Raise the limit of transfers of the license or policy."
  },
  EVENT_ID_CONFLICT: {
    when: "The same use was reported twice, for another feature or amount.",
    remedy: "The application gives each use an id of its own, and repeats a use unchanged."
  },
  UNSUPPORTED_MEDIA_TYPE: { remedy: "Declare the body as JSON." },
  VALIDATION_ERROR: { remedy: "Correct the fields that the response names." },
  EXPIRY_NOT_IN_FUTURE: { when: "The new end is not in the future.", remedy: "Give a later end, or more days." },
  RENEWAL_NOT_LATER: { remedy: "Give a later end. To shorten a license, edit it." },
  CUSTOM_FIELD_TYPE_MISMATCH: { remedy: "Send a value of the type that the custom field has." },
  LINKAGE_MISMATCH: { remedy: "Use records of the same product." },
  RATE_LIMITED: { when: "More requests than a limit allows.", remedy: "Wait, then repeat the request." },
  INTERNAL_ERROR: {
    when: "A fault of the service.",
    remedy: "Search the log for the request’s id: its record has the cause."
  },
  NOT_READY: { remedy: "Wait, then repeat the request. An application continues with its stored response." }
}

export const adviceOn = (code: string): Advice | undefined =>
  Object.hasOwn(errorCatalogue, code) ? { ...errorCatalogue[code as Code], ...plain[code as Code] } : undefined
