/** The usage of a period, summed by what the reader chooses. */
import { getRouteApi, Navigate } from "@tanstack/react-router"
import { Schema } from "effect"
import { filterFields, type Grouping, groupings } from "../../../insight/reports/model/Filter.ts"
import type { UsageSummary, UsageSummaryRow } from "../../../insight/reports/model/Report.ts"
import type { NameOf } from "../parts/FeatureNames.ts"
import { countOf, sentenceOf } from "../parts/Format.ts"
import { FeatureName, RecordName } from "../parts/Names.tsx"
import { type Column, Facts, Loaded, Section, Table, Time } from "../parts/Show.tsx"
import { useAsk, useMay } from "../service/Hooks.ts"
import { Filter, useNarrow } from "../tables/List.tsx"
import { Chart } from "./Chart.tsx"
import { ExportThis } from "./ExportThis.tsx"
import { ReportsHeading } from "./ReportsHeading.tsx"
import { largestOf, tallyOf } from "./Totals.ts"
import { UsageFilters } from "./UsageFilters.tsx"
import { type SummarySearch, scopeOf } from "./UsageSearch.ts"
import { useUsedFeatureNames } from "./UsedFeatures.ts"
import { daysOf, zone } from "./Zone.ts"

const route = getRouteApi("/reports")

const titleOf = (grouping: Grouping) => sentenceOf(grouping.replace(/_(id|code)$/, ""))
const choices = groupings.map((id) => ({ id, name: titleOf(id) }))

const rowsMax = 200

const groupsOf = ({ group = "feature_code", subgroup }: SummarySearch): ReadonlyArray<Grouping> =>
  subgroup === undefined || subgroup === group ? [group] : [group, subgroup]

const encode = Schema.encodeSync(Schema.Struct(filterFields["usage-summary"]))

/** The navigation leads here also those who may only export. */
export const Usage = () => {
  const may = useMay()
  return !may("report:read") && may("report:export") ? <Navigate to="/reports/exports" replace /> : <Summary />
}

const Summary = () => {
  const search: SummarySearch = route.useSearch()
  const narrow = useNarrow()
  const may = useMay()
  const filters = { ...scopeOf(search), group_by: groupsOf(search), tz: zone }
  const summary = useAsk("getUsageSummary", { query: filters })
  const [group] = groupsOf(search)
  const { nameOf } = useUsedFeatureNames(scopeOf(search))
  return (
    <>
      <ReportsHeading title="Usage">
        {may("report:export") && <ExportThis kind="usage-summary" filters={encode(filters)} />}
      </ReportsHeading>
      <UsageFilters search={search}>
        <Filter label="By" value={group} choices={choices} needed onChange={(group) => narrow({ group })} />
        <Filter
          label="And by"
          value={search.subgroup}
          choices={choices.filter(({ id }) => id !== group)}
          none="–"
          onChange={(subgroup) => narrow({ subgroup })}
        />
      </UsageFilters>
      <Loaded of={summary}>{(summary) => <Totals of={summary} nameOf={nameOf} />}</Loaded>
      <ByDay search={search} nameOf={nameOf} />
    </>
  )
}

interface Shown {
  readonly of: UsageSummary
  readonly nameOf: NameOf
}

const Totals = ({ nameOf, of: { group_by, period, rows, totals } }: Shown) => {
  const shown = [...rows].sort((one, other) => other.consumed - one.consumed).slice(0, rowsMax)
  return (
    <>
      <Facts
        of={[
          ["From", <Time key="from" at={period.from} none="the beginning" />],
          ["To", <Time key="to" at={period.to} />],
          ["Used", countOf(totals.consumed)],
          ["Times", countOf(totals.consumptions)],
          ["Credits added", countOf(totals.topped_up)],
          ["Reset", countOf(totals.reset)]
        ]}
      />
      <Table
        caption="Usage"
        rows={shown}
        keyOf={(row) => group_by.map((grouping) => row[grouping]).join(" ")}
        empty="Nothing was used in this period."
        columns={columnsOf(group_by, nameOf)}
      />
      {rows.length > shown.length && (
        <p className="quiet">
          The {countOf(shown.length)} rows with the highest consumption, of {countOf(rows.length)}. An export has all.
        </p>
      )}
    </>
  )
}

const columnsOf = (groups: ReadonlyArray<Grouping>, nameOf: NameOf): ReadonlyArray<Column<UsageSummaryRow>> => [
  ...groups.map((grouping, index) => ({
    title: titleOf(grouping),
    ...(index > 0 && { goes: "last" as const }),
    show: (row: UsageSummaryRow) => <Group grouping={grouping} value={row[grouping]} nameOf={nameOf} />
  })),
  { title: "Used", number: true, show: ({ consumed }) => countOf(consumed) },
  { title: "Times", number: true, goes: "next", show: ({ consumptions }) => countOf(consumptions) },
  { title: "Credits added", number: true, goes: "first", show: ({ topped_up }) => countOf(topped_up) },
  { title: "Reset", number: true, goes: "first", show: ({ reset }) => countOf(reset) },
  { title: "Licenses", number: true, goes: "next", show: ({ licenses }) => countOf(licenses) }
]

interface GroupProps {
  readonly grouping: Grouping
  readonly value: string | undefined
  readonly nameOf: NameOf
}

const Group = ({ grouping, nameOf, value }: GroupProps) => {
  if (value === undefined) return "none"
  if (grouping === "feature_code") return <FeatureName code={value} nameOf={nameOf} />
  return <RecordName field={grouping} id={value} />
}

const placesMax = 400

const ByDay = ({ nameOf, search }: { readonly search: SummarySearch; readonly nameOf: NameOf }) => {
  const summary = useAsk("getUsageSummary", {
    query: { ...scopeOf(search), group_by: ["feature_code"], bucket: "1d", tz: zone }
  })
  return (
    <Section id="by-day" title="By day">
      <Loaded of={summary}>{(summary) => <DayChart of={summary} nameOf={nameOf} />}</Loaded>
    </Section>
  )
}

const DayChart = ({ nameOf, of: { period, rows, tz } }: Shown) => {
  const starts = rows.map(({ bucket_start = period.to }) => bucket_start)
  const days = daysOf(period.from ?? Math.min(period.to, ...starts), period.to, placesMax + 1)
  if (days.length > placesMax) return <p className="empty">Choose a shorter period to see its days.</p>
  const format = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeZone: tz })
  const parts = largestOf(
    days.map((day) =>
      tallyOf(
        rows
          .filter(({ bucket_start }) => bucket_start === day)
          .map(({ consumed, feature_code = "Deleted feature" }) => [feature_code, consumed] as const)
      )
    )
  )
  return (
    <>
      <Chart
        chart={{
          title: "Consumption",
          told: "units of features by day",
          kind: "parts",
          placeName: "Day",
          places: days.map((day) => format.format(day)),
          series: parts.map(({ name, values }) => ({ name: nameOf(name), values }))
        }}
      />
      <p className="quiet">Days begin at midnight in {tz}.</p>
    </>
  )
}
