/** The operations that renew a license, or the maintenance of a perpetual one. */
import { Schema } from "effect"
import { HttpApiEndpoint } from "effect/http-api"
import { idempotencyKeyMax, KeyRequired } from "../../access/idempotency/Idempotency.ts"
import { operation } from "../../access/Management.ts"
import { Data } from "../../contract/api/Envelope.ts"
import { failures } from "../../contract/api/Failure.ts"
import { License } from "../model/License.ts"
import { LicenseMaintenance, LicenseRenew } from "../model/RenewalRequests.ts"

const params = { id: Schema.String }

/** For the OpenAPI document and for clients. A request without the key is refused before its body is read. */
const keyHeader = {
  "idempotency-key": Schema.String.check(Schema.isBetweenLength(1, idempotencyKeyMax)).annotate({
    description:
      "A text of your choice, unique to this renewal. A repeated request with the same text and body does not renew again."
  })
}

export const renewal = HttpApiEndpoint.post("renew", "/licenses/:id/renew", {
  params,
  headers: keyHeader,
  payload: LicenseRenew,
  success: Data(License),
  error: failures(
    "NOT_FOUND",
    "LICENSE_STATE_CONFLICT",
    "LICENSE_NOT_RENEWABLE",
    "LINKAGE_MISMATCH",
    "EXPIRY_NOT_IN_FUTURE",
    "RENEWAL_NOT_LATER",
    "VALIDATION_ERROR"
  )
})
  .annotateMerge(
    operation({
      id: "renewLicense",
      summary: "Renew a license",
      description:
        "Days are added to the expiry if it is in the future, otherwise to now. A license in grace or expired becomes active again; a suspended one stays suspended. A renewal never shortens a license: an expires_at that is not later than the current one is refused.",
      scopes: ["license:write"]
    })
  )
  .annotate(KeyRequired, true)

export const maintenance = HttpApiEndpoint.post("renewMaintenance", "/licenses/:id/maintenance", {
  params,
  headers: keyHeader,
  payload: LicenseMaintenance,
  success: Data(License),
  error: failures(
    "NOT_FOUND",
    "LICENSE_STATE_CONFLICT",
    "LINKAGE_MISMATCH",
    "EXPIRY_NOT_IN_FUTURE",
    "RENEWAL_NOT_LATER",
    "VALIDATION_ERROR"
  )
})
  .annotateMerge(
    operation({
      id: "renewLicenseMaintenance",
      summary: "Renew a perpetual license's maintenance",
      description:
        "Days are added to the end of maintenance if it is in the future, otherwise to now. An end that is not later than the current one is refused, and so is a license without an end of maintenance: PATCH gives it the first.",
      scopes: ["license:write"]
    })
  )
  .annotate(KeyRequired, true)
