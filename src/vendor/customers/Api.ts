/** The operations on customers. Support works with them daily, so the scopes are those of licenses. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { Idempotency } from "../../access/idempotency/Idempotency.ts"
import { ManagementAuthorization, operation } from "../../access/Management.ts"
import { Conditional } from "../../access/preconditions/Conditional.ts"
import { Data, Paged } from "../../contract/api/Envelope.ts"
import { failures } from "../../contract/api/Failure.ts"
import { withMetadataFilter } from "../../contract/api/Metadata.ts"
import { listQuery } from "../../contract/api/Paging.ts"
import { Decoding, PathTables } from "../../contract/api/Requests.ts"
import { Customer, CustomerCreate, CustomerUpdate, customerSorts } from "./Customer.ts"
import { CustomerErasure } from "./erasure/Erasure.ts"

const params = { id: Schema.String }

export class CustomersApi extends HttpApiGroup.make("customers")
  .add(
    HttpApiEndpoint.get("list", "/customers", {
      query: withMetadataFilter(
        listQuery(customerSorts, {
          code: Schema.optionalKey(Schema.String),
          email: Schema.optionalKey(Schema.String)
        })
      ),
      success: Paged(Customer)
    }).annotateMerge(
      operation({ id: "listCustomers", summary: "List customers", scopes: ["license:read"], reach: "rows" })
    ),
    HttpApiEndpoint.post("create", "/customers", {
      payload: CustomerCreate,
      success: Data(Customer).pipe(HttpApiSchema.status(201)),
      error: failures("DUPLICATE_CODE")
    }).annotateMerge(
      operation({
        id: "createCustomer",
        summary: "Create a customer",
        description:
          "A customer is who licenses, orders and subscriptions are for. Its code is unique, for example its id in another system.",
        scopes: ["license:write"],
        reach: "forbidden"
      })
    ),
    HttpApiEndpoint.get("get", "/customers/:id", {
      params,
      success: Data(Customer),
      error: failures("NOT_FOUND")
    }).annotateMerge(operation({ id: "getCustomer", summary: "Get a customer", scopes: ["license:read"] })),
    HttpApiEndpoint.patch("update", "/customers/:id", {
      params,
      payload: CustomerUpdate,
      success: Data(Customer),
      error: failures("NOT_FOUND", "DUPLICATE_CODE", "CONFLICT", "TOKEN_SCOPE_DENIED")
    })
      .middleware(Conditional)
      .annotateMerge(
        operation({
          id: "updateCustomer",
          summary: "Update a customer",
          description:
            "Omitted fields keep their values. A license's own customer_name and customer_email do not change.",
          scopes: ["license:write"]
        })
      ),
    HttpApiEndpoint.delete("delete", "/customers/:id", {
      params,
      success: HttpApiSchema.NoContent,
      error: failures("NOT_FOUND", "RESOURCE_IN_USE", "CONFLICT")
    }).annotateMerge(
      operation({
        id: "deleteCustomer",
        summary: "Delete a customer",
        description:
          "Deletes the customer with its custom field values. Refused while licenses, orders or subscriptions link to it.",
        scopes: ["license:write"]
      })
    ),
    HttpApiEndpoint.post("erase", "/customers/:id/erase", {
      params,
      success: Data(CustomerErasure),
      error: failures("NOT_FOUND")
    }).annotateMerge(
      operation({
        id: "eraseCustomer",
        summary: "Erase a customer's personal data",
        description:
          "Removes the name, email, metadata and custom field values of the customer, and the names and emails on its " +
          "licenses, for good: from records, events, stored responses and exports. Its licenses stay valid; revoked ones " +
          "are unlinked. While status is erasing, the customer cannot be changed or get licenses, orders " +
          "or subscriptions.",
        scopes: ["admin"]
      })
    )
  )
  .middleware(Decoding)
  .middleware(Idempotency)
  .middleware(ManagementAuthorization)
  .annotate(PathTables, { id: "customers" })
  .annotate(OpenApi.Description, "The customers that licenses belong to.") {}
