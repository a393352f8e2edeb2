/** A filter by a record, which a link has set: it shows the record's name. */
import { causeOf, lastOf, useAsk } from "../service/Hooks.ts"
import { RemoveFilter, useNarrow } from "./List.tsx"

interface Props {
  readonly id: string
}

const CustomerText = ({ id }: Props) => {
  const asked = useAsk("getCustomer", { params: { id } })
  const customer = lastOf(asked)
  return textOf(customer && (customer.name || `Customer ${customer.code}`), asked)
}

const PolicyText = ({ id }: Props) => {
  const asked = useAsk("getPolicy", { params: { id } })
  return textOf(lastOf(asked)?.name, asked)
}

const OrderText = ({ id }: Props) => {
  const asked = useAsk("getOrder", { params: { id } })
  return textOf(lastOf(asked)?.external_id, asked)
}

const SubscriptionText = ({ id }: Props) => {
  const asked = useAsk("getSubscription", { params: { id } })
  return textOf(lastOf(asked)?.external_id, asked)
}

const FeatureText = ({ id }: Props) => {
  const asked = useAsk("getFeature", { params: { id } })
  return textOf(lastOf(asked)?.name, asked)
}

const textOf = (name: string | undefined, asked: Parameters<typeof causeOf>[0]) =>
  name ?? (causeOf(asked) === undefined ? "…" : "not visible to you")

const kinds = {
  customer_id: { label: "Customer", Text: CustomerText },
  policy_id: { label: "Policy", Text: PolicyText },
  order_id: { label: "Order", Text: OrderText },
  subscription_id: { label: "Subscription", Text: SubscriptionText },
  feature_id: { label: "Feature", Text: FeatureText }
} as const

export const RecordChips = ({ search }: { readonly search: { readonly [Field in keyof typeof kinds]?: string } }) => {
  const narrow = useNarrow()
  return Object.entries(kinds).map(([field, { Text, label }]) => {
    const id = search[field as keyof typeof kinds]
    if (id === undefined) return null
    return (
      <div key={field} className="chip set">
        <span>{label}</span>
        <strong>
          <Text id={id} />
        </strong>
        <RemoveFilter label={label} onRemove={() => narrow({ [field]: undefined })} />
      </div>
    )
  })
}
