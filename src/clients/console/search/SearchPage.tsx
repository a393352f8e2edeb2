/** What the search finds; if that is one license, its screen. */
import { getRouteApi, Link, Navigate, useRouterState } from "@tanstack/react-router"
import type { ReactNode } from "react"
import type { SearchResults } from "../../../insight/search/SearchResults.ts"
import { licenseColumns } from "../licenses/LicenseColumns.tsx"
import { Empty } from "../parts/Empty.tsx"
import { customerName, licensesOf } from "../parts/LicenseName.ts"
import { RecordName } from "../parts/Names.tsx"
import { type Column, Heading, Loaded, Section, Status, Table, Time } from "../parts/Show.tsx"
import { useAsk, useMay } from "../service/Hooks.ts"
import { type Combined, combinedOf, textOf } from "./Terms.ts"

const route = getRouteApi("/search")

export const SearchPage = () => {
  const { q: inAddress } = route.useSearch()
  const inState = useRouterState({ select: ({ location }) => textOf(location.state) })
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
  const licenses = useAsk("listLicenses", { query: { ...of, limit: 20, expand: ["product", "policy", "customer"] } })
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
          return (
            <Empty
              icon="search"
              title="Nothing matches"
              hint="Search by a whole key or its last four characters, an e-mail, a name, a host name or an order."
            />
          )
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

const Groups = ({ of }: { readonly of: SearchResults }) => {
  const mayName = useMay()("product:read")
  return (
    <>
      <Group title="Licenses" rows={licensesOf(of)} columns={mayName ? namedColumns : licenseColumns()} />
      <Group title="Customers" rows={of.customers} columns={customerColumns} />
      <Group title="Devices" rows={of.devices} columns={deviceColumns} />
      <Group title="Orders" rows={of.orders} columns={orderColumns} />
      <Group title="Subscriptions" rows={of.subscriptions} columns={subscriptionColumns} />
    </>
  )
}

interface GroupProps<A> {
  readonly title: string
  readonly rows: ReadonlyArray<A>
  readonly columns: ReadonlyArray<Column<A>>
}

/** What is found of one kind; a kind of which nothing is found is left out. */
const Group = <A extends { readonly id: string }>({ columns, rows, title }: GroupProps<A>) =>
  rows.length === 0 ? null : (
    <Section id={title.toLowerCase()} title={title}>
      <Table caption={title} columns={columns} rows={rows} keyOf={({ id }) => id} empty="" />
    </Section>
  )

/** The search does not tell names of products and policies: each is read once. */
const namedColumns = licenseColumns(
  ({ product_id }) => <RecordName field="product_id" id={product_id} />,
  ({ policy_id }) => <RecordName field="policy_id" id={policy_id} />
)

const customerColumns: ReadonlyArray<Column<SearchResults["customers"][number]>> = [
  {
    title: "Name",
    show: (customer) => (
      <Link to="/customers/$id" params={{ id: customer.id }}>
        {customerName(customer)}
      </Link>
    )
  },
  { title: "E-mail", goes: "last", show: ({ email }) => email ?? "–" },
  { title: "Code", goes: "first", show: ({ code }) => <code>{code}</code> }
]

const deviceColumns: ReadonlyArray<Column<SearchResults["devices"][number]>> = [
  {
    title: "Device",
    show: ({ hostname, id, license_id }) => (
      <Link to="/licenses/$id" params={{ id: license_id }} hash="devices">
        {hostname ?? id}
      </Link>
    )
  },
  { title: "Status", show: ({ status }) => <Status of={status} /> },
  { title: "Last seen", goes: "last", show: ({ last_seen_at }) => <Time at={last_seen_at} /> }
]

interface Purchase {
  readonly id: string
  readonly external_system: string
  readonly external_id: string
  readonly status: string
}

const purchaseColumns = (number: (purchase: Purchase) => ReactNode): ReadonlyArray<Column<Purchase>> => [
  { title: "Number", show: number },
  { title: "System", goes: "last", show: ({ external_system }) => external_system },
  { title: "Status", show: ({ status }) => <Status of={status} /> }
]

const orderColumns = purchaseColumns(({ external_id, id }) => (
  <Link to="/orders/$id" params={{ id }}>
    {external_id}
  </Link>
))

const subscriptionColumns = purchaseColumns(({ external_id, id }) => (
  <Link to="/subscriptions/$id" params={{ id }}>
    {external_id}
  </Link>
))
