/** One order: what it is, the licenses that came with it, their usage, what was changed, and what can be done. */
import { getRouteApi } from "@tanstack/react-router"
import type { Order } from "../../../vendor/commerce/Order.ts"
import { Action } from "../parts/Dialog.tsx"
import { Metadata } from "../parts/Metadata.tsx"
import { RecordName } from "../parts/Names.tsx"
import { OneRecord } from "../parts/OneRecord.tsx"
import { Facts, Heading, Section, Status, Time } from "../parts/Show.tsx"
import { Refund } from "../refunds/Refund.tsx"
import { change, run, useAsk, useMay } from "../service/Hooks.ts"
import { send } from "../service/Service.ts"
import { History } from "./History.tsx"
import { ChangeStatus, LinkedLicenses } from "./Linked.tsx"
import { type OrderUpdate, orderFields, orderStatus, Period, withBothEnds } from "./OrderFields.tsx"
import { Settlement } from "./Settlement.tsx"

const route = getRouteApi("/orders/$id")

export const OrderPage = () => {
  const { id } = route.useParams()
  const order = useAsk("getOrder", { params: { id } })
  return (
    <OneRecord of={order} noun="order">
      {(order) => <Screen key={order.id} order={order} />}
    </OneRecord>
  )
}

interface Props {
  readonly order: Order
}

const linkOf = ({ customer_id }: Order) => (customer_id === undefined ? {} : { customer: customer_id })

const labels = {
  external_id: "Number",
  external_system: "System",
  customer_id: "Customer",
  subscription_id: "Subscription"
}

const Screen = ({ order }: Props) => {
  const may = useMay()
  const search = route.useSearch()
  const of = { order_id: order.id }
  const isSettled = order.period_start !== undefined || order.subscription_id !== undefined
  return (
    <>
      <Heading
        title={`Order ${order.external_id}`}
        about={<Status of={order.status} />}
        {...(may("product:write") && { more: <Edit order={order} /> })}
      >
        {may("product:write") && <Actions order={order} />}
      </Heading>
      <div className="split">
        <div>
          {may("license:read") && <LinkedLicenses of={of} product={order.product_id} {...linkOf(order)} />}
          {may("report:read") && (isSettled || search.from !== undefined) && <Settlement of={of} search={search} />}
          {may("event:read") && <History kind="order" id={order.id} labels={labels} />}
        </div>
        <div>
          <Section id="about" title="About">
            <About order={order} />
          </Section>
          <Metadata of={order.metadata} />
        </div>
      </div>
    </>
  )
}

const About = ({ order }: Props) => {
  const may = useMay()
  const { customer_id, subscription_id } = order
  return (
    <Facts
      of={[
        ["System", order.external_system],
        ["Product", <RecordName field="product_id" key="product" id={order.product_id} />],
        ...(may("license:read")
          ? ([
              ["Customer", <RecordName field="customer_id" key="customer" id={customer_id} none="not linked" />]
            ] as const)
          : []),
        ["Subscription", <RecordName field="subscription_id" key="subscription" id={subscription_id} none="none" />],
        ["Period", <Period key="period" from={order.period_start} to={order.period_end} />],
        ["Recorded", <Time key="created" at={order.created_at} />],
        ["Changed", <Time key="updated" at={order.updated_at} />]
      ]}
    />
  )
}

const editedOf = (order: Order) => ({ record: order, reread: () => run("getOrder", { params: { id: order.id } }) })

const Actions = ({ order }: Props) => {
  const params = { id: order.id }
  return (
    <>
      <ChangeStatus
        noun="order"
        of={{ order_id: order.id }}
        field={orderStatus}
        edited={editedOf(order)}
        update={(status) => send("updateOrder", { params, payload: { status } })}
        restore={({ status }) => send("updateOrder", { params, payload: { status } })}
      />
      <Refund order={order} primary />
    </>
  )
}

const Edit = ({ order }: Props) => {
  const may = useMay()
  const params = { id: order.id }
  return (
    <Action
      label="Edit"
      send="Save"
      title="Edit the order"
      effect="The record changes. Licenses keep what they have. An emptied field is cleared."
      fields={orderFields(order.product_id, may("license:read"))}
      edited={editedOf(order)}
      run={(payload: OrderUpdate, read = order) =>
        change("updateOrder", { params, payload: withBothEnds(read as Order, payload) }, read)
      }
    />
  )
}
