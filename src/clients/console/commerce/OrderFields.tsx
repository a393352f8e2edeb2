/** The fields of an order, new or not, and how it appears in a list. */
import { Link } from "@tanstack/react-router"
import { type Order, OrderStatus } from "../../../vendor/commerce/Order.ts"
import { type ChangeFieldsOf, choice, choicesOf, type FieldsOf, instant, text } from "../parts/Fields.tsx"
import { metadata } from "../parts/Metadata.tsx"
import { ListedCustomer } from "../parts/Names.tsx"
import { type Column, Status, Time } from "../parts/Show.tsx"
import { customer, subscription } from "../pickers/Sources.tsx"
import type { Payload } from "../service/Service.ts"

export type OrderPayload = Payload<"createOrder">
export type OrderUpdate = Payload<"updateOrder">

export const orderStatus = choice("Status", choicesOf(OrderStatus.literals), { required: true })

const both = "Give both ends of the period, or none."

/** All fields but the status, which changes with its licenses. */
export const orderFields = (product: string, mayReadCustomers: boolean): ChangeFieldsOf<OrderUpdate> => ({
  external_id: text("Number", { required: true, hint: "As the system that sold it has it." }),
  external_system: text("System", { required: true, hint: "What sold it, for example stripe." }),
  ...(mayReadCustomers ? { customer_id: customer("Customer") } : {}),
  subscription_id: subscription("Subscription", product),
  period_start: instant("Period begins", { hint: both }),
  period_end: instant("Period ends"),
  metadata: metadata()
})

export const newOrderFields = (product: string, mayReadCustomers: boolean): FieldsOf<OrderPayload> => {
  const { external_id, external_system, ...others } = orderFields(product, mayReadCustomers) as FieldsOf<
    Omit<OrderPayload, "status">
  >
  return { external_id, external_system, status: orderStatus, ...others }
}

/** A change of one end of the period, with the other end as it is. */
export const withBothEnds = (order: Order, changes: OrderUpdate): OrderUpdate =>
  "period_start" in changes || "period_end" in changes
    ? { period_start: order.period_start ?? null, period_end: order.period_end ?? null, ...changes }
    : changes

export const Period = ({ from, to }: { readonly from: number | undefined; readonly to: number | undefined }) =>
  from === undefined ? (
    "–"
  ) : (
    <>
      <Time at={from} only="day" /> to <Time at={to} only="day" />
    </>
  )

export const orderColumns = (mayReadCustomers: boolean): ReadonlyArray<Column<Order>> => [
  {
    title: "Number",
    show: ({ external_id, id }) => (
      <Link to="/orders/$id" params={{ id }}>
        {external_id}
      </Link>
    )
  },
  { title: "Status", show: ({ status }) => <Status of={status} /> },
  { title: "System", goes: "first", show: ({ external_system }) => external_system },
  ...(mayReadCustomers
    ? [{ title: "Customer", goes: "last" as const, show: (row: Order) => <ListedCustomer of={row} /> }]
    : []),
  {
    title: "Period",
    goes: "first",
    show: ({ period_end, period_start }) => <Period from={period_start} to={period_end} />
  },
  {
    title: "Recorded",
    sort: "created_at",
    ...(!mayReadCustomers && { goes: "last" as const }),
    show: ({ created_at }) => <Time at={created_at} only="day" />
  }
]
