/**
 * The cost of a large installation: the same requests against a database of a million licenses and against one of a
 * thousand, in alternating turns, by two processes of the service over one PostgreSQL server on one machine.
 *
 *   npm run bench:scale -- [--small] [--licenses 1000000] [--customers 100000] [--devices 2000000] [--events 5000000]
 *                          [--requests 2000] [--connections 4] [--only list,activate] [--folder <path>] [--json] [--assert]
 *
 * --small is a smoke test with a hundredth of all sizes. --only takes prefixes of names. --folder keeps the databases
 * there, so that the next run with it measures without filling them. --assert exits with 1 if a p99 is more than twice
 * that of the small database, or a request fails. The full size needs 6 GB of disk and some minutes.
 */
import { randomBytes } from "node:crypto"
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join, resolve } from "node:path"
import { parseArgs } from "node:util"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Effect, Redacted } from "effect"
import { startService } from "../../infra/scripts/service.ts"
import { openSession } from "../../src/platform/postgres/driver/Postgres.ts"
import { table } from "./load/Report.ts"
import { folder, startPostgres } from "./load/Sides.ts"
import { inTurns, quantile, rounded, type TurnResult, type TurnSide } from "./load/Turns.ts"
import { operationsOf } from "./rows/scaleRequests.ts"
import { fill, type Sizes } from "./rows/scaleRows.ts"
import { type Sample, takeSample } from "./rows/scaleSample.ts"

const { values: flags } = parseArgs({
  options: {
    small: { type: "boolean", default: false },
    licenses: { type: "string", default: "1000000" },
    customers: { type: "string", default: "100000" },
    devices: { type: "string", default: "2000000" },
    events: { type: "string", default: "5000000" },
    requests: { type: "string", default: "2000" },
    connections: { type: "string", default: "4" },
    only: { type: "string", default: "" },
    folder: { type: "string" },
    json: { type: "boolean", default: false },
    assert: { type: "boolean", default: false }
  }
})

/** The maximum ratio of a p99. */
const ratioMax = 2
const smallShare = 0.01
/** The other side's share of the sizes. */
const fewShare = 0.001
/** With fewer licenses, a page of some list would not be full. */
const fewMin = 1_000

const sizes = (prefixes: number): Sizes => {
  const share = Math.min(1, Math.max(prefixes, fewMin / Number(flags.licenses)))
  const of = (count: string | number) => Math.max(1, Math.round(Number(count) * share))
  const { customers, devices, events, licenses } = flags
  return {
    products: of(1000),
    licenses: of(licenses),
    customers: of(customers),
    devices: of(devices),
    events: of(events),
    others: of(Number(licenses) / 20),
    crowd: 0
  }
}

/** Progress goes to standard error: standard output contains only the result. */
const say = (line: string) => Effect.sync(() => process.stderr.write(`${line}\n`))

interface Side {
  readonly name: string
  readonly base: string
  readonly token: string
  readonly sample: Sample
}

/** A filled database for the side, with a service that was started after filling it. */
const startSide = Effect.fnUntraced(function* (
  name: string,
  server: Redacted.Redacted<string>,
  directory: string,
  share: number
) {
  const url = new URL(Redacted.value(server))
  url.pathname = `scale_${name}`
  const { filled, masterKey, token } = yield* Effect.sync(() => secretsOf(join(directory, `${name}.json`)))
  const settings = {
    LICENSING_DATABASE_URL: url.href,
    LICENSING_MASTER_KEY: masterKey,
    LICENSING_BOOTSTRAP_TOKEN: token,
    LICENSING_LOG_LEVEL: "warning",
    LICENSING_RATE_RUNTIME: "0",
    LICENSING_RATE_ACTIVATION: "0",
    LICENSING_RATE_MANAGEMENT: "0",
    LICENSING_RATE_FAILURES: "0"
  }
  const log = join(directory, `${name}.log`)
  if (!filled) {
    const admin = yield* openSession(server)
    yield* admin.values(`CREATE DATABASE scale_${name}`)
    // Creates the tables and the first API key.
    yield* Effect.promise(() => startService({ log, settings }).then((running) => running.stop()))
  }
  const session = yield* openSession(Redacted.make(url.href))
  if (!filled) yield* fill(session, sizes(share), (line) => say(`${name}: ${line}`))
  yield* Effect.sync(() =>
    writeFileSync(join(directory, `${name}.json`), JSON.stringify({ filled: true, masterKey, token }))
  )
  const sample = yield* takeSample(session)
  const running = yield* Effect.acquireRelease(
    Effect.promise(() => startService({ log, settings })),
    (running) => Effect.promise(() => running.stop())
  )
  return { name, base: running.base, token, sample } satisfies Side as Side
})

interface Secrets {
  readonly filled: boolean
  readonly masterKey: string
  readonly token: string
}

/** The secrets of a database that an earlier run filled, or new ones. */
const secretsOf = (file: string): Secrets =>
  existsSync(file)
    ? JSON.parse(readFileSync(file, "utf8"))
    : {
        filled: false,
        masterKey: randomBytes(32).toString("base64"),
        token: `bench_${randomBytes(32).toString("base64url")}`
      }

/** PostgreSQL's own user must be able to enter it. */
const readStored = (path: string) =>
  Effect.sync(() => {
    mkdirSync(path, { recursive: true, mode: 0o711 })
    return resolve(path)
  })

/** Many short turns of one operation, alternating between the sides. */
const measure = async (name: string, turnSides: ReadonlyArray<TurnSide>) => {
  const [large, few] = (await inTurns(turnSides, Number(flags.requests))) as [TurnResult, TurnResult]
  const failed = large.failed + few.failed
  const [p50, p50Few] = [quantile(large.latencies, 0.5), quantile(few.latencies, 0.5)]
  const [p99, p99Few] = [quantile(large.latencies, 0.99), quantile(few.latencies, 0.99)]
  return {
    operation: name,
    p50_few_ms: rounded(p50Few),
    p50_ms: rounded(p50),
    p99_few_ms: rounded(p99Few),
    p99_ms: rounded(p99),
    p50_ratio: rounded(p50 / p50Few),
    p99_ratio: rounded(p99 / p99Few),
    failed,
    holds: p99 <= ratioMax * p99Few && failed === 0
  }
}

const program = Effect.gen(function* () {
  const directory = yield* flags.folder === undefined ? folder : readStored(flags.folder)
  const postgres = yield* startPostgres(directory)
  const share = flags.small ? smallShare : 1
  const sides = [
    yield* startSide("full", postgres.url, directory, share),
    yield* startSide("few", postgres.url, directory, share * fewShare)
  ]
  const rows: Array<Awaited<ReturnType<typeof measure>>> = []
  const prefixes = flags.only.split(",")
  const all = sides.map((side) => operationsOf(side, Number(flags.connections)))
  for (const [index, { name }] of all[0]!.operations.entries()) {
    if (!prefixes.some((beginning) => name.startsWith(beginning))) continue
    const row = yield* Effect.promise(() =>
      measure(
        name,
        all.map(({ operations }) => operations[index]!)
      )
    )
    rows.push(row)
    yield* say(`${name}: p99 ${row.p99_few_ms} ms with few rows, ${row.p99_ms} ms with many`)
  }
  for (const { close } of all) yield* Effect.promise(close)
  yield* Effect.sync(() => process.stdout.write(`${flags.json ? JSON.stringify(rows, null, 2) : table(rows)}\n`))
  if (flags.assert && rows.some(({ holds }) => !holds)) yield* Effect.sync(() => (process.exitCode = 1))
})

NodeRuntime.runMain(Effect.scoped(program))
