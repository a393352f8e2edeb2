/**
 * The overview: how many licenses are in which state, what happened by week, and whether webhooks are delivered. Its frame and its
 * counts are part of the first screen; the charts are loaded after it.
 */
import { getRouteApi, Link } from "@tanstack/react-router"
import type { AsyncResult } from "effect/reactivity"
import { type ComponentType, lazy, type ReactNode, Suspense, useEffect } from "react"
import { LicenseStatus } from "../../../licensing/model/License.ts"
import type { Success } from "../../client/Client.ts"
import { periodOf } from "../licenses/Periods.ts"
import { Icon } from "../look/Icon.tsx"
import { Sparkline } from "../look/Meter.tsx"
import { choicesOf } from "../parts/Fields.tsx"
import { cappedOf, countOf, sentenceOf } from "../parts/Format.ts"
import { Facts, Heading, Loaded, Section, Status, Waiting } from "../parts/Show.tsx"
import type { OverviewCharts } from "../reports/OverviewCharts.tsx"
import { type OverviewSearch, requestOf, Span, spanOf, Unit, unitOf } from "../reports/OverviewSearch.ts"
import { causeOf, lastOf, useAsk, useMay } from "../service/Hooks.ts"
import { Attention } from "../start/Attention.tsx"
import { useIsNew } from "../start/IsNew.ts"
import { Filter, useNarrow } from "../tables/List.tsx"
import { ProductFilter } from "../tables/ListFields.tsx"
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

const Checklist = lazy<ComponentType>(() =>
  import("../start/Checklist.tsx").then(
    (m) => ({ default: m.Checklist }),
    () => ({ default: PartNotLoaded })
  )
)

interface Shown {
  readonly search: OverviewSearch
}

export const Overview = () => {
  const search: OverviewSearch = route.useSearch()
  const may = useMay()
  useEffect(() => void loadCharts(), [])
  return may("license:read") && may("product:write") ? <UnlessNew search={search} /> : <Figures search={search} />
}

/** On a new service the first steps stand in place of figures. */
const UnlessNew = ({ search }: Shown) => {
  const isNew = useIsNew()
  if (isNew === undefined)
    return (
      <>
        <Heading title="Overview" />
        <Waiting />
      </>
    )
  return isNew ? (
    <>
      <Heading title="Overview" />
      <Suspense fallback={<Waiting />}>
        <Checklist />
      </Suspense>
    </>
  ) : (
    <Figures search={search} />
  )
}

const Figures = ({ search }: Shown) => {
  const may = useMay()
  return (
    <>
      <Heading title="Overview">
        {may("license:write") && may("product:read") && (
          <Link to="/licenses/new" className="button primary with-icon">
            <Icon name="plus" />
            Issue a license
          </Link>
        )}
      </Heading>
      <Choices search={search} />
      <div className="glance">
        <Attention product={search.product_id} />
        {may("license:read") ? (
          <Licenses search={search} />
        ) : (
          <p className="empty">This token may not read licenses: the menu has what it may do.</p>
        )}
      </div>
      {may("report:read") && <History search={search} />}
      {may("ops:read") && <Webhooks />}
    </>
  )
}

/** What the whole screen shows: one row, at its top. */
const Choices = ({ search }: { readonly search: OverviewSearch }) => {
  const narrow = useNarrow()
  const may = useMay()
  return (
    <search className="row filters" aria-label="What is shown">
      {may("product:read") && may("license:read") && <ProductFilter value={search.product_id} />}
      {may("report:read") && (
        <>
          <Filter label="Period" value={spanOf(search)} choices={spans} needed onChange={(span) => narrow({ span })} />
          <Filter label="By" value={unitOf(search)} choices={units} needed onChange={(by) => narrow({ by })} />
        </>
      )}
    </search>
  )
}

interface OfProduct {
  readonly product: string | undefined
}

