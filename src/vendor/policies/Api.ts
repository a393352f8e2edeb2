import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { Idempotency } from "../../access/idempotency/Idempotency.ts"
import { ManagementAuthorization, operation } from "../../access/Management.ts"
import { Conditional } from "../../access/preconditions/Conditional.ts"
import { Data, Paged } from "../../contract/api/Envelope.ts"
import { failures } from "../../contract/api/Failure.ts"
import { listQuery, pageQuery } from "../../contract/api/Paging.ts"
import { Decoding, PathTables } from "../../contract/api/Requests.ts"
import { Policy, PolicyCreate, PolicyUpdate, policyFilters, policySorts } from "./Policy.ts"
import { PolicyFeature, PolicyFeatureSet } from "./PolicyFeature.ts"

const params = { id: Schema.String }
const ofProduct = { id: "products" }

const featureParams = { id: Schema.String, feature_id: Schema.String }

const features = [
  HttpApiEndpoint.get("listFeatures", "/policies/:id/features", {
    params,
    query: pageQuery,
    success: Paged(PolicyFeature),
    error: failures("NOT_FOUND")
  }).annotateMerge(
    operation({
      id: "listPolicyFeatures",
      summary: "List the features that come with a policy",
      scopes: ["product:read"]
    })
  ),
  HttpApiEndpoint.put("setFeature", "/policies/:id/features/:feature_id", {
    params: featureParams,
    payload: PolicyFeatureSet,
    success: Data(PolicyFeature),
    error: failures("NOT_FOUND", "LINKAGE_MISMATCH")
  })
    .annotateMerge(
      operation({
        id: "setPolicyFeature",
        summary: "Add a feature to a policy",
        description:
          "Replaces the policy's settings for the feature. Licenses that are created with the policy or moved to it from now on get the feature; existing licenses do not change.",
        scopes: ["product:write"]
      })
    )
    .annotate(PathTables, { id: "policies", feature_id: "features" }),
  HttpApiEndpoint.delete("removeFeature", "/policies/:id/features/:feature_id", {
    params: featureParams,
    success: HttpApiSchema.NoContent,
    error: failures("NOT_FOUND")
  }).annotateMerge(
    operation({
      id: "removePolicyFeature",
      summary: "Remove a feature from a policy",
      description: "Licenses that have the feature keep it.",
      scopes: ["product:write"]
    })
  )
] as const

export class PoliciesApi extends HttpApiGroup.make("policies")
  .add(
    HttpApiEndpoint.get("list", "/products/:id/policies", {
      params,
      query: listQuery(policySorts, policyFilters),
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
      .annotateMerge(
        operation({
          id: "createPolicy",
          summary: "Create a policy",
          description:
            "A policy sets the rules of its licenses: type, term, limits and what is allowed. A perpetual license never expires, but its maintenance may. time_limited, subscription and trial licenses expire: at an expires_at of their own, or after the policy's duration_days. A consumption license is limited by its quotas alone.",
          scopes: ["product:write"]
        })
      )
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
    })
      .middleware(Conditional)
      .annotateMerge(
        operation({
          id: "updatePolicy",
          summary: "Update a policy",
          description:
            "Applies to the policy's licenses at once. A lowered limit deactivates no device. license_type cannot be changed while licenses use the policy. duration_days changes no expiry that is set.",
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
    ),
    ...features
  )
  .middleware(Decoding)
  .middleware(Idempotency)
  .middleware(ManagementAuthorization)
  .annotate(PathTables, { id: "policies" })
  .annotate(OpenApi.Description, "The rules that licenses follow.") {}
