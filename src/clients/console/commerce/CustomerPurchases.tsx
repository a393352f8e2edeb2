/** The orders and subscriptions of a customer, by product. */
import { Link } from "@tanstack/react-router"
import type { Customer } from "../../../vendor/customers/Customer.ts"
import type { Product } from "../../../vendor/products/Product.ts"
import { EachProduct, productsMax } from "../parts/EachProduct.tsx"
import { Loaded, Section, Table } from "../parts/Show.tsx"
import { Refund } from "../refunds/Refund.tsx"
import { useAsk } from "../service/Hooks.ts"
import { orderColumns } from "./OrderFields.tsx"
import { subscriptionColumns } from "./SubscriptionFields.tsx"

export const CustomerPurchases = ({ of: { id } }: { readonly of: Customer }) => (
  <Section id="purchases" title="Orders and subscriptions">
    <EachProduct
      customer={id}
      empty="No order and no subscription belongs to this customer."
      others={
        <>
          Only {productsMax} products are shown here: the lists of <Link to="/orders">orders</Link> and{" "}
          <Link to="/subscriptions">subscriptions</Link> have the others.
        </>
      }
    >
      {(product) => <Purchases key={product.id} customer={id} product={product} />}
    </EachProduct>
  </Section>
)

const Purchases = ({ customer, product }: { readonly customer: string; readonly product: Product }) => {
  const request = { params: { id: product.id }, query: { customer_id: customer, limit: 20 } }
  const orders = useAsk("listOrders", request)
  const subscriptions = useAsk("listSubscriptions", request)
  const search = { product_id: product.id, customer_id: customer }
  return (
    <>
      <Loaded of={orders}>
        {({ items, next }) =>
          items.length > 0 && (
            <>
              <h3>Orders of {product.name}</h3>
              <Table
                caption={`Orders of ${product.name}`}
                columns={[
                  ...orderColumns(false),
                  { title: "Actions", quiet: true, number: true, show: (order) => <Refund order={order} /> }
                ]}
                rows={items}
                keyOf={({ id }) => id}
                empty=""
              />
              {next !== undefined && (
                <Link to="/orders" search={search}>
                  All orders
                </Link>
              )}
            </>
          )
        }
      </Loaded>
      <Loaded of={subscriptions}>
        {({ items, next }) =>
          items.length > 0 && (
            <>
              <h3>Subscriptions of {product.name}</h3>
              <Table
                caption={`Subscriptions of ${product.name}`}
                columns={subscriptionColumns(false)}
                rows={items}
                keyOf={({ id }) => id}
                empty=""
              />
              {next !== undefined && (
                <Link to="/subscriptions" search={search}>
                  All subscriptions
                </Link>
              )}
            </>
          )
        }
      </Loaded>
    </>
  )
}
