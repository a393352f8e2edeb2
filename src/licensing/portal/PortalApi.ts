/**
 * What the customer's page asks the service. It is declared like the contract, but is no part of it: only the page of the same
 * version calls it.
 */
import { Schema } from "effect"
import { HttpApi, HttpApiEndpoint, HttpApiGroup, HttpApiSchema } from "effect/http-api"
import { Data, Paged, Signed } from "../../contract/api/Envelope.ts"
import { failures } from "../../contract/api/Failure.ts"
import { pageQuery } from "../../contract/api/Paging.ts"
import { BodyBytesMax, Decoding, Intake } from "../../contract/api/Requests.ts"
import { Email, isMinCharacters, Text } from "../../contract/api/Text.ts"
import { Timestamp } from "../../contract/api/Timestamp.ts"
import { OfflineEnvelopePayload } from "../model/Payloads.ts"
import { OfflineRequest } from "../runtime/RuntimeRequests.ts"
import { PortalAccess, SameOrigin, SignInLimit } from "./PortalAccess.ts"
import { PortalLicense, PortalLicenseDetails } from "./PortalLicense.ts"

/** Larger than any body of the page. */
const bytesMax = 16_384

const PortalSignIn = Schema.Struct({
  kind: Schema.Literals(["license", "address"]),
  /** The license of the entered key. */
  license_id: Schema.optionalKey(Schema.String),
  expires_at: Timestamp
})

const PortalPage = Schema.Struct({
  title: Schema.optionalKey(Schema.String),
  has_logo: Schema.Boolean,
  contact: Schema.optionalKey(Schema.String),
  /** Whether links can be sent. */
  has_mail: Schema.Boolean,
  session: Schema.optionalKey(PortalSignIn)
})

const Key = Text(255).check(isMinCharacters(1))
const license = { license_id: Schema.String }

const open = HttpApiGroup.make("open")
  .add(
    HttpApiEndpoint.get("page", "/page", { success: Data(PortalPage), error: failures("RATE_LIMITED") }),
    HttpApiEndpoint.post("signInByKey", "/sign-in/key", {
      payload: Schema.Struct({ license_key: Key }),
      success: Data(PortalSignIn),
      error: failures("LICENSE_KEY_INVALID")
    }).middleware(SignInLimit),
    HttpApiEndpoint.post("requestLink", "/links", {
      payload: Schema.Struct({ address: Email, language: Schema.optionalKey(Schema.Literals(["en", "de"])) }),
      success: HttpApiSchema.NoContent,
      error: failures("NOT_READY", "VALIDATION_ERROR")
    }).middleware(SignInLimit),
    HttpApiEndpoint.post("signInByLink", "/sign-in/link", {
      payload: Schema.Struct({ token: Text(64) }),
      success: Data(PortalSignIn),
      error: failures("TOKEN_INVALID")
    }).middleware(SignInLimit)
  )
  .middleware(Decoding)
  .annotateEndpoints(BodyBytesMax, bytesMax)

const sessions = HttpApiGroup.make("sessions")
  .add(
    HttpApiEndpoint.post("signOut", "/sign-out", { success: HttpApiSchema.NoContent }),
    HttpApiEndpoint.get("licenses", "/licenses", {
      query: Schema.Struct(pageQuery),
      success: Paged(PortalLicense)
    }),
    HttpApiEndpoint.get("license", "/licenses/:license_id", {
      params: license,
      success: Data(PortalLicenseDetails),
      error: failures("NOT_FOUND")
    }),
    HttpApiEndpoint.post("deactivate", "/licenses/:license_id/devices/:device_id/deactivate", {
      params: { ...license, device_id: Schema.String },
      success: HttpApiSchema.NoContent,
      error: failures(
        "NOT_FOUND",
        "LICENSE_KEY_INVALID",
        "NOT_READY",
        "PRODUCT_MISMATCH",
        "LICENSE_REVOKED",
        "DEVICE_BLACKLISTED",
        "DEVICE_NOT_FOUND",
        "DEVICE_STATE_CONFLICT",
        "SELF_DEACTIVATION_LIMIT_REACHED"
      )
    }),
    HttpApiEndpoint.post("mailKey", "/licenses/:license_id/key", {
      params: license,
      success: HttpApiSchema.NoContent,
      error: failures("NOT_FOUND", "NOT_READY", "VALIDATION_ERROR", "LICENSE_STATE_CONFLICT", "RATE_LIMITED")
    }),
    HttpApiEndpoint.post("offline", "/licenses/:license_id/offline", {
      params: license,
      payload: Schema.Struct({ license_key: Key, request: OfflineRequest }),
      success: Signed(OfflineEnvelopePayload),
      error: failures(
        "NOT_FOUND",
        "LICENSE_KEY_INVALID",
        "NOT_READY",
        "VALIDATION_ERROR",
        "PRODUCT_MISMATCH",
        "LICENSE_SUSPENDED",
        "LICENSE_EXPIRED",
        "LICENSE_REVOKED",
        "LICENSE_NOT_STARTED",
        "DEVICE_BLACKLISTED",
        "VM_NOT_ALLOWED",
        "CONTAINER_NOT_ALLOWED",
        "VERSION_UNKNOWN",
        "VERSION_NOT_ENTITLED",
        "OFFLINE_NOT_ALLOWED",
        "DEVICE_NOT_FOUND",
        "DEVICE_NOT_ACTIVE",
        "ACTIVATION_LIMIT_REACHED",
        "CONTAINER_LIMIT_REACHED"
      )
    })
  )
  .middleware(Decoding)
  .middleware(PortalAccess)
  .annotateEndpoints(BodyBytesMax, bytesMax)

export class PortalApi extends HttpApi.make("portal")
  .add(open)
  .add(sessions)
  .prefix("/portal/api")
  .middleware(SameOrigin)
  .middleware(Intake) {}
