/** What the search finds; if that is one license, its screen. */
import { getRouteApi, Link, Navigate, useRouterState } from "@tanstack/react-router"
import type { ReactNode } from "react"
import type { SearchResults } from "../../../insight/search/SearchResults.ts"
import { licenseColumns } from "../licenses/LicenseColumns.tsx"
import { type Column, Heading, Loaded, Section, Status, Table, Time } from "../parts/Show.tsx"
import { useAsk, useMay } from "../service/Hooks.ts"
import { type Combined, combinedOf } from "./Terms.ts"

const route = getRouteApi("/search")

export const SearchPage = () => {
  const { q: inAddress } = route.useSearch()
  const inState = useRouterState({ select: ({ location }) => (location.state as { readonly q?: string }).q })
  const q = (inAddress ?? inState)?.trim()
  return (
    <>
      <Heading title="Search" />
      {q === undefined || q === "" ? (
        <p className="empty">Type into the search box to find something.</p>
      ) : (
        <Found q={q} />
      )}
    </>
  )
}

const Found = ({ q }: { readonly q: string }) => {
  const combined = combinedOf(q)
  return combined === undefined ? <Results q={q} /> : <Together of={combined} q={q} />
}

/** Licenses that match several terms. If there are none, the text is one term: a short word looks like the end of a key. */
const Together = ({ of, q }: { readonly of: Combined; readonly q: string }) => {
  const licenses = useAsk("listLicenses", { query: { ...of, limit: 20, expand: ["product", "policy"] } })
  return (
    <Loaded of={licenses}>
      {({ items }) => {
        const [license, other] = items
        if (license === undefined) return <Results q={q} />
        return other === undefined ? (
          <Navigate to="/licenses/$id" params={{ id: license.id }} replace />
        ) : (
          <Table caption="Licenses" columns={licenseColumns()} rows={items} keyOf={({ id }) => id} empty="None." />
        )
      }}
    </Loaded>
  )
}

const Results = ({ q }: { readonly q: string }) => {
  const results = useAsk("search", { query: { q } })
  const mayOpen = useMay()("product:read")
  return (
    <Loaded of={results}>
      {(found) => {
        const counts = [
          found.licenses,
          found.customers,
          found.devices,
          found.orders,
          found.subscriptions,
          found.bulk_jobs
        ]
        const total = counts.reduce((sum, { length }) => sum + length, 0)
        const [license] = found.licenses
        if (total === 0)
          return <p className="empty">Nothing matches. Search by a whole key, an e-mail, a name or a host name.</p>
        // Its customer, device or order lead to the same license.
        if (license !== undefined && found.licenses.length === 1 && found.customers.length <= 1)
          return <Navigate to="/licenses/$id" params={{ id: license.id }} replace />
        const [job] = found.bulk_jobs
        if (total === 1 && job !== undefined) return <Navigate to="/bulk-jobs/$id" params={{ id: job.id }} replace />
        if (total === 1 && mayOpen) {
          const [order, subscription, customer] = [found.orders[0], found.subscriptions[0], found.customers[0]]
          if (order !== undefined) return <Navigate to="/orders/$id" params={{ id: order.id }} replace />
          if (subscription !== undefined)
            return <Navigate to="/subscriptions/$id" params={{ id: subscription.id }} replace />
          if (customer !== undefined) return <Navigate to="/customers/$id" params={{ id: customer.id }} replace />
        }
        return <Groups of={found} />
      }}
    </Loaded>
  )
}

const Groups = ({ of }: { readonly of: SearchResults }) => (
  <>
    <Section id="licenses" title="Licenses">
      <Table caption="Licenses" columns={licenseColumns()} rows={of.licenses} keyOf={({ id }) => id} empty="None." />
    </Section>
    <Section id="customers" title="Customers">
      <Table
        caption="Customers"
        rows={of.customers}
        keyOf={({ id }) => id}
        empty="None."
        columns={[
          {
            title: "Name",
            show: ({ code, id, name }) => (
              <Link to="/customers/$id" params={{ id }}>
                {name || `Customer ${code}`}
              </Link>
            )
          },
          { title: "E-mail", show: ({ email }) => email ?? "–" },
          { title: "Code", show: ({ code }) => <code>{code}</code> }
        ]}
      />
    </Section>
    <Section id="devices" title="Devices">
      <Table
        caption="Devices"
        rows={of.devices}
        keyOf={({ id }) => id}
        empty="None."
        columns={[
          {
            title: "Device",
            show: ({ hostname, id, license_id }) => (
              <Link to="/licenses/$id" params={{ id: license_id }} hash="devices">
                {hostname ?? id}
              </Link>
            )
          },
          { title: "Status", show: ({ status }) => <Status of={status} /> },
          { title: "Last seen", show: ({ last_seen_at }) => <Time at={last_seen_at} /> }
        ]}
      />
    </Section>
    <Section id="orders" title="Orders">
      <Table
        caption="Orders"
        rows={of.orders}
        keyOf={({ id }) => id}
        empty="None."
        columns={purchaseColumns(({ external_id, id }) => (
          <Link to="/orders/$id" params={{ id }}>
            {external_id}
          </Link>
        ))}
      />
    </Section>
    <Section id="subscriptions" title="Subscriptions">
      <Table
        caption="Subscriptions"
        rows={of.subscriptions}
        keyOf={({ id }) => id}
        empty="None."
        columns={purchaseColumns(({ external_id, id }) => (
          <Link to="/subscriptions/$id" params={{ id }}>
            {external_id}
          </Link>
        ))}
      />
    </Section>
  </>
)

interface Purchase {
  readonly id: string
  readonly external_system: string
  readonly external_id: string
  readonly status: string
}

const purchaseColumns = (number: (purchase: Purchase) => ReactNode): ReadonlyArray<Column<Purchase>> => [
  { title: "Number", show: number },
  { title: "System", show: ({ external_system }) => external_system },
  { title: "Status", show: ({ status }) => <Status of={status} /> }
]
