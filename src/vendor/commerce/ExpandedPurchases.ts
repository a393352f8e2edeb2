/** Orders and subscriptions with their customers: one statement for a whole page. */
import { Context, Effect, Layer } from "effect"
import type { Page } from "../../contract/api/Paging.ts"
import { Customers } from "../customers/Customers.ts"
import type { ExpandedCustomer } from "./PurchaseLink.ts"

interface Purchase {
  readonly customer_id?: string
}

export class ExpandedPurchases extends Context.Service<
  ExpandedPurchases,
  {
    expanded<A extends Purchase, E>(
      expand: ReadonlyArray<"customer"> | undefined,
      list: Effect.Effect<Page<A>, E>
    ): Effect.Effect<Page<A & ExpandedCustomer>, E>
  }
>()("licensing/vendor/commerce/ExpandedPurchases") {
  static readonly layer = Layer.effect(
    ExpandedPurchases,
    Effect.gen(function* () {
      const customers = yield* Customers

      const expanded = Effect.fn("ExpandedPurchases.expanded")(function* <A extends Purchase, E>(
        expand: ReadonlyArray<"customer"> | undefined,
        list: Effect.Effect<Page<A>, E>
      ) {
        if (expand === undefined) return yield* list
        const page = yield* list
        const ids = [...new Set(page.items.flatMap(({ customer_id = [] }) => customer_id))]
        const found = new Map((yield* customers.many(ids)).map((customer) => [customer.id, customer]))
        const items = page.items.map((purchase) => {
          const customer = found.get(purchase.customer_id ?? "")
          return { ...purchase, expanded: customer === undefined ? {} : { customer } }
        })
        return { ...page, items }
      })

      return ExpandedPurchases.of({ expanded })
    })
  )
}