const Licenses = ({ search }: { readonly search: OverviewSearch }) => {
  const may = useMay()
  const product = search.product_id
  return (
    <section aria-label="Licenses">
      <ul className="tiles">
        {LicenseStatus.literals.map((status) => (
          <li key={status}>
            <Count
              status={status}
              product={product}
              {...(status === "active" &&
                may("report:read") && {
                  beyond: (atLeast: string) => <ChartedActive search={search} atLeast={atLeast} />
                })}
            >
              {may("report:read") && <Run search={search} of={runs[status]} />}
            </Count>
          </li>
        ))}
        <li>
          <Expiring product={product}>
            {may("report:read") && <Run search={search} of={({ licenses_expiring }) => licenses_expiring} />}
          </Expiring>
        </li>
      </ul>
    </section>
  )
}

type Bucket = Success<"getOverview">["buckets"][number]
type Figure = (bucket: Bucket) => number | undefined

/** Which figures have a history. */
const runs: Readonly<Partial<Record<LicenseStatus, Figure>>> = {
  active: ({ licenses_active }) => licenses_active,
  expired: ({ licenses_expired }) => licenses_expired
}

const Run = ({ of, search }: { readonly of: Figure | undefined; readonly search: OverviewSearch }) => {
  const overview = lastOf(useAsk("getOverview", requestOf(search)))
  return of === undefined || overview === undefined ? null : <Sparkline values={byWeek(overview.buckets.map(of))} />
}

/** Seven days each, since single days are restless. */
const byWeek = (values: ReadonlyArray<number | undefined>): ReadonlyArray<number | undefined> =>
  values.length <= 31 ? values : values.filter((_, day) => (values.length - 1 - day) % 7 === 0)

const one = { limit: 1, include_total: "true" } as const
const filterOf = (product: string | undefined) => (product === undefined ? {} : { product_id: product })

const Count = ({
  beyond,
  children,
  product,
  status
}: OfProduct & { readonly status: LicenseStatus; readonly children: ReactNode; readonly beyond?: Beyond }) => {
  const page = useAsk("listLicenses", { query: { ...one, ...filterOf(product), status } })
  return (
    <Link to="/licenses" search={{ ...filterOf(product), status }}>
      <span className={`status ${status}`}>{sentenceOf(status)}</span>
      <TileTotal of={page} beyond={beyond} />
      {children}
    </Link>
  )
}

const Expiring = ({ children, product }: OfProduct & { readonly children: ReactNode }) => {
  const query = { ...one, ...filterOf(product), status: "active" as const, ...periodOf("this_month") }
  const page = useAsk("listLicenses", { query })
  return (
    <Link to="/licenses" search={{ ...filterOf(product), status: "active", expires: "this_month" }}>
      <span className="status soon">Expire this month</span>
      <TileTotal of={page} />
      {children}
    </Link>
  )
}

type Beyond = (atLeast: string) => ReactNode
type Total = AsyncResult.AsyncResult<{ readonly total?: number; readonly total_is_capped?: boolean }, unknown>

/** Lists count up to a limit. Beyond it a tile shows another count, or that there are more. */
const TileTotal = ({ beyond, of }: { readonly of: Total; readonly beyond?: Beyond | undefined }): ReactNode => {
  const page = lastOf(of)
  if (page !== undefined) {
    const total = cappedOf(page)
    return <strong>{page.total_is_capped && beyond !== undefined ? beyond(total) : total}</strong>
  }
  return causeOf(of) === undefined ? <strong>…</strong> : <small className="failed">Could not be counted</small>
}

/** The number that the chart shows, which counts all licenses. */
const ChartedActive = (props: { readonly search: OverviewSearch; readonly atLeast: string }): ReactNode => {
  const overview = lastOf(useAsk("getOverview", requestOf(props.search)))
  const active = overview?.buckets.findLast(({ licenses_active }) => licenses_active !== undefined)?.licenses_active
  if (active === undefined) return props.atLeast
  return <span title={`As counted last. The list of them shows ${props.atLeast}.`}>{countOf(active)}</span>
}

const History = ({ search }: { readonly search: OverviewSearch }) => {
  const overview = useAsk("getOverview", requestOf(search))
  return (
    <Section id="history" title="What happened">
      <Loaded of={overview}>
        {(overview) => (
          <Suspense fallback={<Waiting />}>
            <Charts overview={overview} unit={unitOf(search)} product={search.product_id} />
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
