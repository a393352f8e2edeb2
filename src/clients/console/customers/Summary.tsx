/** A customer's licenses, orders and use in figures. */
import { Link } from "@tanstack/react-router"
import type { CustomerSummary, UsageSummaryRow } from "../../../insight/reports/model/Report.ts"
import type { LicenseStatus } from "../../../licensing/model/License.ts"
import { beginOf } from "../parts/Days.ts"
import type { NameOf } from "../parts/FeatureNames.ts"
import { choicesOf } from "../parts/Fields.tsx"
import { countOf, wordsOf } from "../parts/Format.ts"
import { FeatureName, RecordName, useFeatureNames } from "../parts/Names.tsx"
import { type Column, Facts, Loaded, Section, Table, Time } from "../parts/Show.tsx"
import { useAsk } from "../service/Hooks.ts"
import { Filter, useNarrow } from "../tables/List.tsx"
import { SummaryPeriod } from "./CustomerSearch.ts"

const periods = choicesOf(SummaryPeriod.literals)

interface Props {
  readonly id: string
  readonly period: SummaryPeriod | undefined
}

export const Summary = ({ id, period }: Props) => {
  const narrow = useNarrow()
  const query = { customer_id: id, ...(period === undefined ? {} : { from: beginOf(period) }) }
  const summary = useAsk("getCustomerSummary", { query })
  return (
    <Section
      id="summary"
      title="Summary"
      actions={<Filter label="Period" value={period} choices={periods} onChange={(period) => narrow({ period })} />}
    >
      <Loaded of={summary}>{(summary) => <Figures of={summary} />}</Loaded>
    </Section>
  )
}

const Figures = ({ of }: { readonly of: CustomerSummary }) => {
  const { nameOf } = useFeatureNames(
    undefined,
    of.usage.map(({ product_id }) => product_id)
  )
  return (
    <>
      <Facts
        of={[
          ["Licenses", <Licenses key="licenses" of={of} />],
          ["Devices in use", countOf(of.active_devices)],
          ["Floating seats in use", countOf(of.live_leases)],
          ["Orders", tallyOf(of.orders)],
          ["Subscriptions", tallyOf(of.subscriptions)],
          ["Validations", `${countOf(of.validations.validations)}, ${countOf(of.validations.refused)} refused`],
          ["Since", <Time key="since" at={of.period.from} only="day" none="the beginning" />]
        ]}
      />
      <Table
        caption="Usage"
        rows={of.usage}
        keyOf={({ feature_code = "", product_id = "" }) => `${product_id} ${feature_code}`}
        empty="Nothing was used in this period."
        columns={usageColumns(nameOf)}
      />
    </>
  )
}

interface Tally {
  readonly total: number
  readonly by_status: Readonly<Record<string, number>>
}

const tallyOf = ({ by_status, total }: Tally): string => {
  const parts = Object.entries(by_status).map(([status, count]) => `${countOf(count)} ${wordsOf(status)}`)
  return parts.length === 0 ? countOf(total) : parts.join(", ")
}

const Licenses = ({ of: { customer, licenses } }: { readonly of: CustomerSummary }) => {
  const tallies = Object.entries(licenses.by_status)
  if (tallies.length === 0) return "none"
  return (
    <span className="row">
      {tallies.map(([status, count]) => (
        <Link key={status} to="/licenses" search={{ customer_id: customer.id, status: status as LicenseStatus }}>
          {countOf(count)} {wordsOf(status)}
        </Link>
      ))}
    </span>
  )
}

const usageColumns = (nameOf: NameOf): ReadonlyArray<Column<UsageSummaryRow>> => [
  { title: "Feature", show: ({ feature_code }) => <FeatureName code={feature_code} nameOf={nameOf} /> },
  {
    title: "Product",
    goes: "last",
    show: ({ product_id }) => <RecordName field="product_id" id={product_id} />
  },
  { title: "Used", number: true, show: ({ consumed }) => countOf(consumed) },
  { title: "Times", number: true, goes: "next", show: ({ consumptions }) => countOf(consumptions) },
  { title: "Reset", number: true, goes: "first", show: ({ reset }) => countOf(reset) },
  { title: "Credits added", number: true, goes: "first", show: ({ topped_up }) => countOf(topped_up) },
  { title: "Licenses", number: true, goes: "next", show: ({ licenses }) => countOf(licenses) }
]
