/** The operations on product versions. A version is created or deleted, never changed: a release is a fact. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { Idempotency } from "../../access/idempotency/Idempotency.ts"
import { ManagementAuthorization, operation } from "../../access/Management.ts"
import { Data, Paged } from "../../contract/api/Envelope.ts"
import { failures } from "../../contract/api/Failure.ts"
import { listQuery } from "../../contract/api/Paging.ts"
import { Decoding, PathTables } from "../../contract/api/Requests.ts"
import { ProductVersion, ProductVersionCreate, versionFilters, versionSorts } from "./ProductVersion.ts"

const ofProduct = { id: Schema.String }
const params = { ...ofProduct, version_id: Schema.String }

export class VersionsApi extends HttpApiGroup.make("versions")
  .add(
    HttpApiEndpoint.get("list", "/products/:id/versions", {
      params: ofProduct,
      query: listQuery(versionSorts, versionFilters),
      success: Paged(ProductVersion),
      error: failures("NOT_FOUND")
    }).annotateMerge(
      operation({ id: "listProductVersions", summary: "List a product's versions", scopes: ["product:read"] })
    ),
    HttpApiEndpoint.post("create", "/products/:id/versions", {
      params: ofProduct,
      payload: ProductVersionCreate,
      success: Data(ProductVersion).pipe(HttpApiSchema.status(201)),
      error: failures("NOT_FOUND", "DUPLICATE_VERSION")
    }).annotateMerge(
      operation({
        id: "createProductVersion",
        summary: "Create a product version",
        description: "The first version starts the product's catalog: from then on, unknown versions are refused.",
        scopes: ["product:write"]
      })
    ),
    HttpApiEndpoint.get("get", "/products/:id/versions/:version_id", {
      params,
      success: Data(ProductVersion),
      error: failures("NOT_FOUND")
    }).annotateMerge(
      operation({ id: "getProductVersion", summary: "Get a product version", scopes: ["product:read"] })
    ),
    HttpApiEndpoint.delete("delete", "/products/:id/versions/:version_id", {
      params,
      success: HttpApiSchema.NoContent,
      error: failures("NOT_FOUND")
    }).annotateMerge(
      operation({
        id: "deleteProductVersion",
        summary: "Delete a product version",
        description: "A product without versions has no catalog, and its licenses allow every version.",
        scopes: ["product:write"]
      })
    )
  )
  .middleware(Decoding)
  .middleware(Idempotency)
  .middleware(ManagementAuthorization)
  .annotate(PathTables, { id: "products" })
  .annotate(OpenApi.Description, "The catalog of a product's versions.") {}
