/** The list of customers. */
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router"
import type { Customer } from "../../../vendor/customers/Customer.ts"
import { Action } from "../parts/Dialog.tsx"
import { Empty } from "../parts/Empty.tsx"
import { customerName } from "../parts/LicenseName.ts"
import { type Column, Heading, Time } from "../parts/Show.tsx"
import { change, useAsk, useMayForAll } from "../service/Hooks.ts"
import { isPart, List, pageOf, TextFilter, useNarrow } from "../tables/List.tsx"
import { Views } from "../tables/Views.tsx"
import { type CustomerPayload, customerFields } from "./CustomerFields.ts"
import type { CustomerSearch } from "./CustomerSearch.ts"

const route = getRouteApi("/customers")

const columns: ReadonlyArray<Column<Customer>> = [
  {
    title: "Name",
    sort: "name",
    show: (customer) => (
      <Link to="/customers/$id" params={{ id: customer.id }}>
        {customerName(customer)}
      </Link>
    )
  },
  { title: "E-mail", goes: "last", show: ({ email }) => email ?? "–" },
  { title: "Code", sort: "code", goes: "first", show: ({ code }) => <code>{code}</code> },
  { title: "Created", sort: "created_at", show: ({ created_at }) => <Time at={created_at} only="day" /> }
]

export const Customers = () => {
  const search: CustomerSearch = route.useSearch()
  const mayForAll = useMayForAll()
  const navigate = useNavigate()
  const narrow = useNarrow()
  const page = useAsk("listCustomers", { query: pageOf(search) })
  return (
    <>
      <Heading title="Customers">
        {mayForAll("license:write") && (
          <Action
            label="New customer"
            send="Create customer"
            primary
            effect="Licenses, orders and subscriptions can then be linked to the customer."
            fields={customerFields}
            run={(payload: CustomerPayload) => change("createCustomer", { payload })}
            then={({ id }) => void navigate({ to: "/customers/$id", params: { id } })}
          />
        )}
      </Heading>
      <search className="row filters" aria-label="Filters">
        <TextFilter label="E-mail" value={search.email} onChange={(email) => narrow({ email })} />
        <TextFilter label="Code" value={search.code} onChange={(code) => narrow({ code })} />
        <Views list="Customers" search={search} />
      </search>
      <List
        caption="Customers"
        noun="customer"
        empty={
          isPart(search) ? (
            "No customer matches."
          ) : (
            <Empty
              icon="people"
              title="No customers yet"
              hint="A customer is who buys. Its page shows all its licenses, orders and subscriptions."
            />
          )
        }
        columns={columns}
        page={page}
        search={search}
      />
    </>
  )
}
