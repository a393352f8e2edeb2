/** The benchmark's results, as a table for people and as JSON for programs, and whether each target is met. */
import type { Measured, Operation } from "./Load.ts"
import type { SideName } from "./Sides.ts"

/** One round of one side. */
export interface Round extends Measured {
  readonly side: SideName
  readonly operation: Operation
  /** Seconds of CPU during the round. */
  readonly cpu: { readonly server: number; readonly postgres: number; readonly driver: number }
}

/** The minimum ratio of the service's requests to the baseline's. */
const ratioTargets: Record<Operation, number> = {
  validate: 2.5,
  consume: 4,
  "hot consume": 10,
  activate: 2.5,
  lease: 3
}

/** The maximum megabytes of the service after requests to 10,000 licenses. */
const peakMegabytesMax = 380

export interface Row {
  readonly operation: Operation
  readonly side: SideName
  readonly requests_per_second: number
  readonly p50_ms: number
  readonly p99_ms: number
  readonly cpu_seconds: number
  /** The server's own CPU for one request: it stays comparable when the machine is busy with other work. */
  readonly cpu_us_per_request: number
  readonly postgres_cpu_seconds: number
  readonly driver_cpu_seconds: number
  readonly answered: number
  readonly failed: number
  readonly verified: number
}

export interface Target {
  readonly operation: string
  readonly target: string
  readonly found: number
  readonly holds: boolean
}

export const median = (values: ReadonlyArray<number>): number => {
  const sorted = [...values].sort((a, b) => a - b)
  const middle = Math.floor(sorted.length / 2)
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2
}
const sum = (values: ReadonlyArray<number>): number => values.reduce((total, value) => total + value, 0)
const rounded = (value: number, digits = 2): number => Number(value.toFixed(digits))

/** Rates and latencies are medians of the rounds, the rest are sums over them. */
export const rowOf = (operation: Operation, side: SideName, rounds: ReadonlyArray<Round>): Row => {
  const own = rounds.filter((round) => round.operation === operation && round.side === side)
  const over = (pick: (round: Round) => number) => own.map(pick)
  return {
    operation,
    side,
    requests_per_second: Math.round(median(over((round) => round.requestsPerSecond))),
    p50_ms: rounded(median(over((round) => round.p50))),
    p99_ms: rounded(median(over((round) => round.p99))),
    cpu_seconds: rounded(sum(over((round) => round.cpu.server))),
    cpu_us_per_request: Math.round(
      (1e6 * sum(over((round) => round.cpu.server))) / sum(over((round) => round.answered))
    ),
    postgres_cpu_seconds: rounded(sum(over((round) => round.cpu.postgres))),
    driver_cpu_seconds: rounded(sum(over((round) => round.cpu.driver))),
    answered: sum(over((round) => round.answered)),
    failed: sum(over((round) => round.failed)),
    verified: sum(over((round) => round.verified))
  }
}

/** The targets of an operation that both sides ran. */
export const targetsOf = (operation: Operation, service: Row, baseline: Row): ReadonlyArray<Target> => {
  const ratio = rounded(service.requests_per_second / baseline.requests_per_second)
  const least = ratioTargets[operation]
  return [
    { operation, target: `at least ${least} times the requests/s`, found: ratio, holds: ratio >= least },
    {
      operation,
      target: `p99 no worse than ${baseline.p99_ms} ms`,
      found: service.p99_ms,
      holds: service.p99_ms <= baseline.p99_ms
    },
    { operation, target: "failed requests: 0", found: service.failed, holds: service.failed === 0 }
  ]
}

/** The most CPU of a validation relative to a server that only reads, signs and answers. */
const floorRatioMax = 1.9

export const floorTarget = (operation: Operation, service: Row, bare: Row): Target => {
  const found = rounded(service.cpu_us_per_request / bare.cpu_us_per_request)
  const target = `at most ${floorRatioMax} times the CPU of a server that only signs`
  return { operation, target, found, holds: found <= floorRatioMax }
}

/** The most CPU of a request with a monthly quota relative to one without a period. */
const monthlyRatioMax = 1.05

export const monthlyTarget = (operation: Operation, monthly: Row, plain: Row): Target => {
  const found = rounded(monthly.cpu_us_per_request / plain.cpu_us_per_request)
  const target = `at most ${monthlyRatioMax} times the CPU with a monthly quota`
  return { operation, target, found, holds: found <= monthlyRatioMax }
}

/** The cost of an operation here relative to another checkout: below 1 is cheaper. */
export const comparisonOf = (operation: Operation, service: Row, other: Row) => ({
  operation,
  "requests/s": rounded(service.requests_per_second / other.requests_per_second),
  p99: rounded(service.p99_ms / other.p99_ms),
  "CPU/request": rounded(service.cpu_us_per_request / other.cpu_us_per_request),
  "PostgreSQL's/request": rounded(
    service.postgres_cpu_seconds / service.answered / (other.postgres_cpu_seconds / other.answered)
  )
})

export const miscountedTarget = (operation: Operation, miscounted: number): Target => ({
  operation,
  target: "miscounted: 0",
  found: miscounted,
  holds: miscounted === 0
})

export const memoryTarget = (licenses: number, megabytes: number): Target => ({
  operation: `${licenses} licenses`,
  target: `peak memory at most ${peakMegabytesMax} MB`,
  found: megabytes,
  holds: megabytes <= peakMegabytesMax
})

/** Records as an aligned table, numbers to the right. */
export const table = (records: ReadonlyArray<object>): string => {
  const names = Object.keys(records[0] ?? {})
  const cells = records.map((record) => names.map((name) => cellText((record as Record<string, unknown>)[name])))
  const widths = names.map((name, column) => Math.max(name.length, ...cells.map((row) => row[column]!.length)))
  const isNumber = names.map((name) => typeof (records[0] as Record<string, unknown>)[name] === "number")
  const line = (row: ReadonlyArray<string>) =>
    row
      .map((cell, column) => (isNumber[column] ? cell.padStart(widths[column]!) : cell.padEnd(widths[column]!)))
      .join("  ")
      .trimEnd()
  return [names.map((name) => name.replaceAll("_", " ")), ...cells].map(line).join("\n")
}

const cellText = (value: unknown): string => {
  if (typeof value === "boolean") return value ? "yes" : "NO"
  return Number.isNaN(value) ? "–" : String(value)
}
