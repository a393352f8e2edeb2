/** One subscription: what it is, its licenses and orders, their usage, what was changed, and what can be done. */
import { getRouteApi, Link } from "@tanstack/react-router"
import type { Subscription } from "../../../vendor/commerce/Subscription.ts"
import { Action } from "../parts/Dialog.tsx"
import { Metadata } from "../parts/Metadata.tsx"
import { RecordName } from "../parts/Names.tsx"
import { OneRecord } from "../parts/OneRecord.tsx"
import { Facts, Heading, Loaded, Section, Status, Table, Time } from "../parts/Show.tsx"
import { change, run, useAsk, useMay } from "../service/Hooks.ts"
import { send } from "../service/Service.ts"
import { History } from "./History.tsx"
import { ChangeStatus, LinkedLicenses } from "./Linked.tsx"
import { orderColumns, Period } from "./OrderFields.tsx"
import { Settlement } from "./Settlement.tsx"
import { type SubscriptionUpdate, subscriptionFields, subscriptionStatus } from "./SubscriptionFields.tsx"

const route = getRouteApi("/subscriptions/$id")

export const SubscriptionPage = () => {
  const { id } = route.useParams()
  const subscription = useAsk("getSubscription", { params: { id } })
  return (
    <OneRecord of={subscription} noun="subscription">
      {(subscription) => <Screen key={subscription.id} subscription={subscription} />}
    </OneRecord>
  )
}

interface Props {
  readonly subscription: Subscription
}

const linkOf = ({ customer_id }: Subscription) => (customer_id === undefined ? {} : { customer: customer_id })

const labels = { external_id: "Number", external_system: "System", customer_id: "Customer" }

const Screen = ({ subscription }: Props) => {
  const may = useMay()
  const search = route.useSearch()
  const of = { subscription_id: subscription.id }
  return (
    <>
      <Heading title={`Subscription ${subscription.external_id}`} about={<Status of={subscription.status} />}>
        {may("product:write") && <Actions subscription={subscription} />}
      </Heading>
      <div className="split">
        <div>
          {may("license:read") && (
            <LinkedLicenses of={of} product={subscription.product_id} {...linkOf(subscription)} />
          )}
          <Orders subscription={subscription} />
          {may("report:read") && <Settlement of={of} search={search} />}
          {may("event:read") && <History kind="subscription" id={subscription.id} labels={labels} />}
        </div>
        <div>
          <Section id="about" title="About">
            <About subscription={subscription} />
          </Section>
          <Metadata of={subscription.metadata} />
        </div>
      </div>
    </>
  )
}

const About = ({ subscription }: Props) => {
  const may = useMay()
  const { canceled_at, customer_id, observed_at } = subscription
  return (
    <Facts
      of={[
        ["System", subscription.external_system],
        ["Product", <RecordName field="product_id" key="product" id={subscription.product_id} />],
        ...(may("license:read")
          ? ([
              ["Customer", <RecordName field="customer_id" key="customer" id={customer_id} none="not linked" />]
            ] as const)
          : []),
        [
          "Current period",
          <Period key="period" from={subscription.current_period_start} to={subscription.current_period_end} />
        ],
        ["At its end", subscription.cancel_at_period_end ? "ends" : "renews"],
        ...(canceled_at === undefined ? [] : ([["Canceled", <Time key="canceled" at={canceled_at} />]] as const)),
        ...(observed_at === undefined ? [] : ([["Known as of", <Time key="observed" at={observed_at} />]] as const)),
        ["Recorded", <Time key="created" at={subscription.created_at} />],
        ["Changed", <Time key="updated" at={subscription.updated_at} />]
      ]}
    />
  )
}

const Actions = ({ subscription }: Props) => {
  const may = useMay()
  const params = { id: subscription.id }
  const edited = { record: subscription, reread: () => run("getSubscription", { params }) }
  return (
    <>
      <Action
        label="Edit"
        send="Save"
        title="Edit the subscription"
        effect="The record changes. Licenses keep what they have: a longer period does not extend them."
        fields={subscriptionFields(may("license:read"))}
        edited={edited}
        run={(payload: SubscriptionUpdate, read) => change("updateSubscription", { params, payload }, read)}
      />
      <ChangeStatus
        primary
        noun="subscription"
        of={{ subscription_id: subscription.id }}
        field={subscriptionStatus}
        edited={edited}
        update={(status) => send("updateSubscription", { params, payload: { status } })}
        restore={({ canceled_at, status }) =>
          send("updateSubscription", { params, payload: { status, canceled_at: canceled_at ?? null } })
        }
      />
    </>
  )
}

const Orders = ({ subscription: { id, product_id } }: Props) => {
  const may = useMay()
  const orders = useAsk("listOrders", {
    params: { id: product_id },
    query: { subscription_id: id, limit: 20, ...(may("license:read") ? { expand: ["customer"] as const } : {}) }
  })
  return (
    <Section
      id="orders"
      title="Orders"
      actions={
        <Link to="/orders" search={{ product_id, subscription_id: id }}>
          All in the list
        </Link>
      }
    >
      <Loaded of={orders}>
        {({ items }) => (
          <Table
            caption="Orders"
            columns={orderColumns(may("license:read"))}
            rows={items}
            keyOf={({ id }) => id}
            empty="No order is linked to it."
          />
        )}
      </Loaded>
    </Section>
  )
}
