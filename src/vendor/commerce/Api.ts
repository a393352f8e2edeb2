/** The operations on orders and subscriptions: records of other systems. They never change a license. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { Idempotency } from "../../access/idempotency/Idempotency.ts"
import { ManagementAuthorization, operation } from "../../access/Management.ts"
import { Conditional } from "../../access/preconditions/Conditional.ts"
import { Data, Paged } from "../../contract/api/Envelope.ts"
import { failures } from "../../contract/api/Failure.ts"
import { expandOf, listQuery } from "../../contract/api/Paging.ts"
import { Decoding, PathTables } from "../../contract/api/Requests.ts"
import { Order, OrderCreate, OrderUpdate, orderFilters, orderSorts } from "./Order.ts"
import {
  Subscription,
  SubscriptionCreate,
  SubscriptionUpdate,
  subscriptionFilters,
  subscriptionSorts
} from "./Subscription.ts"

const params = { id: Schema.String }
/** The scope of the lists does not allow reading customers. */
const expandScopes = ["license:read"] as const
const expand = Schema.optionalKey(expandOf(["customer"], " It also needs the scope license:read."))

const orders = [
  HttpApiEndpoint.get("listOrders", "/products/:id/orders", {
    params,
    query: listQuery(orderSorts, { ...orderFilters, expand }),
    success: Paged(Order),
    error: failures("NOT_FOUND")
  })
    .annotateMerge(
      operation({ id: "listOrders", summary: "List a product's orders", scopes: ["product:read"], expandScopes })
    )
    .annotate(PathTables, { id: "products" }),
  HttpApiEndpoint.post("createOrder", "/products/:id/orders", {
    params,
    payload: OrderCreate,
    success: Data(Order).pipe(HttpApiSchema.status(201)),
    error: failures("NOT_FOUND", "CONFLICT", "DUPLICATE_EXTERNAL_ID", "LINKAGE_MISMATCH", "VALIDATION_ERROR")
  })
    .annotateMerge(
      operation({
        id: "createOrder",
        summary: "Record an order",
        description:
          "Mirrors an order of another system. It changes no license by itself; licenses and renewals link to it. external_id is unique in its product and external_system.",
        scopes: ["product:write"]
      })
    )
    .annotate(PathTables, { id: "products" }),
  HttpApiEndpoint.get("getOrder", "/orders/:id", {
    params,
    success: Data(Order),
    error: failures("NOT_FOUND")
  })
    .annotateMerge(operation({ id: "getOrder", summary: "Get an order", scopes: ["product:read"] }))
    .annotate(PathTables, { id: "orders" }),
  HttpApiEndpoint.patch("updateOrder", "/orders/:id", {
    params,
    payload: OrderUpdate,
    success: Data(Order),
    error: failures("NOT_FOUND", "CONFLICT", "DUPLICATE_EXTERNAL_ID", "LINKAGE_MISMATCH", "VALIDATION_ERROR")
  })
    .middleware(Conditional)
    .annotateMerge(
      operation({
        id: "updateOrder",
        summary: "Update an order",
        description:
          "Omitted fields keep their values. Any status may follow any other, and no license changes by itself.",
        scopes: ["product:write"]
      })
    )
    .annotate(PathTables, { id: "orders" })
] as const

const subscriptions = [
  HttpApiEndpoint.get("listSubscriptions", "/products/:id/subscriptions", {
    params,
    query: listQuery(subscriptionSorts, { ...subscriptionFilters, expand }),
    success: Paged(Subscription),
    error: failures("NOT_FOUND")
  })
    .annotateMerge(
      operation({
        id: "listSubscriptions",
        summary: "List a product's subscriptions",
        scopes: ["product:read"],
        expandScopes
      })
    )
    .annotate(PathTables, { id: "products" }),
  HttpApiEndpoint.post("createSubscription", "/products/:id/subscriptions", {
    params,
    payload: SubscriptionCreate,
    success: Data(Subscription).pipe(HttpApiSchema.status(201)),
    error: failures("NOT_FOUND", "CONFLICT", "DUPLICATE_EXTERNAL_ID", "VALIDATION_ERROR")
  })
    .annotateMerge(
      operation({
        id: "createSubscription",
        summary: "Record a subscription",
        description:
          "Mirrors a subscription of another system. It changes no license by itself; licenses and renewals link to it, and quotas may follow its current period. external_id is unique in its product and external_system.",
        scopes: ["product:write"]
      })
    )
    .annotate(PathTables, { id: "products" }),
  HttpApiEndpoint.get("getSubscription", "/subscriptions/:id", {
    params,
    success: Data(Subscription),
    error: failures("NOT_FOUND")
  })
    .annotateMerge(operation({ id: "getSubscription", summary: "Get a subscription", scopes: ["product:read"] }))
    .annotate(PathTables, { id: "subscriptions" }),
  HttpApiEndpoint.patch("updateSubscription", "/subscriptions/:id", {
    params,
    payload: SubscriptionUpdate,
    success: Data(Subscription),
    error: failures("NOT_FOUND", "CONFLICT", "DUPLICATE_EXTERNAL_ID", "VALIDATION_ERROR")
  })
    .middleware(Conditional)
    .annotateMerge(
      operation({
        id: "updateSubscription",
        summary: "Update a subscription",
        description:
          "A change from the status canceled clears canceled_at. A change to it without canceled_at stores the time of the request. With observed_at, a request whose facts are older than the stored ones changes nothing.",
        scopes: ["product:write"]
      })
    )
    .annotate(PathTables, { id: "subscriptions" })
] as const

export class CommerceApi extends HttpApiGroup.make("commerce")
  .add(...orders, ...subscriptions)
  .middleware(Decoding)
  .middleware(Idempotency)
  .middleware(ManagementAuthorization)
  .annotate(OpenApi.Description, "Orders and subscriptions of other systems. Licenses can link to them.") {}
