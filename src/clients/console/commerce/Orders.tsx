/** The list of a product's orders. */
import { getRouteApi, useNavigate } from "@tanstack/react-router"
import { OrderStatus } from "../../../vendor/commerce/Order.ts"
import { Action } from "../parts/Dialog.tsx"
import { Heading } from "../parts/Show.tsx"
import { change, useAsk, useMay } from "../service/Hooks.ts"
import { isPart, List, pageOf } from "../tables/List.tsx"
import { newOrderFields, type OrderPayload, orderColumns } from "./OrderFields.tsx"
import { OfProduct, PurchaseFilters } from "./PurchaseFilters.tsx"
import type { OrderSearch } from "./PurchaseSearch.ts"

const route = getRouteApi("/orders")

export const Orders = () => {
  const search: OrderSearch = route.useSearch()
  return (
    <OfProduct product={search.product_id} title="Orders" hint="An order belongs to a product: create one first.">
      {(product) => <OrdersOf product={product} search={search} />}
    </OfProduct>
  )
}

const OrdersOf = ({ product, search }: { readonly product: string; readonly search: OrderSearch }) => {
  const { product_id: _, ...filters } = search
  const may = useMay()
  const navigate = useNavigate()
  const page = useAsk("listOrders", {
    params: { id: product },
    query: { ...pageOf(filters), ...(may("license:read") ? { expand: ["customer"] as const } : {}) }
  })
  return (
    <>
      <Heading title="Orders">
        {may("product:write") && (
          <Action
            label="New order"
            send="Create order"
            primary
            effect="The order is recorded for the product that is chosen here. It issues no license: do that on the order’s page."
            fields={newOrderFields(product, may("license:read"))}
            initial={{ status: "paid" }}
            run={(payload: OrderPayload) => change("createOrder", { params: { id: product }, payload })}
            then={({ id }) => void navigate({ to: "/orders/$id", params: { id } })}
          />
        )}
      </Heading>
      <PurchaseFilters list="Orders" search={search} product={product} statuses={OrderStatus.literals} />
      <List
        caption="Orders"
        noun="order"
        empty={
          isPart({ ...search, product_id: undefined })
            ? "No order matches. Choose another product, or widen the filters."
            : "This product has no orders yet. Choose another one, or record the first."
        }
        columns={orderColumns(may("license:read"))}
        page={page}
        search={search}
      />
    </>
  )
}
