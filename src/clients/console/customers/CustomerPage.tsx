/** One customer, with its licenses. */
import { getRouteApi, useNavigate } from "@tanstack/react-router"
import type { Customer } from "../../../vendor/customers/Customer.ts"
import { CustomerPurchases } from "../commerce/CustomerPurchases.tsx"
import { DependsOnCustomer } from "../consequences/Dependents.tsx"
import { CustomerValues } from "../customFields/Values.tsx"
import { Action } from "../parts/Dialog.tsx"
import { customerName } from "../parts/LicenseName.ts"
import { Metadata } from "../parts/Metadata.tsx"
import { OneRecord } from "../parts/OneRecord.tsx"
import { Facts, Heading, Section, Time } from "../parts/Show.tsx"
import { change, run, useAsk, useMay } from "../service/Hooks.ts"
import { type CustomerUpdate, customerFields } from "./CustomerFields.ts"
import { LicensesByEmail, LinkedLicenses } from "./CustomerLicenses.tsx"
import type { CustomerPageSearch } from "./CustomerSearch.ts"
import { Erase, ErasureState, isErasing } from "./Erasure.tsx"
import { Summary } from "./Summary.tsx"

const route = getRouteApi("/customers/$id")

export const CustomerPage = () => {
  const { id } = route.useParams()
  const customer = useAsk("getCustomer", { params: { id } })
  return (
    <OneRecord of={customer} noun="customer">
      {(customer) => <Screen key={customer.id} customer={customer} />}
    </OneRecord>
  )
}

const Screen = ({ customer }: { readonly customer: Customer }) => {
  const { period }: CustomerPageSearch = route.useSearch()
  const may = useMay()
  const mayChange = may("license:write") && !isErasing(customer)
  return (
    <>
      <Heading
        title={customerName(customer)}
        {...(customer.email !== undefined && { about: <span>{customer.email}</span> })}
        {...(mayChange && {
          more: (
            <>
              <Delete customer={customer} />
              {may("admin") && <Erase customer={customer} />}
            </>
          )
        })}
      >
        {mayChange && <Edit customer={customer} />}
      </Heading>
      <ErasureState customer={customer} />
      <div className="split">
        <div>
          <LinkedLicenses id={customer.id} />
          {customer.email !== undefined && <LicensesByEmail id={customer.id} email={customer.email} />}
          {may("product:read") && <CustomerPurchases of={customer} />}
          {may("report:read") && <Summary id={customer.id} period={period} />}
        </div>
        <div>
          <Section id="about" title="About">
            <Facts
              of={[
                ["E-mail", customer.email ?? "–"],
                ["Code", <code key="code">{customer.code}</code>],
                ["Created", <Time key="created" at={customer.created_at} />],
                ["Changed", <Time key="updated" at={customer.updated_at} />]
              ]}
            />
          </Section>
          {may("product:read") && <CustomerValues of={customer} />}
          <Metadata of={customer.metadata} />
        </div>
      </div>
    </>
  )
}

const Edit = ({ customer }: { readonly customer: Customer }) => {
  const params = { id: customer.id }
  return (
    <Action
      label="Edit"
      send="Save"
      title={`Edit ${customerName(customer)}`}
      effect="Licenses that were issued before keep the name and the e-mail that they have."
      fields={customerFields}
      edited={{ record: customer, reread: () => run("getCustomer", { params }) }}
      run={(payload: CustomerUpdate, read) => change("updateCustomer", { params, payload }, read)}
    />
  )
}

const Delete = ({ customer }: { readonly customer: Customer }) => {
  const navigate = useNavigate()
  return (
    <Action
      label="Delete"
      title={`Delete the customer ${customerName(customer)}`}
      effect="The customer and its custom fields are deleted."
      danger
      facts={<DependsOnCustomer id={customer.id} />}
      run={() => run("deleteCustomer", { params: { id: customer.id } })}
      then={() => void navigate({ to: "/customers", replace: true })}
    />
  )
}
