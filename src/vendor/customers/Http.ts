import { Effect } from "effect"
import { Api } from "../../Api.ts"
import { withTag } from "../../access/preconditions/TaggedResponse.ts"
import { operationGroup } from "../../access/requests/OperationGroup.ts"
import { CustomerUpdate } from "./Customer.ts"
import { Customers } from "./Customers.ts"
import { Erasures } from "./erasure/Erasures.ts"

export const CustomersHttp = operationGroup(
  Api,
  "customers",
  Effect.fn(function* (handlers) {
    const customers = yield* Customers
    const erasures = yield* Erasures
    return handlers.handleAll({
      list: ({ query }) => customers.list(query),
      create: ({ payload }) => customers.create(payload),
      get: ({ params }) => withTag(CustomerUpdate, customers.get(params.id)),
      update: ({ params, payload }) => withTag(CustomerUpdate, customers.update(params.id, payload)),
      delete: ({ params }) => customers.delete(params.id),
      erase: ({ params }) => erasures.erase(params.id)
    })
  })
)
