/** Records that another one links to, by name. */
import { Link } from "@tanstack/react-router"
import type { Customer } from "../../../vendor/customers/Customer.ts"
import { useAsk } from "../service/Hooks.ts"
import { wordsOf } from "./Format.ts"
import { Loaded } from "./Show.tsx"

interface Props {
  readonly id: string
}

export const CustomerName = ({ id }: Props) => {
  const customer = useAsk("getCustomer", { params: { id } })
  return (
    <Loaded of={customer}>
      {({ code, name }) => (
        <Link to="/customers/$id" params={{ id }}>
          {name || `Customer ${code}`}
        </Link>
      )}
    </Loaded>
  )
}

interface Linked {
  readonly customer_id?: string
  readonly expanded?: { readonly customer?: Customer }
}

/** The customer of a row, which the list was read with. */
export const ListedCustomer = ({ of: { customer_id: id, expanded } }: { readonly of: Linked }) => {
  if (id === undefined) return "–"
  const { customer } = expanded ?? {}
  if (customer === undefined) return <span className="quiet">not visible to you</span>
  return (
    <Link to="/customers/$id" params={{ id }}>
      {customer.name || `Customer ${customer.code}`}
    </Link>
  )
}

export const ProductName = ({ id }: Props) => {
  const product = useAsk("getProduct", { params: { id } })
  return (
    <Loaded of={product}>
      {({ name }) => (
        <Link to="/products/$id" params={{ id }}>
          {name}
        </Link>
      )}
    </Loaded>
  )
}

export const PolicyName = ({ id }: Props) => {
  const policy = useAsk("getPolicy", { params: { id } })
  return (
    <Loaded of={policy}>
      {({ license_type, name }) => (
        <Link to="/policies/$id" params={{ id }}>
          {name} ({wordsOf(license_type)})
        </Link>
      )}
    </Loaded>
  )
}

export const OrderName = ({ id }: Props) => {
  const order = useAsk("getOrder", { params: { id } })
  return (
    <Loaded of={order}>
      {({ external_id, status }) => (
        <Link to="/orders/$id" params={{ id }}>
          {external_id} ({wordsOf(status)})
        </Link>
      )}
    </Loaded>
  )
}

export const SubscriptionName = ({ id }: Props) => {
  const subscription = useAsk("getSubscription", { params: { id } })
  return (
    <Loaded of={subscription}>
      {({ external_id, status }) => (
        <Link to="/subscriptions/$id" params={{ id }}>
          {external_id} ({wordsOf(status)})
        </Link>
      )}
    </Loaded>
  )
}
