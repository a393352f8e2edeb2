/** The filters of lists of orders and subscriptions. Both are lists of one product: the address's, or else the likely one. */
import type { ReactNode } from "react"
import { ChooseProduct, NoProduct } from "../parts/Empty.tsx"
import { choicesOf } from "../parts/Fields.tsx"
import { Heading, Loaded } from "../parts/Show.tsx"
import { lastOf, useAsk } from "../service/Hooks.ts"
import { likelyProduct } from "../service/Recent.ts"
import { Filter, TextFilter, useNarrow } from "../tables/List.tsx"
import { ProductFilter } from "../tables/ListFields.tsx"
import { RecordChips } from "../tables/RecordChip.tsx"
import { Views } from "../tables/Views.tsx"

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
  readonly title: string
  /** Explains the records while there is no product yet. */
  readonly hint: string
  readonly children: (product: string) => ReactNode
}) => {
  const products = useAsk("listProducts", { query: { limit: 200, sort: "code" } })
  const product = props.product ?? likelyProduct(lastOf(products)?.items ?? [])?.id
  if (product !== undefined) return props.children(product)
  return (
    <>
      <Heading title={props.title} />
      <Loaded of={products}>
        {({ items }) =>
          items.length === 0 ? (
            <NoProduct hint={props.hint} />
          ) : (
            <>
              <search className="row filters" aria-label="Filters">
                <ProductFilter value={undefined} needed />
              </search>
              <ChooseProduct hint="The list shows one product at a time." />
            </>
          )
        }
      </Loaded>
    </>
  )
}

export const PurchaseFilters = (props: {
  readonly list: string
  readonly search: Filters
  readonly product: string
  readonly statuses: ReadonlyArray<string>
}) => {
  const { product, search, statuses } = props
  const narrow = useNarrow()
  return (
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
      <RecordChips search={search} />
      <Views list={props.list} search={search} />
    </search>
  )
}
