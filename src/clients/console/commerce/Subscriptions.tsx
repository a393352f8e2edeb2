/** The list of a product's subscriptions. */
import { getRouteApi, useNavigate } from "@tanstack/react-router"
import { SubscriptionStatus } from "../../../vendor/commerce/Subscription.ts"
import { Action } from "../parts/Dialog.tsx"
import { Heading } from "../parts/Show.tsx"
import { change, useAsk, useMay } from "../service/Hooks.ts"
import { now } from "../service/Service.ts"
import { isPart, List, pageOf } from "../tables/List.tsx"
import { OfProduct, PurchaseFilters } from "./PurchaseFilters.tsx"
import type { SubscriptionSearch } from "./PurchaseSearch.ts"
import { newSubscriptionFields, type SubscriptionPayload, subscriptionColumns } from "./SubscriptionFields.tsx"

const route = getRouteApi("/subscriptions")

export const Subscriptions = () => {
  const search: SubscriptionSearch = route.useSearch()
  return (
    <OfProduct
      product={search.product_id}
      title="Subscriptions"
      hint="A subscription belongs to a product: create one first."
    >
      {(product) => <SubscriptionsOf product={product} search={search} />}
    </OfProduct>
  )
}

const SubscriptionsOf = (props: { readonly product: string; readonly search: SubscriptionSearch }) => {
  const { product, search } = props
  const { product_id: _, ...filters } = search
  const may = useMay()
  const navigate = useNavigate()
  const page = useAsk("listSubscriptions", {
    params: { id: product },
    query: { ...pageOf(filters), ...(may("license:read") ? { expand: ["customer"] as const } : {}) }
  })
  return (
    <>
      <Heading title="Subscriptions">
        {may("product:write") && (
          <Action
            label="New subscription"
            send="Create subscription"
            primary
            effect="The subscription is recorded for the product that is chosen here. It issues no license: do that on the subscription’s page."
            fields={newSubscriptionFields(may("license:read"))}
            initial={{ status: "active", current_period_start: now() }}
            run={(payload: SubscriptionPayload) => change("createSubscription", { params: { id: product }, payload })}
            then={({ id }) => void navigate({ to: "/subscriptions/$id", params: { id } })}
          />
        )}
      </Heading>
      <PurchaseFilters list="Subscriptions" search={search} product={product} statuses={SubscriptionStatus.literals} />
      <List
        caption="Subscriptions"
        noun="subscription"
        empty={
          isPart({ ...search, product_id: undefined })
            ? "No subscription matches. Choose another product, or widen the filters."
            : "This product has no subscriptions yet. Choose another one, or record the first."
        }
        columns={subscriptionColumns(may("license:read"))}
        page={page}
        search={search}
      />
    </>
  )
}
