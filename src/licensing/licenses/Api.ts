/** The operations on licenses, their states and their feature assignments. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { Idempotency } from "../../access/idempotency/Idempotency.ts"
import { ManagementAuthorization, operation } from "../../access/Management.ts"
import { Conditional } from "../../access/preconditions/Conditional.ts"
import { Data, Paged } from "../../contract/api/Envelope.ts"
import { failures } from "../../contract/api/Failure.ts"
import { withMetadataFilter } from "../../contract/api/Metadata.ts"
import { expandOf, listQuery, pageQuery } from "../../contract/api/Paging.ts"
import { BodyBytesMax, BodyOptional, BodyValuesMax, Decoding, PathTables } from "../../contract/api/Requests.ts"
import { preview } from "../bulk/Preview.ts"
import { Lease } from "../model/Lease.ts"
import {
  expandable,
  License,
  LicenseBatch,
  LicenseCreate,
  LicensePolicyChange,
  LicensesWithKeys,
  LicenseTransfer,
  LicenseUpdate,
  LicenseWithKey,
  licenseFilters,
  licenseSorts
} from "../model/License.ts"
import { LicenseFeature, LicenseFeatureAssign, LicenseUsageReset } from "../model/LicenseFeature.ts"
import { LicenseKeyRotation } from "../model/RenewalRequests.ts"
import { LicenseDiagnose, LicenseDiagnosis } from "./Diagnosis.ts"
import { maintenance, renewal } from "./RenewalsApi.ts"

const params = { id: Schema.String }

const transition = (verb: "suspend" | "reinstate" | "revoke", summary: string, description: string) =>
  HttpApiEndpoint.post(verb, `/licenses/:id/${verb}`, {
    params,
    success: Data(License),
    error: failures("NOT_FOUND", "LICENSE_STATE_CONFLICT")
  }).annotateMerge(operation({ id: `${verb}License`, summary, description, scopes: ["license:write"] }))

/** Renewal, transfer, key rotation, usage reset and leases. */
const ownershipAndUsage = [
  renewal,
  maintenance,
  HttpApiEndpoint.post("transfer", "/licenses/:id/transfer", {
    params,
    payload: LicenseTransfer,
    success: Data(Schema.Union([License, LicenseWithKey])),
    error: failures("NOT_FOUND", "LICENSE_STATE_CONFLICT", "CONFLICT", "TRANSFER_NOT_ALLOWED", "TRANSFER_LIMIT_REACHED")
  }).annotateMerge(
    operation({
      id: "transferLicense",
      summary: "Transfer a license",
      description:
        "Counts as a transfer if the owner changes. For another customer_id, a name and an e-mail that are not given become that customer's, and what that customer lacks is cleared. reset_devices frees every slot and seat. With rotate_key: true the old key stops working at once, and the response is {license, license_key}: the new key is shown only here.",
      scopes: ["license:write"]
    })
  ),
  HttpApiEndpoint.post("changePolicy", "/licenses/:id/policy", {
    params,
    payload: LicensePolicyChange,
    success: Data(License),
    error: failures("NOT_FOUND", "LICENSE_STATE_CONFLICT", "LINKAGE_MISMATCH", "EXPIRY_NOT_IN_FUTURE")
  }).annotateMerge(
    operation({
      id: "changeLicensePolicy",
      summary: "Move a license to another policy",
      description:
        "The policy must be one of the license's product. Devices and leases stay; those beyond a lower limit stay until they end. A policy of another license type needs what creating a license with it needs. The new policy's features replace those that came with the old one; features assigned by hand stay. The policy that the license has is applied to it: the license gets the features that the policy has now.",
      scopes: ["license:write"]
    })
  ),
  HttpApiEndpoint.post("rotateKey", "/licenses/:id/rotate-key", {
    params,
    payload: LicenseKeyRotation,
    success: Data(LicenseWithKey),
    error: failures("NOT_FOUND", "LICENSE_STATE_CONFLICT", "VALIDATION_ERROR")
  })
    .annotateMerge(
      operation({
        id: "rotateLicenseKey",
        summary: "Rotate a license's key",
        description:
          "The response contains the new key, which is shown only here. The old key stops working at once. With send_key: true the new key is also mailed.",
        scopes: ["license:write"]
      })
    )
    .annotate(BodyOptional, true),
  HttpApiEndpoint.post("resetUsage", "/licenses/:id/usage/reset", {
    params,
    payload: LicenseUsageReset,
    success: Data(LicenseFeature),
    error: failures("NOT_FOUND", "LICENSE_STATE_CONFLICT", "VALIDATION_ERROR")
  }).annotateMerge(
    operation({
      id: "resetLicenseUsage",
      summary: "Reset a feature's usage",
      description: "Returns the assignment. The license's own total_consumptions never decreases.",
      scopes: ["license:write"]
    })
  ),
  HttpApiEndpoint.get("listLeases", "/licenses/:id/leases", {
    params,
    query: pageQuery,
    success: Paged(Lease),
    error: failures("NOT_FOUND")
  }).annotateMerge(
    operation({ id: "listLicenseLeases", summary: "List a license's live floating leases", scopes: ["license:read"] })
  )
] as const

const issuingRefusals = [
  "NOT_FOUND",
  "CONFLICT",
  "LINKAGE_MISMATCH",
  "EXPIRY_NOT_IN_FUTURE",
  "DUPLICATE_LICENSE_KEY"
] as const

