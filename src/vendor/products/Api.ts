import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { Idempotency } from "../../access/idempotency/Idempotency.ts"
import { ManagementAuthorization, operation } from "../../access/Management.ts"
import { Conditional } from "../../access/preconditions/Conditional.ts"
import { Data, Paged } from "../../contract/api/Envelope.ts"
import { failures } from "../../contract/api/Failure.ts"
import { listQuery } from "../../contract/api/Paging.ts"
import { Decoding, PathTables } from "../../contract/api/Requests.ts"
import { Product, ProductCreate, ProductUpdate, productSorts } from "./Product.ts"

const params = { id: Schema.String }

export class ProductsApi extends HttpApiGroup.make("products")
  .add(
    HttpApiEndpoint.get("list", "/products", {
      query: listQuery(productSorts, { code: Schema.optionalKey(Schema.String) }),
      success: Paged(Product)
    }).annotateMerge(
      operation({ id: "listProducts", summary: "List products", scopes: ["product:read"], reach: "rows" })
    ),
    HttpApiEndpoint.post("create", "/products", {
      payload: ProductCreate,
      success: Data(Product).pipe(HttpApiSchema.status(201)),
      error: failures("DUPLICATE_CODE")
    }).annotateMerge(
      operation({
        id: "createProduct",
        summary: "Create a product",
        description:
          "A product is what the vendor sells. Policies, features, versions, orders and licenses belong to one. Its code is unique, and applications name it as product_code.",
        scopes: ["product:write"],
        reach: "forbidden"
      })
    ),
    HttpApiEndpoint.get("get", "/products/:id", {
      params,
      success: Data(Product),
      error: failures("NOT_FOUND")
    }).annotateMerge(operation({ id: "getProduct", summary: "Get a product", scopes: ["product:read"] })),
    HttpApiEndpoint.patch("update", "/products/:id", {
      params,
      payload: ProductUpdate,
      success: Data(Product),
      error: failures("NOT_FOUND", "DUPLICATE_CODE")
    })
      .middleware(Conditional)
      .annotateMerge(
        operation({
          id: "updateProduct",
          summary: "Update a product",
          description:
            "Omitted fields keep their values. Applications that send or compare product_code need the new code.",
          scopes: ["product:write"]
        })
      ),
    HttpApiEndpoint.delete("delete", "/products/:id", {
      params,
      success: HttpApiSchema.NoContent,
      error: failures("NOT_FOUND", "RESOURCE_IN_USE")
    }).annotateMerge(
      operation({
        id: "deleteProduct",
        summary: "Delete a product",
        description:
          "Refused while the product has policies, features, versions, custom fields, orders, subscriptions or licenses.",
        scopes: ["product:write"]
      })
    )
  )
  .middleware(Decoding)
  .middleware(Idempotency)
  .middleware(ManagementAuthorization)
  .annotate(PathTables, { id: "products" })
  .annotate(OpenApi.Description, "What licenses are issued for.") {}
