/**
 * Makes docs/FIGURES.md: runs the benchmarks below one after another, which takes about 40 minutes and needs an idle machine.
 *
 *   npm run figures -- [--licenses-max 1000000] [--only sides,memory,growth,license,nodes,start] [--short]
 *
 * --licenses-max 10000000 adds a size, and needs 60 GB of disk. --only prints these parts and leaves the page as it is; so
 * does --short, which only shows that everything runs.
 */
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { parseArgs } from "node:util"
import { root } from "../../../infra/scripts/service.ts"
import { measure, pageOf, tableOf } from "./Page.ts"

const { values: flags } = parseArgs({
  options: {
    "licenses-max": { type: "string", default: "1000000" },
    only: { type: "string" },
    short: { type: "boolean", default: false }
  }
})

const rounds = flags.short ? ["--rounds", "1", "--seconds", "1"] : ["--rounds", "3", "--seconds", "5"]

interface SideRow {
  readonly operation: string
  readonly side: "service" | "baseline" | "bare"
  readonly requests_per_second: number
  readonly p50_ms: number
  readonly p99_ms: number
  readonly cpu_us_per_request: number
  readonly postgres_cpu_seconds: number
  readonly answered: number
}

const ratio = (value: number, other: number) => (value / other).toFixed(2)

const sides = () => {
  const { command, result } = measure<{ rows: ReadonlyArray<SideRow> }>("bench", ["--warmup", "2", ...rounds])
  const of = (side: SideRow["side"]) => result.rows.filter((row) => row.side === side)
  const [bare] = of("bare")
  const pairs = of("service").map((service) => ({
    service,
    baseline: of("baseline").find(({ operation }) => operation === service.operation)!
  }))
  const speed = pairs.map(({ baseline, service }) => ({
    Operation: service.operation,
    Service: `${service.requests_per_second}/s`,
    Baseline: `${baseline.requests_per_second}/s`,
    Ratio: ratio(service.requests_per_second, baseline.requests_per_second),
    "p50, ms": `${service.p50_ms} (${baseline.p50_ms})`,
    "p99, ms": `${service.p99_ms} (${baseline.p99_ms})`
  }))
  const postgres = ({ answered, postgres_cpu_seconds }: SideRow) => Math.round((1e6 * postgres_cpu_seconds) / answered)
  const cost = pairs.map(({ baseline, service }) => ({
    "CPU per request, µs": service.operation,
    Service: service.cpu_us_per_request,
    "PostgreSQL, service": postgres(service),
    Baseline: baseline.cpu_us_per_request,
    "PostgreSQL, baseline": postgres(baseline),
    "Bare server": bare?.operation === service.operation ? bare.cpu_us_per_request : "–"
  }))
  return {
    title: "Against a hand-written service and a bare server",
    commands: [command],
    text: `The baseline is Fastify, node-postgres and one transaction with row locks for each request; its latencies stand in
parentheses. The bare server reads the body, makes one Ed25519 signature and answers. All run in turns on the same machine with
their load and PostgreSQL.`,
    tables: [tableOf(speed), tableOf(cost)]
  }
}

const memory = () => {
  const licenses = flags.short ? "500" : "10000"
  const { command, result } = measure<{
    rows: ReadonlyArray<{ licenses: number; peak_megabytes_made: number; peak_megabytes_used: number }>
  }>("bench", ["--memory", "--licenses", licenses])
  const rows = result.rows.map(({ licenses, peak_megabytes_made, peak_megabytes_used }) => ({
    Licenses: licenses,
    "Peak when created, MB": peak_megabytes_made,
    "Peak when each was used, MB": peak_megabytes_used
  }))
  return {
    title: "Memory",
    commands: [command],
    text: "The peak of one node that creates licenses over the API and then serves each of them.",
    tables: [tableOf(rows)]
  }
}

interface ScaleRow {
  readonly operation: string
  readonly p50_few_ms: number
  readonly p50_ms: number
  readonly p99_few_ms: number
  readonly p99_ms: number
}

