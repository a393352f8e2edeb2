/**
 * The cost of imports beside an idle node: licenses of a CSV file, an export and its import, a Keygen account, and licenses that
 * are issued in batches over HTTP. Each into a database of its own.
 *
 *   npm run bench:imports -- [--licenses 100000] [--rounds 1] [--only csv,file,keygen,batch] [--against <checkout>] [--json]
 *                            [--assert]
 *
 * --only takes names. --against alternates with another checkout. --assert exits with 1 if the CSV file takes more than 60 s.
 */
import { spawn } from "node:child_process"
import { randomBytes } from "node:crypto"
import { once } from "node:events"
import { rmSync } from "node:fs"
import { join, resolve } from "node:path"
import { parseArgs } from "node:util"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Effect, Redacted } from "effect"
import { root, startService } from "../../infra/scripts/service.ts"
import { openSession } from "../../src/platform/postgres/driver/Postgres.ts"
import { cpuSeconds, cpuSecondsOfFamily, peakMegabytes } from "./load/Processes.ts"
import { table } from "./load/Report.ts"
import { folder, startPostgres } from "./load/Sides.ts"
import { createCatalog, issueBatches, writeCsv, writeKeygen } from "./rows/importSources.ts"

const { values: flags } = parseArgs({
  options: {
    licenses: { type: "string", default: "100000" },
    rounds: { type: "string", default: "1" },
    only: { type: "string", default: "csv,file,keygen,batch" },
    against: { type: "string" },
    json: { type: "boolean", default: false },
    assert: { type: "boolean", default: false }
  }
})
const licenses = Number(flags.licenses)
const chosen = new Set(flags.only.split(","))
const csvSecondsMax = 60

interface Row {
  readonly what: string
  readonly side: string
  readonly seconds: number
  readonly command_cpu: number
  readonly postgres_cpu: number
  readonly peak_megabytes: number
}

const rows: Array<Row> = []
const rounded = (value: number) => Number(value.toFixed(1))
const pollMillis = 50

/** Runs a command of a checkout to its end. Its CPU and memory are those of the last look at it. */
const runCommand = async (
  checkout: string,
  settings: Record<string, string>,
  args: ReadonlyArray<string>
): Promise<Pick<Row, "command_cpu" | "peak_megabytes">> => {
  const child = spawn(join(checkout, "node_modules/.bin/node"), ["src/main.ts", ...args], {
    cwd: checkout,
    env: { ...process.env, ...settings },
    stdio: ["ignore", "ignore", "inherit"]
  })
  let [command_cpu, peak_megabytes] = [0, 0]
  const timer = setInterval(() => {
    const [cpu, peak] = [cpuSeconds(child.pid!), peakMegabytes(child.pid!)]
    if (cpu > 0) command_cpu = cpu
    if (peak > 0) peak_megabytes = peak
  }, pollMillis)
  const [code] = await once(child, "exit")
  clearInterval(timer)
  if (code !== 0) throw new Error(`${args.join(" ")} ended with ${code}`)
  return { command_cpu, peak_megabytes }
}

const measured = async (
  what: string,
  side: string,
  postgres: number,
  run: () => Promise<Pick<Row, "command_cpu" | "peak_megabytes">>
) => {
  const before = cpuSecondsOfFamily(postgres)
  const began = performance.now()
  const used = await run()
  const seconds = rounded((performance.now() - began) / 1000)
  const row = { what, side, seconds, ...used, postgres_cpu: rounded(cpuSecondsOfFamily(postgres) - before) }
  rows.push(row)
  process.stderr.write(`${what} (${side}): ${seconds} s, CPU ${row.command_cpu} s and ${row.postgres_cpu} s\n`)
}

