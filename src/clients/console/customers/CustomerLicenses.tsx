/** The licenses of a customer: those that are linked, and others with its e-mail. */
import { Link } from "@tanstack/react-router"
import { AsyncResult } from "effect/reactivity"
import { columnsOfCustomer, licenseColumns } from "../licenses/LicenseColumns.tsx"
import { LicensePages } from "../licenses/LicensePages.tsx"
import { licensesOf } from "../parts/EachProduct.tsx"
import { Menu } from "../parts/Menu.tsx"
import { usePages } from "../parts/Pagination.tsx"
import { Loaded, Section, Table } from "../parts/Show.tsx"
import { useAsk, useAskPart, useMay } from "../service/Hooks.ts"

const expand = ["product", "policy", "customer"] as const

export const LinkedLicenses = ({ id }: { readonly id: string }) => {
  const may = useMay()
  const { query, ...pages } = usePages()
  const page = useAskPart("listLicenses", { query: { ...licensesOf(id), ...query } })
  return (
    <Section
      id="licenses"
      title="Licenses"
      actions={
        <>
          <Link to="/licenses" search={{ customer_id: id }}>
            All in the list
          </Link>
          {may("license:write") && may("product:read") && (
            <Menu label="Issue">
              <Link to="/licenses/new" search={{ customer_id: id }}>
                Issue a license
              </Link>
              <Link to="/licenses/batch" search={{ customer_id: id }}>
                Issue a batch
              </Link>
            </Menu>
          )}
        </>
      }
    >
      <LicensePages
        of={page}
        pages={pages}
        columns={columnsOfCustomer()}
        empty="No license belongs to this customer."
      />
    </Section>
  )
}

interface Props {
  readonly id: string
  readonly email: string
}

/** Licenses that were issued for the e-mail without a link to the customer. */
export const LicensesByEmail = ({ email, id }: Props) => {
  const page = useAsk("listLicenses", { query: { q: email, limit: 200, expand } })
  const isOther = (license: { readonly customer_id?: string; readonly customer_email?: string }) =>
    license.customer_id !== id && license.customer_email?.toLowerCase() === email.toLowerCase()
  if (AsyncResult.isSuccess(page) && !page.value.items.some(isOther)) return null
  return (
    <Section
      id="by-email"
      title="Other licenses with this e-mail"
      actions={
        <Link to="/licenses" search={{ q: email }}>
          All with this e-mail
        </Link>
      }
    >
      <Loaded of={page}>
        {({ items }) => (
          <Table
            caption="Other licenses with this e-mail"
            columns={licenseColumns()}
            rows={items.filter(isOther)}
            keyOf={({ id }) => id}
            empty="None."
          />
        )}
      </Loaded>
    </Section>
  )
}
