import { Effect } from "effect"
import { Api } from "../../Api.ts"
import { withTag } from "../../access/preconditions/TaggedResponse.ts"
import { operationGroup } from "../../access/requests/OperationGroup.ts"
import type { Page } from "../../contract/api/Paging.ts"
import { Customers } from "../customers/Customers.ts"
import { OrderUpdate } from "./Order.ts"
import { Orders } from "./Orders.ts"
import type { ExpandedCustomer } from "./PurchaseLink.ts"
import { SubscriptionUpdate } from "./Subscription.ts"
import { Subscriptions } from "./Subscriptions.ts"

export const CommerceHttp = operationGroup(
  Api,
  "commerce",
  Effect.fn(function* (handlers) {
    const orders = yield* Orders
    const subscriptions = yield* Subscriptions
    const expanded = expandedWith(yield* Customers)
    return handlers.handleAll({
      listOrders: ({ params, query: { expand, ...filter } }) => expanded(expand, orders.list(params.id, filter)),
      createOrder: ({ params, payload }) => orders.create(params.id, payload),
      getOrder: ({ params }) => withTag(OrderUpdate, orders.get(params.id)),
      updateOrder: ({ params, payload }) => withTag(OrderUpdate, orders.update(params.id, payload)),
      listSubscriptions: ({ params, query: { expand, ...filter } }) =>
        expanded(expand, subscriptions.list(params.id, filter)),
      createSubscription: ({ params, payload }) => subscriptions.create(params.id, payload),
      getSubscription: ({ params }) => withTag(SubscriptionUpdate, subscriptions.get(params.id)),
      updateSubscription: ({ params, payload }) => withTag(SubscriptionUpdate, subscriptions.update(params.id, payload))
    })
  })
)

interface Purchase {
  readonly customer_id?: string
}

/** A page of orders or subscriptions with their customers: one statement for all. */
const expandedWith = ({ many }: Customers["Service"]) =>
  Effect.fnUntraced(function* <A extends Purchase, E>(
    expand: ReadonlyArray<"customer"> | undefined,
    list: Effect.Effect<Page<A>, E>
  ) {
    const page: Page<A & ExpandedCustomer> = yield* list
    if (expand === undefined) return page
    const ids = [...new Set(page.items.flatMap(({ customer_id = [] }) => customer_id))]
    const found = new Map((yield* many(ids)).map((customer) => [customer.id, customer]))
    const items = page.items.map((purchase) => {
      const customer = found.get(purchase.customer_id ?? "")
      return { ...purchase, expanded: customer === undefined ? {} : { customer } }
    })
    return { ...page, items }
  })
