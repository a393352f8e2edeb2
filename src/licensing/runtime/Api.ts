/** The operations that licensed applications call, with their license key. Every response is signed. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiMiddleware, OpenApi } from "effect/http-api"
import { Signed } from "../../contract/api/Envelope.ts"
import { failures } from "../../contract/api/Failure.ts"
import { BodyBytesMax, BodyOptional, Decoding } from "../../contract/api/Requests.ts"
import {
  DeactivationPayload,
  EntitlementPayload,
  FloatingCheckoutPayload,
  FloatingLeasePayload,
  OfflineEnvelopePayload,
  OwnDevicesPayload,
  TrialPayload
} from "../model/Payloads.ts"
import { IsActivation, operation, RuntimeAuthorization } from "./credentials/RuntimeAuthorization.ts"
import {
  BindingRequest,
  CheckoutRequest,
  ConsumeRequest,
  LeaseRequest,
  OfflineRequest,
  OwnDeviceRequest,
  OwnDevicesQuery,
  TrialRequest
} from "./RuntimeRequests.ts"

const accessRefusals = [
  "PRODUCT_MISMATCH",
  "LICENSE_SUSPENDED",
  "LICENSE_EXPIRED",
  "LICENSE_REVOKED",
  "LICENSE_NOT_STARTED",
  "DEVICE_BLACKLISTED"
] as const

const admissionRefusals = [
  ...accessRefusals,
  "VM_NOT_ALLOWED",
  "CONTAINER_NOT_ALLOWED",
  "VERSION_UNKNOWN",
  "VERSION_NOT_ENTITLED"
] as const

const leaseRefusals = ["LEASE_NOT_FOUND", "LEASE_NOT_ACTIVE"] as const

/** Counts trials by address before their bodies are read, because they need no credential. */
export class TrialLimit extends HttpApiMiddleware.Service<TrialLimit>()("licensing/licensing/runtime/TrialLimit", {
  error: failures("RATE_LIMITED")
}) {}

/** Enough for the longest texts with three bytes a character. */
const trialBytesMax = 8_192

/** Needs no license key, because it returns one. */
const trial = HttpApiEndpoint.post("trial", "/license/trial", {
  payload: TrialRequest,
  success: Signed(TrialPayload),
  error: failures(
    "NOT_FOUND",
    "TRIAL_NOT_ALLOWED",
    "TRIAL_ALREADY_USED",
    "VM_NOT_ALLOWED",
    "CONTAINER_NOT_ALLOWED",
    "VERSION_UNKNOWN",
    "VERSION_NOT_ENTITLED",
    "VALIDATION_ERROR"
  )
})
  .annotateMerge(
    operation({
      id: "startTrial",
      summary: "Start a trial without a license key",
      description:
        "Issues a trial license and activates the device on it. A device gets one trial of a product, once. The signed response contains the license key, which is shown only here. The body has at most 8 KiB."
    })
  )
  .annotate(BodyBytesMax, trialBytesMax)
  .middleware(Decoding)
  .middleware(TrialLimit)

