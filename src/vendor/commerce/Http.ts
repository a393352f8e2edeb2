import { Effect } from "effect"
import { Api } from "../../Api.ts"
import { withTag } from "../../access/preconditions/TaggedResponse.ts"
import { operationGroup } from "../../access/requests/OperationGroup.ts"
import { ExpandedPurchases } from "./ExpandedPurchases.ts"
import { OrderUpdate } from "./Order.ts"
import { Orders } from "./Orders.ts"
import { SubscriptionUpdate } from "./Subscription.ts"
import { Subscriptions } from "./Subscriptions.ts"

export const CommerceHttp = operationGroup(
  Api,
  "commerce",
  Effect.fn(function* (handlers) {
    const orders = yield* Orders
    const subscriptions = yield* Subscriptions
    const { expanded } = yield* ExpandedPurchases
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
