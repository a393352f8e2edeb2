/**
 * The cost of reports on a long ledger: a summary by day over a month, pages at any depth, and exports of everything.
 *
 *   npm run bench:reports -- [--rows 5000000] [--requests 200] [--keep <folder>] [--only summary,pages,csv,pdf] [--json] [--assert]
 *
 * --keep fills the database in that folder once and uses it again. --assert exits with 1 if a target is missed. The
 * full size needs 15 GB of disk and some minutes.
 */
import { randomBytes } from "node:crypto"
import { chmodSync, existsSync, mkdirSync, writeFileSync } from "node:fs"
import { join, resolve } from "node:path"
import { parseArgs } from "node:util"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Effect, Redacted } from "effect"
import { Pool } from "undici"
import { startService } from "../../infra/scripts/service.ts"
import { openSession } from "../../src/platform/postgres/driver/Postgres.ts"
import { cpuSeconds, cpuSecondsOfFamily, peakMegabytes } from "./load/Processes.ts"
import { table } from "./load/Report.ts"
import { folder, startPostgres } from "./load/Sides.ts"
import { fillLedger, ledgerDays, reportSizes } from "./rows/ledgerRows.ts"
import { fill, hotProduct } from "./rows/scaleRows.ts"

const { values: flags } = parseArgs({
  options: {
    rows: { type: "string", default: "5000000" },
    requests: { type: "string", default: "200" },
    keep: { type: "string", default: "" },
    only: { type: "string", default: "summary,pages,csv,pdf" },
    json: { type: "boolean", default: false },
    assert: { type: "boolean", default: false }
  }
})

const rows = Number(flags.rows)
const requests = Number(flags.requests)
const targets = { summaryMillisP99: 300, pageMillisP99: 20, csvRowsPerSecond: 100_000, csvMegabytes: 300 }
const dayMillis = 86_400_000
const pageRows = 200
const adminToken = `bench_${"reports".repeat(6)}`

interface Finding {
  readonly figure: string
  readonly found: number
  readonly unit: string
  readonly target: string
  readonly holds: boolean
}

/** Progress goes to standard error: standard output contains only the result. */
const say = (line: string) => Effect.sync(() => process.stderr.write(`${line}\n`))

const settings = (url: string) => ({
  LICENSING_DATABASE_URL: url,
  LICENSING_MASTER_KEY: Buffer.alloc(32, 1).toString("base64"),
  LICENSING_BOOTSTRAP_TOKEN: adminToken,
  LICENSING_LOG_LEVEL: "warning",
  LICENSING_RATE_MANAGEMENT: "0"
})

/** The folder of the database: one that is kept, or one that is deleted at the end. */
const directory = Effect.suspend(() => {
  if (flags.keep === "") return folder
  const path = resolve(flags.keep)
  mkdirSync(path, { recursive: true })
  // PostgreSQL's own user must be able to enter it.
  chmodSync(path, 0o711)
  return Effect.succeed(path)
})

const filled = Effect.fnUntraced(function* (server: Redacted.Redacted<string>, path: string) {
  const url = new URL(Redacted.value(server))
  url.pathname = "reports"
  const mark = join(path, `filled-${rows}`)
  if (existsSync(mark)) return url.href
  const admin = yield* openSession(server)
  yield* admin.values("CREATE DATABASE reports")
  // Creates the tables and the first API key.
  const log = join(path, "service.log")
  yield* Effect.promise(() => startService({ log, settings: settings(url.href) }).then((running) => running.stop()))
  const session = yield* openSession(Redacted.make(url.href))
  const sizes = reportSizes(rows / 5_000_000)
  yield* fill(session, sizes, say)
  yield* fillLedger(session, rows, sizes.licenses)
  yield* say(`usage_ledger: ${rows} rows`)
  writeFileSync(mark, "")
  return url.href
}, Effect.scoped)