const issuing = [
  HttpApiEndpoint.post("create", "/licenses", {
    payload: LicenseCreate,
    success: Data(LicenseWithKey).pipe(HttpApiSchema.status(201)),
    error: failures(...issuingRefusals)
  }).annotateMerge(
    operation({
      id: "createLicense",
      summary: "Issue a license",
      description:
        "The response contains the full license key, which is shown only here. The license gets the features that come with its policy.",
      scopes: ["license:write"],
      reach: "body"
    })
  ),
  HttpApiEndpoint.post("createBatch", "/licenses/batch", {
    payload: LicenseBatch,
    success: Data(LicensesWithKeys).pipe(HttpApiSchema.status(201)),
    error: failures(...issuingRefusals)
  })
    .annotateMerge(
      operation({
        id: "createLicenseBatch",
        summary: "Issue up to 1,000 licenses",
        description:
          "Issues all licenses of the body or none. A refusal names the index of the first license that was refused, as licenses[700].license_key. The response contains the full keys, which are shown only here. The body has at most 4 MiB.",
        scopes: ["license:write"],
        reach: "body"
      })
    )
    .annotate(BodyBytesMax, 4_194_304)
    // The same number for each 256 KiB as in other bodies.
    .annotate(BodyValuesMax, 160_000)
] as const

const diagnosis = HttpApiEndpoint.post("diagnose", "/licenses/:id/diagnose", {
  params,
  payload: LicenseDiagnose,
  success: Data(LicenseDiagnosis),
  error: failures("NOT_FOUND", "VALIDATION_ERROR")
})
  .annotateMerge(
    operation({
      id: "diagnoseLicense",
      summary: "Diagnose why a license is accepted or refused",
      description:
        "Returns what an operation of the application (validate by default) would decide about a machine or container instance, with the result of every check, also of those after the first failure. Changes nothing and counts nothing.",
      scopes: ["license:read"]
    })
  )
  .annotate(BodyOptional, true)

export class LicensesApi extends HttpApiGroup.make("licenses")
  .add(
    HttpApiEndpoint.get("list", "/licenses", {
      query: withMetadataFilter(
        listQuery(licenseSorts, { ...licenseFilters, expand: Schema.optionalKey(expandOf(expandable)) })
      ),
      success: Paged(License)
    }).annotateMerge(
      operation({ id: "listLicenses", summary: "List licenses", scopes: ["license:read"], reach: "rows" })
    ),
    ...issuing,
    HttpApiEndpoint.get("get", "/licenses/:id", {
      params,
      success: Data(License),
      error: failures("NOT_FOUND")
    }).annotateMerge(operation({ id: "getLicense", summary: "Get a license", scopes: ["license:read"] })),
    HttpApiEndpoint.patch("update", "/licenses/:id", {
      params,
      payload: LicenseUpdate,
      success: Data(License),
      error: failures("NOT_FOUND", "LICENSE_STATE_CONFLICT", "CONFLICT", "LINKAGE_MISMATCH")
    })
      .middleware(Conditional)
      .annotateMerge(
        operation({
          id: "updateLicense",
          summary: "Update a license",
          description:
            "A limit replaces the policy's for this license; null takes the policy's again. A lowered limit ends nothing. An order_id without subscription_id also links the order's subscription.",
          scopes: ["license:write"]
        })
      ),
    transition("suspend", "Suspend a license", "Floating leases end, devices stay. Suspending again changes nothing."),
    transition("reinstate", "Reinstate a license", "A suspended license gets the state that its dates give."),
    transition("revoke", "Revoke a license", "Permanent: devices are deactivated, leases end."),
    ...ownershipAndUsage,
    diagnosis,
    preview,
    HttpApiEndpoint.get("listFeatures", "/licenses/:id/features", {
      params,
      query: pageQuery,
      success: Paged(LicenseFeature),
      error: failures("NOT_FOUND")
    }).annotateMerge(
      operation({ id: "listLicenseFeatures", summary: "List a license's features", scopes: ["license:read"] })
    ),
    HttpApiEndpoint.post("assignFeature", "/licenses/:id/features", {
      params,
      payload: LicenseFeatureAssign,
      success: Data(LicenseFeature),
      error: failures("NOT_FOUND", "LICENSE_STATE_CONFLICT", "LINKAGE_MISMATCH")
    }).annotateMerge(
      operation({
        id: "assignLicenseFeature",
        summary: "Assign a feature to a license",
        description: "Creates or updates the assignment: omitted fields keep their values.",
        scopes: ["license:write"]
      })
    ),
    HttpApiEndpoint.delete("removeFeature", "/licenses/:id/features/:feature_id", {
      params: { id: Schema.String, feature_id: Schema.String },
      success: HttpApiSchema.NoContent,
      error: failures("NOT_FOUND", "LICENSE_STATE_CONFLICT")
    }).annotateMerge(
      operation({
        id: "removeLicenseFeature",
        summary: "Remove a feature from a license",
        description: "The license no longer includes the feature. If it is assigned again, its count begins at zero.",
        scopes: ["license:write"]
      })
    )
  )
  .middleware(Decoding)
  .middleware(Idempotency)
  .middleware(ManagementAuthorization)
  .annotate(PathTables, { id: "licenses" })
  .annotate(OpenApi.Description, "Issuing licenses, their states, and the features that they include.") {}
