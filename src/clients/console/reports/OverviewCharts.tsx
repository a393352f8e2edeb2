/** The charts of the overview. */

import type { Overview } from "../../../insight/reports/model/Overview.ts"
import type { NameOf } from "../parts/FeatureNames.ts"
import { countOf, instantOf, sentenceOf } from "../parts/Format.ts"
import { Chart } from "./Chart.tsx"
import type { ChartData } from "./ChartData.ts"
import type { Unit } from "./OverviewSearch.ts"
import { groupsOf, largestOf, lastOf, type Part, peakOf, sumOf, tallyOf } from "./Totals.ts"
import { useUsedFeatureNames } from "./UsedFeatures.ts"

interface Props {
  readonly overview: Overview
  readonly unit: Unit
  readonly product: string | undefined
}

export const OverviewCharts = ({ overview, product, unit }: Props) => {
  const { counted_from, period, tz } = overview
  const { nameOf } = useUsedFeatureNames({
    ...(period.from === undefined ? {} : { from: period.from }),
    ...(product === undefined ? {} : { product_id: product })
  })
  return (
    <>
      <div className="charts">
        {chartsOf(overview, unit, nameOf).map((chart) => (
          <Chart key={chart.title} chart={chart} />
        ))}
      </div>
      <p className="quiet">
        Days begin at midnight in {tz}
        {unit === "week" ? ", weeks on Monday" : ""}. The last {unit} goes on.
        {counted_from !== undefined &&
          ` Active licenses and seats are counted since ${instantOf(counted_from)}. Their charts have a gap where they were not counted.`}
      </p>
    </>
  )
}

type Bucket = Overview["buckets"][number]
type Groups = ReadonlyArray<ReadonlyArray<Bucket>>
type Shared = Pick<ChartData, "placeName" | "places">

const chartsOf = ({ buckets, tz }: Overview, unit: Unit, nameOf: NameOf): ReadonlyArray<ChartData> => {
  const groups = groupsOf(buckets, unit)
  const day = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", timeZone: tz })
  const shared = {
    placeName: unit === "week" ? "Week from" : "Day",
    places: groups.map(([first]) => day.format(first!.bucket_start))
  }
  return [...licenseCharts(groups, shared), ...usageCharts(groups, shared, nameOf)]
}

const sumsOf = (groups: Groups, count: (bucket: Bucket) => number) => groups.map((group) => sumOf(group.map(count)))

const licenseCharts = (groups: Groups, shared: Shared): ReadonlyArray<ChartData> => {
  const created = sumsOf(groups, ({ licenses_created }) => licenses_created)
  const ended = sumsOf(groups, ({ licenses_expired }) => licenses_expired)
  const active = groups.map((group) => lastOf(group.map(({ licenses_active }) => licenses_active)))
  const expiring = groups.map((group) => lastOf(group.map(({ licenses_expiring }) => licenses_expiring)))
  return [
    {
      ...shared,
      title: "Licenses created and ended",
      told: `${countOf(sumOf(created))} created, ${countOf(sumOf(ended))} ended`,
      kind: "bars",
      series: [
        { name: "Created", values: created },
        { name: "Ended", values: ended }
      ]
    },
    {
      ...shared,
      title: "Active licenses",
      told: activeOf(lastOf(active), lastOf(expiring)),
      kind: "lines",
      series: [
        { name: "Active", values: active },
        { name: "Expire in 30 days", values: expiring }
      ]
    }
  ]
}

/** A service that was upgraded begins to count them then. */
const activeOf = (active: number | undefined, expiring = 0) =>
  active === undefined ? "not counted yet" : `${countOf(active)} active, ${countOf(expiring)} of them expire in 30 days`

const usageCharts = (groups: Groups, shared: Shared, nameOf: NameOf): ReadonlyArray<ChartData> => {
  const activations = sumsOf(groups, (bucket) => bucket.activations)
  const seats = groups.map((group) => peakOf(group.map(({ seats_peak }) => seats_peak)))
  const consumed = largestOf(groups.map((group) => tallyOf(group.flatMap(consumptionOf))))
  const refused = largestOf(groups.map((group) => tallyOf(group.flatMap(({ refusals }) => Object.entries(refusals)))))
  return [
    {
      ...shared,
      title: "Activations",
      told: `${countOf(sumOf(activations))} activations of devices`,
      kind: "bars",
      series: [{ name: "Activations", values: activations }]
    },
    {
      ...shared,
      title: "Floating seats",
      told: peakOf(seats) === undefined ? "not counted yet" : `${countOf(peakOf(seats) ?? 0)} taken at the peak`,
      kind: "bars",
      series: [{ name: "At the peak", values: seats }]
    },
    {
      ...shared,
      title: "Consumption",
      told: `${countOf(totalOf(consumed))} units of features`,
      kind: "parts",
      series: consumed.map(({ name, values }) => ({ name: nameOf(name), values }))
    },
    {
      ...shared,
      title: "Refused calls",
      told: `${countOf(totalOf(refused))} calls of applications`,
      kind: "parts",
      series: refused.map(({ name, values }) => ({ name: sentenceOf(name.toLowerCase()), values }))
    }
  ]
}

const consumptionOf = ({ consumption }: Bucket) =>
  consumption.map(({ consumed, feature_code = "Deleted feature" }) => [feature_code, consumed] as const)

const totalOf = (parts: ReadonlyArray<Part>) => sumOf(parts.flatMap(({ values }) => values))
