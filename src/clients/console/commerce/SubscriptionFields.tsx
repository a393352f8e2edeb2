/** The fields of a subscription, new or not, and how it appears in a list. */
import { Link } from "@tanstack/react-router"
import { type Subscription, SubscriptionStatus } from "../../../vendor/commerce/Subscription.ts"
import { type ChangeFieldsOf, choice, choicesOf, type FieldsOf, flag, instant, text } from "../parts/Fields.tsx"
import { metadata } from "../parts/Metadata.tsx"
import { ListedCustomer } from "../parts/Names.tsx"
import { type Column, Status, Time } from "../parts/Show.tsx"
import { customer } from "../pickers/Sources.tsx"
import type { Payload } from "../service/Service.ts"

export type SubscriptionPayload = Payload<"createSubscription">
export type SubscriptionUpdate = Payload<"updateSubscription">

export const subscriptionStatus = choice("Status", choicesOf(SubscriptionStatus.literals), { required: true })

/** All fields but the status, which changes with its licenses. */
export const subscriptionFields = (mayReadCustomers: boolean): ChangeFieldsOf<SubscriptionUpdate> => ({
  external_id: text("Number", { required: true, hint: "As the system that bills it has it." }),
  external_system: text("System", { required: true, hint: "What bills it, for example stripe." }),
  ...(mayReadCustomers ? { customer_id: customer("Customer") } : {}),
  current_period_start: instant("Current period begins", { required: true }),
  current_period_end: instant("Current period ends", { required: true }),
  cancel_at_period_end: flag("It ends with the current period"),
  metadata: metadata()
})

export const newSubscriptionFields = (mayReadCustomers: boolean): FieldsOf<SubscriptionPayload> => {
  const fields = subscriptionFields(mayReadCustomers) as FieldsOf<Omit<SubscriptionPayload, "status">>
  const { external_id, external_system, ...others } = fields
  return { external_id, external_system, status: subscriptionStatus, ...others }
}

export const subscriptionColumns = (mayReadCustomers: boolean): ReadonlyArray<Column<Subscription>> => [
  {
    title: "Number",
    show: ({ external_id, id }) => (
      <Link to="/subscriptions/$id" params={{ id }}>
        {external_id}
      </Link>
    )
  },
  { title: "Status", show: ({ status }) => <Status of={status} /> },
  { title: "System", goes: "first", show: ({ external_system }) => external_system },
  ...(mayReadCustomers
    ? [{ title: "Customer", goes: "last" as const, show: (row: Subscription) => <ListedCustomer of={row} /> }]
    : []),
  {
    title: "Current period ends",
    sort: "current_period_end",
    ...(!mayReadCustomers && { goes: "last" as const }),
    show: ({ cancel_at_period_end, current_period_end }) => (
      <>
        <Time at={current_period_end} only="day" />
        {cancel_at_period_end && <small>and the subscription then</small>}
      </>
    )
  },
  {
    title: "Recorded",
    sort: "created_at",
    goes: "first",
    show: ({ created_at }) => <Time at={created_at} only="day" />
  }
]
