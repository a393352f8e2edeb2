/**
 * The overview: how many licenses are in which state, what happened by week, and whether webhooks are delivered. Its frame and its
 * counts are part of the first screen; the charts are loaded after it.
 */
import { getRouteApi, Link } from "@tanstack/react-router"
import type { AsyncResult } from "effect/reactivity"
import { type ComponentType, lazy, type ReactNode, Suspense, useEffect } from "react"
import { LicenseStatus } from "../../licenses/model/License.ts"
import { periodOf } from "../licenses/Periods.ts"
import { choicesOf } from "../parts/Fields.tsx"
import { countOf, wordsOf } from "../parts/Format.ts"
import { Filter, useNarrow } from "../parts/List.tsx"
import { ProductFilter } from "../parts/Listed.tsx"
import { Facts, Heading, Loaded, Section, Status, Waiting } from "../parts/Show.tsx"
import type { OverviewCharts } from "../reports/OverviewCharts.tsx"
import { type OverviewSearch, requestOf, Span, spanOf, Unit, unitOf } from "../reports/OverviewSearch.ts"
import { causeOf, lastOf, useAsk, useMay } from "../service/Hooks.ts"
import { PartNotLoaded } from "./LazyScreen.tsx"

const route = getRouteApi("/")
const spans = choicesOf(Span.literals)
const units = choicesOf(Unit.literals)

/** They are loaded while their figures are asked for. */
const loadCharts = () =>
  import("../reports/OverviewCharts.tsx").then(
    (m) => ({ default: m.OverviewCharts }),
    () => ({ default: PartNotLoaded })
  )
const Charts = lazy<ComponentType<Parameters<typeof OverviewCharts>[0]>>(loadCharts)

export const Overview = () => {
  const search: OverviewSearch = route.useSearch()
  const may = useMay()
  useEffect(() => void loadCharts(), [])
  return (
    <>
      <Heading title="Overview">
        {may("license:write") && may("product:read") && (
          <Link to="/licenses/new" className="button primary">
            Issue a license
          </Link>
        )}
      </Heading>
      {may("product:read") && may("license:read") && (
        <search className="row filters" aria-label="Filters">
          <ProductFilter value={search.product_id} />
        </search>
      )}
      {may("license:read") ? (
        <Licenses product={search.product_id} />
      ) : (
        <p className="empty">This token may not read licenses: the menu has what it may do.</p>
      )}
      {may("report:read") && <History search={search} />}
      {may("ops:read") && <Webhooks />}
    </>
  )
}

interface OfProduct {
  readonly product: string | undefined
}

const Licenses = ({ product }: OfProduct) => (
  <Section id="licenses" title="Licenses">
    <ul className="tiles">
      {LicenseStatus.literals.map((status) => (
        <li key={status}>
          <Count status={status} product={product} />
        </li>
      ))}
      <li>
        <Expiring product={product} />
      </li>
    </ul>
  </Section>
)

const one = { limit: 1, include_total: "true" } as const
const filterOf = (product: string | undefined) => (product === undefined ? {} : { product_id: product })

const Count = ({ product, status }: OfProduct & { readonly status: LicenseStatus }) => {
  const page = useAsk("listLicenses", { query: { ...one, ...filterOf(product), status } })
  return (
    <Link to="/licenses" search={{ ...filterOf(product), status }}>
      <TileTotal of={page} />
      {wordsOf(status)}
    </Link>
  )
}

const Expiring = ({ product }: OfProduct) => {
  const query = { ...one, ...filterOf(product), status: "active" as const, ...periodOf("this_month") }
  const page = useAsk("listLicenses", { query })
  return (
    <Link to="/licenses" search={{ ...filterOf(product), status: "active", expires: "this_month" }}>
      <TileTotal of={page} />
      expire this month
    </Link>
  )
}

type Total = AsyncResult.AsyncResult<{ readonly total?: number; readonly total_is_capped?: boolean }, unknown>

const TileTotal = ({ of }: { readonly of: Total }): ReactNode => {
  const page = lastOf(of)
  if (page !== undefined)
    return (
      <strong>
        {countOf(page.total ?? 0)}
        {page.total_is_capped && "+"}
      </strong>
    )
  return causeOf(of) === undefined ? <strong>…</strong> : <small className="failed">Could not be counted:</small>
}

const History = ({ search }: { readonly search: OverviewSearch }) => {
  const narrow = useNarrow()
  const overview = useAsk("getOverview", requestOf(search))
  return (
    <Section id="history" title="What happened">
      <search className="row filters" aria-label="What the charts show">
        <Filter label="Period" value={spanOf(search)} choices={spans} needed onChange={(span) => narrow({ span })} />
        <Filter label="By" value={unitOf(search)} choices={units} needed onChange={(by) => narrow({ by })} />
      </search>
      <Loaded of={overview}>
        {(overview) => (
          <Suspense fallback={<Waiting />}>
            <Charts overview={overview} unit={unitOf(search)} />
          </Suspense>
        )}
      </Loaded>
    </Section>
  )
}

const Webhooks = () => {
  const health = useAsk("getWebhookHealth", {})
  return (
    <Section id="webhooks" title="Webhook deliveries">
      <Loaded of={health}>
        {({ deliveries, status }) => (
          <Facts
            of={[
              ["State", <Status key="status" of={status} />],
              ["Waiting", countOf(deliveries.pending)],
              ["Retrying", countOf(deliveries.retrying)],
              ["Delivered in 24 hours", countOf(deliveries.delivered_24h)],
              ["Given up in 24 hours", countOf(deliveries.exhausted_24h)]
            ]}
          />
        )}
      </Loaded>
    </Section>
  )
}