const quantile = (latencies: ReadonlyArray<number>, share: number): number =>
  Float64Array.from(latencies).sort()[Math.min(latencies.length - 1, Math.floor(latencies.length * share))] ??
  Number.NaN

interface Running {
  readonly base: string
  readonly pid: number
}

/** Sequential requests; milliseconds of each. */
const timed = async ({ base }: Running, count: number, pathOf: (index: number) => string) => {
  const pool = new Pool(base, { connections: 1 })
  const latencies: Array<number> = []
  for (let index = -5; index < count; index++) {
    const began = performance.now()
    const headers = { authorization: `Bearer ${adminToken}` }
    const answer = await pool.request({ path: `/api/v1/reports/${pathOf(index)}`, method: "GET", headers })
    const text = await answer.body.text()
    if (answer.statusCode !== 200) throw new Error(text)
    if (index >= 0) latencies.push(performance.now() - began)
  }
  await pool.close()
  return latencies
}

const below = (figure: string, latencies: ReadonlyArray<number>, most: number): ReadonlyArray<Finding> => {
  const p99 = Number(quantile(latencies, 0.99).toFixed(1))
  const p50 = Number(quantile(latencies, 0.5).toFixed(1))
  return [
    { figure: `${figure}, p50`, found: p50, unit: "ms", target: "", holds: true },
    { figure: `${figure}, p99`, found: p99, unit: "ms", target: `at most ${most}`, holds: p99 <= most }
  ]
}

/** A different month each time. */
const summary = async (running: Running) => {
  const now = Date.now()
  const latencies = await timed(running, requests, (index) => {
    const to = now - (((index + 5) * 37) % (ledgerDays - 31)) * dayMillis
    const period = `from=${new Date(to - 30 * dayMillis).toISOString()}&to=${new Date(to).toISOString()}`
    return `usage-summary?product_id=${hotProduct}&bucket=1d&${period}`
  })
  return below("usage-summary by day, a month of one product", latencies, targets.summaryMillisP99)
}

const pages = async (running: Running) => {
  const latencies = await timed(running, requests, (index) => {
    const cursor = 1 + Math.floor(((index + 5) / (requests + 5)) * rows)
    return `usage-ledger?limit=${pageRows}&cursor=${Math.max(pageRows, cursor)}`
  })
  return below(`usage-ledger, pages of ${pageRows} at any depth`, latencies, targets.pageMillisP99)
}

/** Creates an export of the whole ledger and waits until it is complete. */
const exported = async ({ base, pid }: Running, postgresPid: number, format: "csv" | "pdf") => {
  const began = performance.now()
  const cpu = [cpuSeconds(pid), cpuSecondsOfFamily(postgresPid)] as const
  const headers = { authorization: `Bearer ${adminToken}`, "content-type": "application/json" }
  const ask = async (path: string, init: object = {}) => {
    const answer = await fetch(`${base}/api/v1/reports/exports${path}`, { headers, ...init })
    return ((await answer.json()) as { readonly data: Record<string, unknown> }).data
  }
  let exportState = await ask("", { method: "POST", body: JSON.stringify({ report_kind: "usage-ledger", format }) })
  while (exportState["status"] !== "completed") {
    if (exportState["status"] === "failed") throw new Error(String(exportState["failure"]))
    await new Promise((resolve) => setTimeout(resolve, 200))
    exportState = await ask(`/${exportState["id"]}`)
  }
  const seconds = (performance.now() - began) / 1_000
  const spent = [cpuSeconds(pid) - cpu[0], cpuSecondsOfFamily(postgresPid) - cpu[1]] as const
  const from = performance.now()
  const file = await fetch(`${base}/api/v1/reports/exports/${exportState["id"]}/download`, { headers })
  let bytes = 0
  for await (const piece of file.body!) bytes += piece.length
  const downloadSeconds = (performance.now() - from) / 1_000
  if (bytes !== exportState["size_bytes"] || exportState["rows"] !== rows) throw new Error("the file is not whole")
  return { seconds, downloadSeconds, bytes, megabytes: peakMegabytes(pid), spent }
}

