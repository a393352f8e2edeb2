/** The figures of reports, summed up for charts. */
import type { Overview } from "../../../insight/reports/model/Overview.ts"

type Bucket = Overview["buckets"][number]

/** The buckets of each day or week, the earliest first. The report begins on a Monday. */
export const groupsOf = (
  buckets: ReadonlyArray<Bucket>,
  unit: "day" | "week"
): ReadonlyArray<ReadonlyArray<Bucket>> => {
  const size = unit === "week" ? 7 : 1
  return Array.from({ length: Math.ceil(buckets.length / size) }, (_, index) =>
    buckets.slice(index * size, (index + 1) * size)
  )
}

export const sumOf = (values: ReadonlyArray<number>): number => values.reduce((sum, value) => sum + value, 0)

/** The last value that was counted. */
export const lastOf = (values: ReadonlyArray<number | undefined>): number | undefined =>
  values.findLast((value) => value !== undefined)

export const peakOf = (values: ReadonlyArray<number | undefined>): number | undefined => {
  const counted = values.filter((value) => value !== undefined)
  return counted.length === 0 ? undefined : Math.max(...counted)
}

const shownMax = 5

export interface Part {
  readonly name: string
  readonly values: ReadonlyArray<number>
}

/** The parts with the largest sums, and all others as one. */
export const largestOf = (groups: ReadonlyArray<ReadonlyMap<string, number>>): ReadonlyArray<Part> => {
  const names = [...new Set(groups.flatMap((group) => [...group.keys()]))]
  const parts = names
    .map((name) => ({ name, values: groups.map((group) => group.get(name) ?? 0) }))
    .sort((one, other) => sumOf(other.values) - sumOf(one.values) || (one.name < other.name ? -1 : 1))
  const others = parts.slice(shownMax)
  if (others.length === 0) return parts
  const values = groups.map((_, index) => sumOf(others.map((part) => part.values[index]!)))
  return [...parts.slice(0, shownMax), { name: "Others", values }]
}

/** Sums of named counts. */
export const tallyOf = (
  entries: ReadonlyArray<readonly [name: string, count: number]>
): ReadonlyMap<string, number> => {
  const sums = new Map<string, number>()
  for (const [name, count] of entries) sums.set(name, (sums.get(name) ?? 0) + count)
  return sums
}
