/** The operations on policies. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { Data, Paged } from "../../api/Envelope.ts"
import { failures } from "../../api/Failure.ts"
import { pageQuery } from "../../api/Paging.ts"
import { Decoding, PathTables } from "../../api/Requests.ts"
import { Idempotency } from "../../auth/idempotency/Idempotency.ts"
import { ManagementAuthorization, operation } from "../../auth/Management.ts"
import { LicenseType, Policy, PolicyCreate, PolicyUpdate } from "./Policy.ts"

const params = { id: Schema.String }
const ofProduct = { id: "products" }

export class PoliciesApi extends HttpApiGroup.make("policies")
  .add(
    HttpApiEndpoint.get("list", "/products/:id/policies", {
      params,
      query: {
        ...pageQuery,
        code: Schema.optionalKey(Schema.String),
        license_type: Schema.optionalKey(LicenseType)
      },
      success: Paged(Policy),
      error: failures("NOT_FOUND")
    })
      .annotateMerge(operation({ id: "listPolicies", summary: "List a product's policies", scopes: ["product:read"] }))
      .annotate(PathTables, ofProduct),
    HttpApiEndpoint.post("create", "/products/:id/policies", {
      params,
      payload: PolicyCreate,
      success: Data(Policy).pipe(HttpApiSchema.status(201)),
      error: failures("NOT_FOUND", "DUPLICATE_CODE")
    })
      .annotateMerge(operation({ id: "createPolicy", summary: "Create a policy", scopes: ["product:write"] }))
      .annotate(PathTables, ofProduct),
    HttpApiEndpoint.get("get", "/policies/:id", {
      params,
      success: Data(Policy),
      error: failures("NOT_FOUND")
    }).annotateMerge(operation({ id: "getPolicy", summary: "Get a policy", scopes: ["product:read"] })),
    HttpApiEndpoint.patch("update", "/policies/:id", {
      params,
      payload: PolicyUpdate,
      success: Data(Policy),
      error: failures("NOT_FOUND", "DUPLICATE_CODE", "RESOURCE_IN_USE")
    }).annotateMerge(
      operation({
        id: "updatePolicy",
        summary: "Update a policy",
        description:
          "Applies to the policy's licenses at once. A lowered limit deactivates no device. license_type cannot be changed while licenses use the policy.",
        scopes: ["product:write"]
      })
    ),
    HttpApiEndpoint.delete("delete", "/policies/:id", {
      params,
      success: HttpApiSchema.NoContent,
      error: failures("NOT_FOUND", "RESOURCE_IN_USE")
    }).annotateMerge(
      operation({
        id: "deletePolicy",
        summary: "Delete a policy",
        description: "Refused while licenses use it.",
        scopes: ["product:write"]
      })
    )
  )
  .middleware(Decoding)
  .middleware(Idempotency)
  .middleware(ManagementAuthorization)
  .annotate(PathTables, { id: "policies" })
  .annotate(OpenApi.Description, "The rules that licenses follow.") {}
