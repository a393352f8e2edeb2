/** Narrows a screen to a product. */
import { Filter, useNarrow } from "../parts/List.tsx"
import { lastOf, useAsk } from "../service/Hooks.ts"

export const ProductFilter = ({ value }: { readonly value: string | undefined }) => {
  const narrow = useNarrow()
  const products = useAsk("listProducts", { query: { limit: 200, sort: "code" } })
  return (
    <Filter
      label="Product"
      value={value}
      choices={lastOf(products)?.items ?? []}
      onChange={(product_id) => narrow({ product_id })}
    />
  )
}
