/** The filters of lists of orders and subscriptions. Both are lists of one product: the address's, or else the first. */
import type { ReactNode } from "react"
import { choicesOf } from "../parts/Fields.tsx"
import { Filter, TextFilter, useNarrow } from "../parts/List.tsx"
import { ProductFilter } from "../parts/ListFields.tsx"
import { CustomerName, SubscriptionName } from "../parts/Names.tsx"
import { Loaded } from "../parts/Show.tsx"
import { useAsk } from "../service/Hooks.ts"

interface Filters {
  readonly product_id?: string
  readonly external_id?: string
  readonly external_system?: string
  readonly customer_id?: string
  readonly subscription_id?: string
  readonly status?: string
}

/** The product whose records a list shows. */
export const OfProduct = (props: {
  readonly product: string | undefined
  readonly children: (product: string) => ReactNode
}) => {
  const products = useAsk("listProducts", { query: { limit: 200, sort: "code" } })
  if (props.product !== undefined) return props.children(props.product)
  return (
    <Loaded of={products}>
      {({ items: [first] }) =>
        first === undefined ? (
          <p className="empty">There is no product yet: create one first.</p>
        ) : (
          props.children(first.id)
        )
      }
    </Loaded>
  )
}

export const PurchaseFilters = (props: {
  readonly search: Filters
  readonly product: string
  readonly statuses: ReadonlyArray<string>
}) => {
  const { product, search, statuses } = props
  const narrow = useNarrow()
  return (
    <>
      <search className="row filters" aria-label="Filters">
        <ProductFilter value={product} needed cleared={{ subscription_id: undefined }} />
        <TextFilter label="Number" value={search.external_id} onChange={(external_id) => narrow({ external_id })} />
        <TextFilter
          label="System"
          value={search.external_system}
          onChange={(external_system) => narrow({ external_system })}
        />
        <Filter
          label="Status"
          value={search.status}
          choices={choicesOf(statuses)}
          onChange={(status) => narrow({ status })}
        />
      </search>
      {search.customer_id !== undefined && (
        <Narrowed label="customer" onClear={() => narrow({ customer_id: undefined })}>
          <CustomerName id={search.customer_id} />
        </Narrowed>
      )}
      {search.subscription_id !== undefined && (
        <Narrowed label="subscription" onClear={() => narrow({ subscription_id: undefined })}>
          <SubscriptionName id={search.subscription_id} />
        </Narrowed>
      )}
    </>
  )
}

/** A filter that a link set. */
const Narrowed = (props: { readonly label: string; readonly children: ReactNode; readonly onClear: () => void }) => (
  <div className="row">
    Only of the {props.label} {props.children}
    <button type="button" onClick={props.onClear}>
      Show all
    </button>
  </div>
)
