import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { Idempotency } from "../../access/idempotency/Idempotency.ts"
import { ManagementAuthorization, operation } from "../../access/Management.ts"
import { Conditional } from "../../access/preconditions/Conditional.ts"
import { Data, Paged } from "../../contract/api/Envelope.ts"
import { failures } from "../../contract/api/Failure.ts"
import { listQuery } from "../../contract/api/Paging.ts"
import { Decoding, PathTables } from "../../contract/api/Requests.ts"
import { Feature, FeatureCreate, FeatureUpdate, featureFilters, featureSorts } from "./Feature.ts"

const params = { id: Schema.String }
const ofProduct = { id: "products" }

export class FeaturesApi extends HttpApiGroup.make("features")
  .add(
    HttpApiEndpoint.get("list", "/products/:id/features", {
      params,
      query: listQuery(featureSorts, featureFilters),
      success: Paged(Feature),
      error: failures("NOT_FOUND")
    })
      .annotateMerge(operation({ id: "listFeatures", summary: "List a product's features", scopes: ["product:read"] }))
      .annotate(PathTables, ofProduct),
    HttpApiEndpoint.post("create", "/products/:id/features", {
      params,
      payload: FeatureCreate,
      success: Data(Feature).pipe(HttpApiSchema.status(201)),
      error: failures("NOT_FOUND", "DUPLICATE_CODE")
    })
      .annotateMerge(
        operation({
          id: "createFeature",
          summary: "Create a feature",
          description:
            "A feature is a part of the product that a license includes or counts. A license has it through its policy or an assignment of its own, with an optional quota. Its code, unique in the product, names it in consume and in signed responses.",
          scopes: ["product:write"]
        })
      )
      .annotate(PathTables, ofProduct),
    HttpApiEndpoint.get("get", "/features/:id", {
      params,
      success: Data(Feature),
      error: failures("NOT_FOUND")
    }).annotateMerge(operation({ id: "getFeature", summary: "Get a feature", scopes: ["product:read"] })),
    HttpApiEndpoint.patch("update", "/features/:id", {
      params,
      payload: FeatureUpdate,
      success: Data(Feature),
      error: failures("NOT_FOUND", "DUPLICATE_CODE")
    })
      .middleware(Conditional)
      .annotateMerge(
        operation({
          id: "updateFeature",
          summary: "Update a feature",
          description: "Licenses with the feature show its new code and name from their next use.",
          scopes: ["product:write"]
        })
      ),
    HttpApiEndpoint.delete("delete", "/features/:id", {
      params,
      success: HttpApiSchema.NoContent,
      error: failures("NOT_FOUND", "RESOURCE_IN_USE")
    }).annotateMerge(
      operation({
        id: "deleteFeature",
        summary: "Delete a feature",
        description: "Refused while it is assigned to a license or comes with a policy.",
        scopes: ["product:write"]
      })
    )
  )
  .middleware(Decoding)
  .middleware(Idempotency)
  .middleware(ManagementAuthorization)
  .annotate(PathTables, { id: "features" })
  .annotate(OpenApi.Description, "The features that a product's licenses can grant.") {}