/** A node of a checkout over a new database. */
const startNode = Effect.fnUntraced(function* (
  checkout: string,
  server: Redacted.Redacted<string>,
  directory: string,
  name: string,
  masterKey: string
) {
  const admin = yield* openSession(server)
  yield* admin.values(`CREATE DATABASE ${name}`)
  const url = new URL(Redacted.value(server))
  url.pathname = name
  const token = `bench_${randomBytes(32).toString("base64url")}`
  const settings = {
    LICENSING_DATABASE_URL: url.href,
    LICENSING_MASTER_KEY: masterKey,
    LICENSING_BOOTSTRAP_TOKEN: token,
    LICENSING_LOG_LEVEL: "warning",
    LICENSING_RATE_MANAGEMENT: "0"
  }
  const running = yield* Effect.acquireRelease(
    Effect.promise(() => startService({ folder: checkout, log: join(directory, `${name}.log`), settings })),
    (running) => Effect.promise(() => running.stop())
  )
  const drop = Effect.andThen(
    Effect.promise(() => running.stop()),
    admin.values(`DROP DATABASE ${name} WITH (FORCE)`)
  )
  return { base: running.base, pid: running.pid, token, settings, drop }
})

const measureSide = Effect.fnUntraced(function* (
  side: string,
  checkout: string,
  postgres: { readonly url: Redacted.Redacted<string>; readonly pid: number },
  directory: string
) {
  const masterKey = randomBytes(32).toString("base64")
  const node = (name: string) => startNode(checkout, postgres.url, directory, `${name}_${side}`, masterKey)
  const measure = (what: string, run: Parameters<typeof measured>[3]) =>
    Effect.promise(() => measured(what, side, postgres.pid, run))
  const command =
    (settings: Record<string, string>, ...args: ReadonlyArray<string>) =>
    () =>
      runCommand(checkout, settings, args)
  if (chosen.has("csv") || chosen.has("file")) {
    const first = yield* node("first")
    yield* Effect.promise(() => createCatalog(first))
    yield* measure("import csv", command(first.settings, "import", "csv", join(directory, "licenses.csv")))
    if (chosen.has("file")) {
      const exported = join(directory, `${side}.jsonl`)
      rmSync(exported, { force: true })
      yield* measure("export", command(first.settings, "export", exported))
      const second = yield* node("second")
      yield* measure("import file", command(second.settings, "import", "file", exported))
      yield* second.drop
    }
    yield* first.drop
  }
  if (chosen.has("keygen")) {
    const target = yield* node("keygen")
    yield* measure("import keygen", command(target.settings, "import", "keygen", join(directory, "keygen")))
    yield* target.drop
  }
  if (chosen.has("batch")) {
    const target = yield* node("batch")
    const catalog = yield* Effect.promise(() => createCatalog(target))
    for (const count of [1, 10]) {
      yield* measure(`POST /licenses/batch, ${count} of 1,000`, async () => {
        const before = cpuSeconds(target.pid)
        await issueBatches(target, catalog, count)
        return { command_cpu: rounded(cpuSeconds(target.pid) - before), peak_megabytes: peakMegabytes(target.pid) }
      })
    }
    yield* target.drop
  }
}, Effect.scoped)

const program = Effect.gen(function* () {
  const directory = yield* folder
  const postgres = yield* startPostgres(directory)
  yield* Effect.sync(() => {
    writeCsv(join(directory, "licenses.csv"), licenses)
    if (chosen.has("keygen")) writeKeygen(join(directory, "keygen"), licenses)
  })
  for (let round = 0; round < Number(flags.rounds); round++) {
    if (flags.against !== undefined) yield* measureSide("other", resolve(flags.against), postgres, directory)
    yield* measureSide("service", root, postgres, directory)
  }
  yield* Effect.sync(() =>
    process.stdout.write(`${flags.json ? JSON.stringify(rows, null, 2) : table(rows as never)}\n`)
  )
  const slow = rows.some(({ seconds, what }) => what === "import csv" && seconds > csvSecondsMax)
  if (flags.assert && slow) yield* Effect.sync(() => (process.exitCode = 1))
})

NodeRuntime.runMain(Effect.scoped(program))
