import { Effect } from "effect"
import { Api } from "../../Api.ts"
import { withTag } from "../../access/preconditions/TaggedResponse.ts"
import { operationGroup } from "../../access/requests/OperationGroup.ts"
import { ProductUpdate } from "./Product.ts"
import { Products } from "./Products.ts"

export const ProductsHttp = operationGroup(
  Api,
  "products",
  Effect.fn(function* (handlers) {
    const products = yield* Products
    return handlers.handleAll({
      list: ({ query }) => products.list(query),
      create: ({ payload }) => products.create(payload),
      get: ({ params }) => withTag(ProductUpdate, products.get(params.id)),
      update: ({ params, payload }) => withTag(ProductUpdate, products.update(params.id, payload)),
      delete: ({ params }) => products.delete(params.id)
    })
  })
)
