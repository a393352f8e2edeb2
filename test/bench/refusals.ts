/**
 * The cost of refusing wrong license keys, sent as fast as a few connections can: text that is not a key, keys with a
 * wrong checksum, and well-formed keys of no license. Each with the limit of failed credentials off, when every refusal
 * states its reason, and on, when nearly all are answered 429. At the end text again, while a license has a vendor key.
 *
 *   npm run bench:refusals -- [--seconds 8] [--connections 64] [--limits off,on] [--json] [--assert]
 *
 * Transactions are those of the database minus its transactions while idle. --assert exits with 1 if fewer than 10,000
 * a second are refused, a key that cannot be valid costs the database a transaction, or one that could costs a
 * transaction of its own.
 */
import { randomBytes } from "node:crypto"
import { parseArgs } from "node:util"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Effect, type Redacted } from "effect"
import * as LicenseKey from "../../src/licensing/model/LicenseKey.ts"
import { openSession } from "../../src/platform/postgres/driver/Postgres.ts"
import { cpuSeconds, cpuSecondsOfFamily } from "./load/Processes.ts"
import { table } from "./load/Report.ts"
import { sendAll } from "./load/SendAll.ts"
import { say, startOn } from "./load/Service.ts"
import { folder, startPostgres } from "./load/Sides.ts"
import { quantile, rounded } from "./load/Turns.ts"

const { values: flags } = parseArgs({
  options: {
    seconds: { type: "string", default: "8" },
    connections: { type: "string", default: "64" },
    limits: { type: "string", default: "off,on" },
    json: { type: "boolean", default: false },
    assert: { type: "boolean", default: false }
  }
})

/** Validations with keys of one kind. */
const validations = (makeKey: () => string) => {
  const body = JSON.stringify({ fingerprint: "machine" })
  return {
    operation: "validate",
    connections: Number(flags.connections),
    makeRequest: () => ({ authorization: `License ${makeKey()}`, body })
  }
}

const perSecondMin = 10_000
/** A few of the database's background transactions may fall into a measurement. */
const transactionsPerRefusalMax = { never: 0.001, batched: 0.2 }

const wellFormed = () => LicenseKey.fromBytes(randomBytes(28))

const keys: Record<string, { readonly make: () => string; readonly touches: keyof typeof transactionsPerRefusalMax }> =
  {
    "no key": { make: () => text(), touches: "never" },
    // The last character is half of the checksum.
    "wrong check": {
      make: () => wellFormed().replace(/.$/, (last) => (last === "0" ? "1" : "0")),
      touches: "never"
    },
    "unknown key": { make: wellFormed, touches: "batched" }
  }

/** PostgreSQL's sessions report their last transactions only after this idle time. */
const statisticsDelayMillis = 11_000

const wait = (millis: number) => Effect.promise(() => new Promise((resolve) => setTimeout(resolve, millis)))

/** Transactions of a database so far. */
const transactions = Effect.fnUntraced(function* (url: Redacted.Redacted<string>) {
  const session = yield* openSession(url)
  const [row] = yield* session.values(
    "SELECT (xact_commit + xact_rollback)::int4 FROM pg_stat_database WHERE datname = current_database()"
  )
  return Number(row?.[0])
}, Effect.scoped)

interface Measured {
  readonly limit: string
  readonly base: string
  readonly pid: number
  readonly database: { readonly url: Redacted.Redacted<string>; readonly pid: number }
}

type Kinds = typeof keys