export class RuntimeApi extends HttpApiGroup.make("runtime")
  .add(
    HttpApiEndpoint.post("activate", "/license/activate", {
      payload: BindingRequest,
      success: Signed(EntitlementPayload),
      error: failures(...admissionRefusals, "ACTIVATION_LIMIT_REACHED", "CONTAINER_LIMIT_REACHED")
    })
      .annotate(IsActivation, true)
      .annotateMerge(
        operation({
          id: "activateLicense",
          summary: "Activate a device",
          description:
            "Binds the machine or container instance to the license. Repeating the activation does not count again."
        })
      ),
    HttpApiEndpoint.post("validate", "/license/validate", {
      payload: BindingRequest,
      success: Signed(EntitlementPayload),
      error: failures(...admissionRefusals, "DEVICE_NOT_FOUND", "DEVICE_NOT_ACTIVE", "HEARTBEAT_OVERDUE")
    }).annotateMerge(
      operation({
        id: "validateLicense",
        summary: "Validate an activation",
        description: "Counts as the device's heartbeat."
      })
    ),
    HttpApiEndpoint.post("check", "/license/check", {
      payload: BindingRequest,
      success: Signed(EntitlementPayload),
      error: failures(...admissionRefusals, "DEVICE_NOT_FOUND", "DEVICE_NOT_ACTIVE")
    }).annotateMerge(
      operation({
        id: "checkLicense",
        summary: "Check an activation",
        description: "Gives the same response as validate, and writes nothing."
      })
    ),
    HttpApiEndpoint.post("consume", "/license/consume", {
      payload: ConsumeRequest,
      success: Signed(EntitlementPayload),
      error: failures(
        ...admissionRefusals,
        "DEVICE_NOT_FOUND",
        "DEVICE_NOT_ACTIVE",
        "FEATURE_NOT_ENTITLED",
        "FEATURE_DISABLED",
        "FEATURE_EXPIRED",
        "USAGE_LIMIT_EXCEEDED",
        "REVERSAL_NOT_POSSIBLE",
        "EVENT_ID_CONFLICT"
      )
    }).annotateMerge(
      operation({
        id: "consumeLicense",
        summary: "Count metered usage",
        description:
          "Counts the whole amount or nothing. The same event_id is counted once. With reverses, takes an earlier consumption back."
      })
    ),
    HttpApiEndpoint.post("deactivate", "/license/deactivate", {
      payload: BindingRequest,
      success: Signed(DeactivationPayload),
      error: failures(
        "PRODUCT_MISMATCH",
        "LICENSE_REVOKED",
        "DEVICE_BLACKLISTED",
        "DEVICE_NOT_FOUND",
        "DEVICE_STATE_CONFLICT"
      )
    }).annotateMerge(
      operation({
        id: "deactivateLicense",
        summary: "Deactivate a device",
        description:
          "Frees the device's slot. It works also while the license is suspended, expired or not started: only a revoked license refuses it."
      })
    ),
    HttpApiEndpoint.post("offline", "/license/offline", {
      payload: OfflineRequest,
      success: Signed(OfflineEnvelopePayload),
      error: failures(
        ...admissionRefusals,
        "OFFLINE_NOT_ALLOWED",
        "DEVICE_NOT_FOUND",
        "DEVICE_NOT_ACTIVE",
        "ACTIVATION_LIMIT_REACHED",
        "CONTAINER_LIMIT_REACHED"
      )
    }).annotateMerge(
      operation({
        id: "issueOfflineLicense",
        summary: "Issue an offline entitlement",
        description:
          "For an activated device; with activate: true the device is activated if it is not. Only the license key decrypts the envelope. The payload in it is signed, too, and must be verified."
      })
    ),
    HttpApiEndpoint.get("listOwnDevices", "/license/devices", {
      query: OwnDevicesQuery,
      success: Signed(OwnDevicesPayload),
      error: failures("PRODUCT_MISMATCH", "LICENSE_REVOKED")
    }).annotateMerge(
      operation({
        id: "listOwnDevices",
        summary: "List the license's devices by its key",
        description: "Names, times and states, the newest first, without addresses and fingerprints."
      })
    ),
    HttpApiEndpoint.post("deactivateOwnDevice", "/license/devices/:device_id/deactivate", {
      params: { device_id: Schema.String },
      payload: OwnDeviceRequest,
      success: Signed(DeactivationPayload),
      error: failures(
        "PRODUCT_MISMATCH",
        "LICENSE_REVOKED",
        "DEVICE_BLACKLISTED",
        "DEVICE_NOT_FOUND",
        "DEVICE_STATE_CONFLICT",
        "SELF_DEACTIVATION_LIMIT_REACHED"
      )
    })
      .annotateMerge(
        operation({
          id: "deactivateOwnDevice",
          summary: "Deactivate another device of the license",
          description:
            "For a lost device. At most self_deactivations_per_month in any 30 days. The slot of a device with a valid offline envelope stays taken until the envelope expires."
        })
      )
      .annotate(BodyOptional, true),
    HttpApiEndpoint.post("checkout", "/license/floating/checkout", {
      payload: CheckoutRequest,
      success: Signed(FloatingCheckoutPayload),
      error: failures(
        ...admissionRefusals,
        "FLOATING_NOT_ENABLED",
        "FLOATING_LIMIT_REACHED",
        "BORROWING_NOT_ALLOWED",
        "BORROW_TOO_LONG",
        "VALIDATION_ERROR"
      )
    }).annotateMerge(
      operation({
        id: "checkoutFloatingLicense",
        summary: "Take a floating seat",
        description:
          "Needs no activation. A device that already has a seat keeps it and gets a new token; the previous token becomes invalid. With until, the seat is borrowed: it needs no heartbeat until then."
      })
    ),
    HttpApiEndpoint.post("heartbeat", "/license/floating/heartbeat", {
      payload: LeaseRequest,
      success: Signed(FloatingLeasePayload),
      error: failures(...accessRefusals, ...leaseRefusals, "LEASE_EXPIRED")
    }).annotateMerge(
      operation({
        id: "heartbeatFloatingLicense",
        summary: "Keep a floating seat",
        description:
          "Extends the lease to a full term from now, but never past the end of access. A lease that lapsed less than 24 hours ago takes a free seat again, if there is one: then renewed is true."
      })
    ),
    HttpApiEndpoint.post("checkin", "/license/floating/checkin", {
      payload: LeaseRequest,
      success: Signed(FloatingLeasePayload),
      error: failures(...accessRefusals, ...leaseRefusals)
    }).annotateMerge(
      operation({
        id: "checkinFloatingLicense",
        summary: "Give a floating seat back",
        description: "The seat is free at once."
      })
    )
  )
  .middleware(Decoding)
  .middleware(RuntimeAuthorization)
  .add(trial)
  .annotate(
    OpenApi.Description,
    "What licensed applications call, with their license key. Every response is signed."
  ) {}