const csv = async (running: Running, postgresPid: number): Promise<ReadonlyArray<Finding>> => {
  const { bytes, downloadSeconds, megabytes, seconds, spent } = await exported(running, postgresPid, "csv")
  const perSecond = Math.round(rows / seconds)
  const fact = (figure: string, found: number, unit: string) => ({ figure, found, unit, target: "", holds: true })
  return [
    {
      figure: "csv export of the ledger, made",
      found: perSecond,
      unit: "rows/s",
      target: `at least ${targets.csvRowsPerSecond}`,
      holds: perSecond >= targets.csvRowsPerSecond
    },
    {
      figure: "peak memory of the service",
      found: megabytes,
      unit: "MB",
      target: `at most ${targets.csvMegabytes}`,
      holds: megabytes <= targets.csvMegabytes
    },
    fact("CPU of the service, a row", Number(((spent[0] * 1e6) / rows).toFixed(1)), "µs"),
    fact("CPU of PostgreSQL, a row", Number(((spent[1] * 1e6) / rows).toFixed(1)), "µs"),
    fact("downloaded", Math.round(rows / downloadSeconds), "rows/s"),
    fact("size of the file", Math.round(bytes / 1e6), "MB")
  ]
}

const pdf = async (running: Running, postgresPid: number): Promise<ReadonlyArray<Finding>> => {
  const { bytes, megabytes, seconds } = await exported(running, postgresPid, "pdf")
  const fact = (figure: string, found: number, unit: string) => ({ figure, found, unit, target: "", holds: true })
  return [
    fact("pdf export of the ledger, made", Math.round(rows / seconds), "rows/s"),
    fact("peak memory of the service", megabytes, "MB"),
    fact("size of the file", Math.round(bytes / 1e3), "kB")
  ]
}

/** Waits until every complete day of the ledger has been summed up. */
const rolledUp = Effect.fnUntraced(function* (url: string) {
  const session = yield* openSession(Redacted.make(url))
  const began = performance.now()
  const open = Effect.map(
    session.values(`
      SELECT (SELECT ledger_last FROM event_sequence) - (SELECT sequence FROM usage_rollup_progress),
        (SELECT count(*) FROM usage_rollup_days
          WHERE rolled_rows <> ledger_rows AND day < now() - interval '24 hours 11 minutes')`),
    (rows) => Number(rows[0]?.[0]) + Number(rows[0]?.[1])
  )
  while ((yield* open) > 0) yield* Effect.sleep("500 millis")
  yield* say(`rolled up: ${((performance.now() - began) / 1_000).toFixed(1)} s`)
}, Effect.scoped)

const program = Effect.gen(function* () {
  const path = yield* directory
  const postgres = yield* startPostgres(path)
  const url = yield* filled(postgres.url, path)
  const findings: Array<Finding> = []
  const log = join(path, `${randomBytes(4).toString("hex")}.log`)
  for (const [name, measure] of Object.entries({ summary, pages, csv, pdf })) {
    if (!flags.only.split(",").includes(name)) continue
    yield* say(`measuring: ${name}`)
    // Each in its own service process, so that memory is measured separately.
    const found = yield* Effect.acquireUseRelease(
      Effect.promise(() => startService({ log, settings: settings(url) })),
      (running) =>
        Effect.andThen(
          rolledUp(url),
          Effect.promise(() => measure(running, postgres.pid))
        ),
      (running) => Effect.promise(() => running.stop())
    )
    findings.push(...found)
  }
  yield* Effect.sync(() =>
    process.stdout.write(`${flags.json ? JSON.stringify(findings, null, 2) : table(findings)}\n`)
  )
  if (flags.assert && findings.some(({ holds }) => !holds)) yield* Effect.sync(() => (process.exitCode = 1))
})

NodeRuntime.runMain(Effect.scoped(program))
