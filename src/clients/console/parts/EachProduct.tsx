/** What the records of a customer show for each product: the API lists them by product. */
import { AsyncResult } from "effect/reactivity"
import type { ReactNode } from "react"
import type { Product } from "../../../vendor/products/Product.ts"
import { lastOf, useAsk } from "../service/Hooks.ts"
import { Loaded, Waiting } from "./Show.tsx"

/** Each product is a request or two. */
export const productsMax = 10

/** The first licenses of a customer, as its page asks for them. */
export const licensesOf = (customer: string) =>
  ({ customer_id: customer, expand: ["product", "policy", "customer"], limit: 20 }) as const

export const EachProduct = (props: {
  readonly customer: string
  readonly children: (product: Product) => ReactNode
  /** What is said if no product shows anything. */
  readonly empty?: string
  /** What is said of products that are not shown. */
  readonly others: ReactNode
}) => {
  const products = useAsk("listProducts", { query: { limit: 200, sort: "code" } })
  const licenses = useAsk("listLicenses", { query: licensesOf(props.customer) })
  if (AsyncResult.isInitial(licenses)) return <Waiting />
  const licensed = new Set(lastOf(licenses)?.items.map(({ product_id }) => product_id))
  return (
    <Loaded of={products}>
      {({ items }) => {
        // First what the customer has licenses for: what it bought is most likely there.
        const [first, rest] = [true, false].map((has) => items.filter(({ id }) => licensed.has(id) === has))
        const isCut = items.length > productsMax
        return (
          <>
            <div className="each">{[...first!, ...rest!].slice(0, productsMax).map(props.children)}</div>
            {isCut ? (
              <p className="quiet">{props.others}</p>
            ) : (
              props.empty !== undefined && <p className="empty">{props.empty}</p>
            )}
          </>
        )
      }}
    </Loaded>
  )
}
