/** Every change of a counter, the newest first. */
import { getRouteApi } from "@tanstack/react-router"
import { Schema } from "effect"
import { filterFields, UsageAction } from "../../../insight/reports/model/Filter.ts"
import type { UsageLedgerRow } from "../../../insight/reports/model/Report.ts"
import type { NameOf } from "../parts/FeatureNames.ts"
import { countOf } from "../parts/Format.ts"
import { By, FeatureName, RecordName, useFeatureNames } from "../parts/Names.tsx"
import { type Column, Loaded, Table, Time } from "../parts/Show.tsx"
import { lastOf, useAsk, useMay } from "../service/Hooks.ts"
import { Filter, PageLink, useNarrow } from "../tables/List.tsx"
import { ExportThis } from "./ExportThis.tsx"
import { ReportsHeading } from "./ReportsHeading.tsx"
import { UsageFilters } from "./UsageFilters.tsx"
import { type LedgerSearch, scopeOf } from "./UsageSearch.ts"

const route = getRouteApi("/reports/ledger")

const words = {
  consume: "Used",
  reverse: "Taken back",
  reset: "Reset by hand",
  period_reset: "New period",
  top_up: "Credits added",
  set_limit: "Quota changed"
} as const satisfies Readonly<Record<typeof UsageAction.Type, string>>

const actions = UsageAction.literals.map((id) => ({ id, name: words[id] }))
const encode = Schema.encodeSync(Schema.Struct(filterFields["usage-ledger"]))

const signed = (count: number) => `${count > 0 ? "+" : ""}${countOf(count)}`

/** What a change did to bought credits and overage. */
const besideOf = ({ credits, overage }: UsageLedgerRow): string =>
  [
    credits === undefined ? "" : `${signed(credits)} extra credits`,
    overage === undefined ? "" : `${signed(overage)} overage`
  ]
    .filter(Boolean)
    .join(", ")

const columnsOf = (nameOf: NameOf): ReadonlyArray<Column<UsageLedgerRow>> => [
  { title: "When", show: ({ occurred_at }) => <Time at={occurred_at} /> },
  {
    title: "What",
    show: ({ action, reverses }) => (
      <>
        {words[action]}
        {reverses !== undefined && <small>{reverses}</small>}
      </>
    )
  },
  {
    title: "Feature",
    goes: "last",
    show: ({ feature_code }) => <FeatureName code={feature_code} nameOf={nameOf} />
  },
  {
    title: "Amount",
    number: true,
    show: (row) => (
      <>
        {countOf(row.amount)}
        {(row.credits ?? row.overage) !== undefined && <small>{besideOf(row)}</small>}
      </>
    )
  },
  {
    title: "Balance",
    number: true,
    goes: "next",
    show: ({ balance_after, balance_before }) => `${countOf(balance_before)} → ${countOf(balance_after)}`
  },
  {
    title: "Limit",
    number: true,
    goes: "first",
    show: ({ max_after }) => (max_after === undefined ? "none" : countOf(max_after))
  },
  { title: "License", goes: "next", show: ({ license_id }) => <RecordName field="license_id" id={license_id} /> },
  {
    title: "By",
    goes: "first",
    show: ({ event_id, ...row }) => (
      <>
        <By of={row} />
        {event_id !== undefined && <small>{event_id}</small>}
      </>
    )
  }
]

export const Ledger = () => {
  const search: LedgerSearch = route.useSearch()
  const narrow = useNarrow()
  const may = useMay()
  const { action, cursor } = search
  const filters = { ...scopeOf(search), ...(action === undefined ? {} : { action }) }
  const page = useAsk("listUsageLedger", {
    query: { ...filters, limit: 50, ...(cursor === undefined ? {} : { cursor }) }
  })
  const { nameOf } = useFeatureNames(
    search.product_id,
    lastOf(page)?.items.map(({ product_id }) => product_id)
  )
  return (
    <>
      <ReportsHeading title="Ledger">
        {may("report:export") && <ExportThis kind="usage-ledger" filters={encode(filters)} />}
      </ReportsHeading>
      <UsageFilters search={search}>
        <Filter label="What" value={action} choices={actions} onChange={(action) => narrow({ action })} />
      </UsageFilters>
      <Loaded of={page}>
        {({ items, next }) => (
          <>
            <Table
              caption="Ledger"
              columns={columnsOf(nameOf)}
              rows={items}
              keyOf={({ sequence }) => String(sequence)}
              empty={Object.keys(filters).length === 0 ? "Nothing was counted yet." : "No change of a counter matches."}
            />
            <nav aria-label="Pages" className="row end">
              {cursor !== undefined && <PageLink change={{ cursor: undefined }}>Newest</PageLink>}
              {next !== undefined && <PageLink change={{ cursor: next }}>Earlier</PageLink>}
            </nav>
          </>
        )}
      </Loaded>
    </>
  )
}