const measure = Effect.fnUntraced(function* ({ base, database, limit, pid }: Measured, kinds: Kinds) {
  const seconds = Number(flags.seconds)
  /** Transactions since the previous call, and seconds. */
  const since = Effect.fnUntraced(function* (last: { readonly at: number; readonly count: number }) {
    yield* wait(statisticsDelayMillis)
    const now = { at: performance.now(), count: yield* transactions(database.url) }
    return { now, made: now.count - last.count, seconds: (now.at - last.at) / 1000 }
  })
  yield* Effect.promise(() => sendAll(base, { ...validations(wellFormed), seconds: 2 }))
  let { now } = yield* since({ at: 0, count: 0 })
  const idle = yield* since(now)
  now = idle.now
  const rows = []
  for (const [kind, { make, touches }] of Object.entries(kinds)) {
    yield* say(`${kind}, limit of failures ${limit}`)
    const before = [cpuSeconds(pid), cpuSecondsOfFamily(database.pid)] as const
    const { latencies, statuses } = yield* Effect.promise(() => sendAll(base, { ...validations(make), seconds }))
    const cpu = [cpuSeconds(pid) - before[0], cpuSecondsOfFamily(database.pid) - before[1]] as const
    const idleUse = yield* since(now)
    now = idleUse.now
    const refused = latencies.length
    const own = idleUse.made - (idleUse.seconds * idle.made) / idle.seconds
    const perRefusal = Math.max(0, own / refused)
    const perSecond = Math.round(refused / seconds)
    rows.push({
      keys: kind,
      limit_of_failures: limit,
      per_second: perSecond,
      p50_ms: rounded(quantile(latencies, 0.5)),
      p99_ms: rounded(quantile(latencies, 0.99)),
      cpu_us: Math.round((1e6 * cpu[0]) / refused),
      postgres_cpu_us: rounded((1e6 * cpu[1]) / refused, 1),
      transactions_each: rounded(perRefusal, 4),
      told_401: statuses[401] ?? 0,
      told_429: statuses[429] ?? 0,
      holds:
        perSecond >= perSecondMin &&
        perRefusal <= transactionsPerRefusalMax[touches] &&
        (statuses[401] ?? 0) + (statuses[429] ?? 0) === refused
    })
  }
  return rows
})

const text = () => wellFormed().slice(0, -7)

/** The first of the services stores it, and all take it. */
const LICENSING_BOOTSTRAP_TOKEN = `bench_${randomBytes(32).toString("base64url")}`

/** Issues a license with a vendor key. */
const issueVendorKey = (base: string) =>
  Effect.promise(async () => {
    const create = async (path: string, body: object): Promise<{ readonly id: string }> => {
      const headers = { authorization: `Bearer ${LICENSING_BOOTSTRAP_TOKEN}`, "content-type": "application/json" }
      const response = await fetch(`${base}/api/v1${path}`, { method: "POST", headers, body: JSON.stringify(body) })
      return ((await response.json()) as { readonly data: { readonly id: string } }).data
    }
    const { id: product_id } = await create("/products", { name: "P", code: "refusals" })
    const policy = { name: "P", code: "p", license_type: "perpetual" }
    const { id: policy_id } = await create(`/products/${product_id}/policies`, policy)
    await create("/licenses", { product_id, policy_id, license_key: "a-key-of-the-vendor" })
  })

const program = Effect.gen(function* () {
  const directory = yield* folder
  const database = yield* startPostgres(directory)
  const limits = Object.entries({ off: "0", on: "30" }).filter(([limit]) => flags.limits.split(",").includes(limit))
  const measured = yield* Effect.forEach(limits, ([limit, LICENSING_RATE_FAILURES]) =>
    Effect.scoped(
      Effect.flatMap(
        startOn(database.url, directory, { LICENSING_RATE_FAILURES, LICENSING_BOOTSTRAP_TOKEN }),
        ({ base, pid }) => measure({ limit, base, pid, database }, keys)
      )
    )
  )
  const withVendorKeys = Effect.flatMap(
    startOn(database.url, directory, { LICENSING_RATE_FAILURES: "0", LICENSING_BOOTSTRAP_TOKEN }),
    ({ base, pid }) =>
      Effect.andThen(
        issueVendorKey(base),
        measure({ limit: "off", base, pid, database }, { "no key, vendor keys": { make: text, touches: "batched" } })
      )
  )
  const rows = [...measured.flat(), ...(yield* Effect.scoped(withVendorKeys))]
  yield* Effect.sync(() => process.stdout.write(`${flags.json ? JSON.stringify(rows, null, 2) : table(rows)}\n`))
  if (flags.assert && rows.some(({ holds }) => !holds)) yield* Effect.sync(() => (process.exitCode = 1))
})

NodeRuntime.runMain(Effect.scoped(program))
