/** The usage of a period under a subscription or an order, for the bill: by feature, and by license. */

import { Link, useNavigate } from "@tanstack/react-router"
import type { Success } from "../../client/Client.ts"
import type { NameOf } from "../parts/FeatureNames.ts"
import { afterInputDay, countOf, inputDayOf, startOfInputDay } from "../parts/Format.ts"
import { licenseName } from "../parts/LicenseName.ts"
import { FeatureName, useFeatureNames } from "../parts/Names.tsx"
import { Loaded, Section, Table, Time } from "../parts/Show.tsx"
import type { Origin } from "../refunds/LinkedLicenses.ts"
import { DayFilter } from "../reports/UsageFilters.tsx"
import { lastOf, useAsk } from "../service/Hooks.ts"
import type { PeriodSearch } from "./PurchaseSearch.ts"

type Report = Success<"getSubscriptionSettlement">

interface Props {
  readonly of: Origin
  readonly search: PeriodSearch
}

export const Settlement = ({ of, search: { from, to } }: Props) => {
  const report = useAsk("getSubscriptionSettlement", {
    query: {
      ...of,
      ...(from === undefined ? {} : { from: startOfInputDay(from) }),
      ...(to === undefined ? {} : { to: afterInputDay(to) })
    }
  })
  const period = lastOf(report)?.period
  const days: PeriodSearch = { ...daysOf(period), ...(from && { from }), ...(to && { to }) }
  return (
    <Section id="settlement" title="Settlement">
      <div className="row filters">
        <Day label="From" name="from" days={days} />
        <Day label="To the end of" name="to" days={days} />
        <Link to="." search={(({ from: _, to: __, ...others }: PeriodSearch) => others) as never} replace>
          The usual period
        </Link>
      </div>
      <Loaded of={report}>{(report) => <Tables of={of} report={report} />}</Loaded>
    </Section>
  )
}

/** The days that a period touches. */
const daysOf = (period: Report["period"] | undefined): PeriodSearch => ({
  ...(period?.from === undefined ? {} : { from: inputDayOf(period.from) }),
  ...(period === undefined ? {} : { to: inputDayOf(period.to - 1) })
})

/** One end of the period. A change of it puts both into the address. */
const Day = ({
  days,
  label,
  name
}: {
  readonly label: string
  readonly name: "from" | "to"
  readonly days: PeriodSearch
}) => {
  const navigate = useNavigate()
  const set = (day: string | undefined) => {
    if (day === undefined) return
    const { from = day, to = day }: PeriodSearch = { ...days, ...(name === "from" ? { from: day } : { to: day }) }
    // A period that would end before it begins is one day.
    const period = from > to ? { from: day, to: day } : { from, to }
    const search = (before: PeriodSearch) => ({ ...before, ...period })
    void navigate({ to: ".", search: search as never, replace: true })
  }
  return <DayFilter label={label} value={days[name]} onChange={set} />
}

const Tables = ({ of, report }: { readonly of: Origin; readonly report: Report }) => {
  const { nameOf } = useFeatureNames((report.order ?? report.subscription)?.product_id)
  return (
    <>
      <p className="quiet">
        Usage from <Time at={report.period.from} none="the beginning" /> until <Time at={report.period.to} />.
        {report.period.removed_until !== undefined && (
          <>
            {" "}
            Usage before <Time at={report.period.removed_until} /> has been removed.
          </>
        )}
      </p>
      <Table
        caption="Usage by feature"
        rows={report.by_feature}
        keyOf={({ feature_code }) => feature_code ?? ""}
        empty="Nothing was used in this period."
        columns={[
          { title: "Feature", show: ({ feature_code }) => <FeatureName code={feature_code} nameOf={nameOf} /> },
          { title: "Used", number: true, show: ({ consumed }) => countOf(consumed) },
          { title: "Times", number: true, goes: "next", show: ({ consumptions }) => countOf(consumptions) },
          { title: "Credits added", number: true, goes: "first", show: ({ topped_up }) => countOf(topped_up) }
        ]}
      />
      {report.lines.length > 0 && <Lines of={of} lines={report.lines} nameOf={nameOf} />}
    </>
  )
}

/** Lines on the screen; a report export has them all. */
const linesMax = 200

interface LinesProps {
  readonly of: Origin
  readonly lines: Report["lines"]
  readonly nameOf: NameOf
}

const Lines = ({ lines, nameOf, of }: LinesProps) => {
  const licenses = useAsk("listLicenses", { query: { ...of, limit: 200, expand: ["customer"] } })
  const items = lastOf(licenses)?.items ?? []
  const names = new Map(items.map((license) => [license.id, licenseName(license)]))
  return (
    <>
      <Table
        caption="Usage by license"
        rows={lines.slice(0, linesMax)}
        keyOf={({ feature_id, license_id }) => `${license_id} ${feature_id}`}
        empty=""
        columns={[
          {
            title: "License",
            show: ({ license_id }) => (
              <Link to="/licenses/$id" params={{ id: license_id }}>
                {names.get(license_id) ?? license_id}
              </Link>
            )
          },
          {
            title: "Feature",
            goes: "last",
            show: ({ feature_code }) => <FeatureName code={feature_code} nameOf={nameOf} />
          },
          {
            title: "Counter before",
            number: true,
            goes: "first",
            show: ({ opening_balance }) => countOf(opening_balance)
          },
          { title: "Used", number: true, show: ({ consumed }) => countOf(consumed) },
          { title: "Reset", number: true, goes: "first", show: ({ reset, restarted }) => countOf(reset + restarted) },
          {
            title: "Counter after",
            number: true,
            goes: "next",
            show: ({ closing_balance }) => countOf(closing_balance)
          },
          {
            title: "Quota",
            number: true,
            goes: "next",
            show: ({ max_after }) => (max_after === undefined ? "–" : countOf(max_after))
          }
        ]}
      />
      {lines.length > linesMax && (
        <p className="quiet">
          The first {countOf(linesMax)} of {countOf(lines.length)} lines. Export the report to get them all.
        </p>
      )}
    </>
  )
}
