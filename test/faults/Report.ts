/** The table of a run: a row for each fault. */
import type { RoundResult } from "./Rounds.ts"

type Told = Omit<RoundResult, "calls">

export const tableOf = (results: ReadonlyArray<Told>): string => {
  const rows = [...Map.groupBy(results, ({ fault }) => fault)]
    .toSorted(([one], [other]) => one.localeCompare(other))
    .map(([fault, of]) => rowOf(fault, of))
  return [
    "| Fault | Rounds | Answers checked | Violations | Longest gap, ms |",
    "|---|---|---|---|---|",
    ...rows,
    rowOf("**all**", results)
  ].join("\n")
}

const rowOf = (fault: string, results: ReadonlyArray<Told>) => {
  const sum = (pick: (result: Told) => number) => results.reduce((total, result) => total + pick(result), 0)
  const longest = Math.max(0, ...results.map(({ longestGapMillis }) => longestGapMillis))
  const cells = [
    fault,
    results.length,
    sum(({ answers }) => answers).toLocaleString("en"),
    sum(({ violations }) => violations.length),
    longest.toLocaleString("en")
  ]
  return `| ${cells.join(" | ")} |`
}