const growth = () => {
  const most = flags.short ? 2_000 : Number(flags["licenses-max"])
  const sizes = [10_000, 100_000, 1_000_000, 10_000_000].filter((size) => size < most).concat(most)
  const only =
    "get license,list licenses by status active,search by,overview of 30 days,attention,create,activate,validate"
  const measured = sizes.map((size) => {
    const share = (part: number) => String(Math.round(size * part))
    const options = {
      licenses: share(1),
      customers: share(0.1),
      devices: share(2),
      events: share(5),
      requests: flags.short ? "40" : "1000"
    }
    const { command, result } = measure<ReadonlyArray<ScaleRow>>("bench:scale", [
      ...Object.entries(options).flatMap(([name, value]) => [`--${name}`, value]),
      "--only",
      only
    ])
    return { command, result, size }
  })
  const rows = measured[0]!.result.map(({ operation, p50_few_ms, p99_few_ms }) => ({
    "p50 and p99, ms": operation,
    "1,000": `${p50_few_ms} · ${p99_few_ms}`,
    ...Object.fromEntries(
      measured.map(({ result, size }) => {
        const row = result.find((other) => other.operation === operation)!
        return [size.toLocaleString("en"), `${row.p50_ms} · ${row.p99_ms}`]
      })
    )
  }))
  return {
    title: "By number of licenses",
    commands: measured.map(({ command }) => command),
    text: "The same requests beside each other against databases of a thousand and of more licenses, with 0.1 customers, 2 devices and 5 events for each.",
    tables: [tableOf(rows)]
  }
}

interface LargeRow {
  readonly operation: string
  readonly p50_small: number
  readonly p50_featured: number
  readonly p50_large: number
  readonly p99_small: number
  readonly p99_featured: number
  readonly p99_large: number
}

const license = () => {
  const size = flags.short ? ["--devices", "500", "--leases", "20", "--features", "20"] : []
  const { command, result } = measure<ReadonlyArray<LargeRow>>("bench:large", [
    "--policies",
    "plain",
    "--requests",
    flags.short ? "40" : "2000",
    ...size
  ])
  const rows = result.map((row) => ({
    "p50 and p99, ms": row.operation,
    "50 devices, 3 features": `${row.p50_small} · ${row.p99_small}`,
    "50 devices, 200 features": `${row.p50_featured} · ${row.p99_featured}`,
    "50,000 devices, 5,000 leases, 200 features": `${row.p50_large} · ${row.p99_large}`
  }))
  return {
    title: "By features and devices of a license",
    commands: [command],
    text: "A response with 200 features has 13 kB instead of 600 bytes.",
    tables: [tableOf(rows)]
  }
}

interface NodesRow {
  readonly nodes: number
  readonly licenses: number
  readonly sent_to: string
  readonly per_second: number
  readonly p50_ms: number
  readonly p99_ms: number
  readonly cpu_us: number
  readonly postgres_cpu_us: number
}

const nodes = () => {
  const { command, result } = measure<{ rows: ReadonlyArray<NodesRow> }>("bench:nodes", [
    "--nodes",
    flags.short ? "1,2" : "1,2,3",
    "--cluster",
    ...rounds
  ])
  const rows = result.rows.map((row) => ({
    Nodes: row.nodes,
    Licenses: row.licenses,
    "Sent to": row.sent_to,
    "per second": row.per_second,
    "p50, ms": row.p50_ms,
    "p99, ms": row.p99_ms,
    "CPU of the nodes, µs": row.cpu_us,
    "CPU of PostgreSQL, µs": row.postgres_cpu_us
  }))
  return {
    title: "By number of nodes",
    commands: [command],
    text: "Consumptions; licenses have owners. All nodes share the two cores with PostgreSQL and the load, so more of them show their cost, not their gain.",
    tables: [tableOf(rows)]
  }
}

const start = () => {
  const { command, result } = measure<ReadonlyArray<object>>("bench:start", [])
  return {
    title: "Start",
    commands: [command],
    text: "From the start of the process until `/readyz` answers 200, and the memory that it then has.",
    tables: [tableOf(result)]
  }
}

const parts = { sides, memory, growth, license, nodes, start }

const named = flags.only?.split(",")
const unknown = named?.filter((name) => !(name in parts)) ?? []
if (unknown.length > 0) throw new Error(`--only takes some of: ${Object.keys(parts).join(", ")}`)

const page = pageOf(
  Object.entries(parts)
    .filter(([name]) => named === undefined || named.includes(name))
    .map(([, make]) => make())
)
if (named === undefined && !flags.short) writeFileSync(join(root, "docs/FIGURES.md"), page)
else process.stdout.write(page)
