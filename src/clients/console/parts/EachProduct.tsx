/** What the records of a customer show for each product: the API lists them by product. */
import { Link } from "@tanstack/react-router"
import type { ReactNode } from "react"
import type { Product } from "../../../vendor/products/Product.ts"
import { useAsk } from "../service/Hooks.ts"
import { Loaded } from "./Show.tsx"

/** Each product is a request or two. */
const productsMax = 10

export const EachProduct = (props: {
  readonly children: (product: Product) => ReactNode
  /** What is said if no product shows anything. */
  readonly empty?: string
}) => {
  const products = useAsk("listProducts", { query: { limit: productsMax, sort: "code" } })
  return (
    <Loaded of={products}>
      {({ items, next }) => (
        <>
          <div className="each">{items.map(props.children)}</div>
          {props.empty !== undefined && <p className="empty">{props.empty}</p>}
          {next !== undefined && (
            <p className="quiet">
              Only the first {productsMax} products are shown here: the lists of <Link to="/orders">orders</Link> and{" "}
              <Link to="/subscriptions">subscriptions</Link> have the others.
            </p>
          )}
        </>
      )}
    </Loaded>
  )
}
