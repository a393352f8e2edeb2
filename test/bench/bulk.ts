/**
 * Bulk jobs over very many licenses, while validations and consumptions of other licenses run at a steady rate: suspends
 * them, and applies a changed policy to them. Then a dry run over all licenses, and a renewal during which the node gets
 * SIGKILL again and again.
 *
 *   npm run bench:bulk -- [--licenses 100000] [--others 899500] [--rate 300] [--seconds 15] [--kills 10] [--json]
 *
 * --licenses are those of the jobs; the dry run has --others and the 500 used ones besides. Exits with 1 if a job takes more than 60 s, the dry
 * run more than 30 s, a p50 or p99 more than doubles, a request fails, the node's memory grows by more than 100 MB, or a
 * license is not changed exactly once.
 */
import { readFileSync } from "node:fs"
import { setTimeout as pause } from "node:timers/promises"
import { parseArgs } from "node:util"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Effect } from "effect"
import { openSession } from "../../src/platform/postgres/driver/Postgres.ts"
import { type Management, makeSeats, managementOf, type Seat } from "./load/Licenses.ts"
import { insertMany, makePolicy } from "./load/ManyLicenses.ts"
import { table } from "./load/Report.ts"
import { say, startOn } from "./load/Service.ts"
import { folder, startPostgres } from "./load/Sides.ts"
import { comparisonOf, type Load, steadily, together } from "./load/Steady.ts"
import { rounded } from "./load/Turns.ts"
import type { Session } from "./rows/scaleRows.ts"

const { values: flags } = parseArgs({
  options: {
    licenses: { type: "string", default: "100000" },
    others: { type: "string", default: "899500" },
    rate: { type: "string", default: "300" },
    seconds: { type: "string", default: "15" },
    kills: { type: "string", default: "10" },
    json: { type: "boolean", default: false }
  }
})

const [licenses, others, rate, seconds, kills] = [
  Number(flags.licenses),
  Number(flags.others),
  Number(flags.rate),
  Number(flags.seconds),
  Number(flags.kills)
]
const targets = { jobSecondsMax: 60, dryRunSecondsMax: 30, ratioMax: 2, growthMax: 100 }
/** Licenses that are used during the jobs. */
const createdSeats = 500

interface Job {
  readonly id: string
  readonly status: string
  readonly matched: number
  readonly changed: number
  readonly refused: number
}

const megabytes = (pid: number): number =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) / 1024

const untilEnded = async ({ call }: Management, { id }: Job): Promise<Job> => {
  for (;;) {
    const job = await call<Job>(`/bulk-jobs/${id}`)
    if (job.status !== "pending" && job.status !== "running") return job
    await pause(200)
  }
}

/** Runs a job, and returns it with its duration and the greatest memory of the node. */
const run = async (management: Management, pid: number, body: object) => {
  const began = performance.now()
  const created = await management.call<Job>("/bulk-jobs", body)
  const createdSeconds = (performance.now() - began) / 1000
  let peak = 0
  const watch = setInterval(() => {
    peak = Math.max(peak, megabytes(pid))
  }, 100)
  const job = await untilEnded(management, created)
  clearInterval(watch)
  return { job, peak, createdSeconds, seconds: (performance.now() - began) / 1000 }
}

/** Fills the database of a running service: the licenses of the jobs, and others. */
const makeLicenses = Effect.fnUntraced(function* (session: Session, management: Management) {
  yield* say(`making ${licenses} and ${others} licenses`)
  const [policy, otherPolicy] = yield* Effect.promise(() =>
    Promise.all([makePolicy(management, "many"), makePolicy(management, "others")])
  )
  for (const [of, number] of [
    [otherPolicy, others],
    [policy, licenses]
  ] as const)
    yield* insertMany(session, of, { count: number, status: "active", expires: "+ interval '300 days'" })
  return { policy, seats: yield* Effect.promise(() => makeSeats(management, "bulk", createdSeats)) }
})

/** Does a work while the load runs. */
const besideLoad =
  (management: Management, seats: ReadonlyArray<Seat>) =>
  <A>(work: () => Promise<A>) =>
    Effect.promise(async () => {
      let isOver = false
      const loading = steadily(management, seats, rate, () => isOver)
      const result = await work()
      isOver = true
      return { load: await loading, result }
    })

const addFeature = async ({ call }: Management, policy: { readonly id: string; readonly product_id: string }) => {
  const { id } = await call<{ id: string }>(`/products/${policy.product_id}/features`, { name: "new", code: "new" })
  await call(`/policies/${policy.id}/features/${id}`, { max_consumptions: 5 }, "PUT")
}

const renewedOnce = (productId: string) =>
  `SELECT count(*)::int4 FROM licenses WHERE product_id = '${productId}' AND expires_at = created_at + interval '301 days'`

const licensesAndEvents = (jobId: string) =>
  `SELECT count(DISTINCT resource_id)::int4 + count(*)::int4 FROM events WHERE metadata ->> 'bulk_job_id' = '${jobId}'`

const tell = (text: string, holds: boolean) =>
  Effect.sync(() => {
    process.stdout.write(`${text}\n`)
    if (!holds) process.exitCode = 1
  })

const rowsOf = (job: string, beside: Load, during: Load) =>
  comparisonOf(beside, during, targets.ratioMax).map((row) => ({ job, ...row }))

const program = Effect.gen(function* () {
  const directory = yield* folder
  const postgres = yield* startPostgres(directory)
  const session = yield* openSession(postgres.url)
  const count = (sql: string) => Effect.map(session.values(sql), ([row]) => Number(row?.[0]))
  const service = yield* startOn(postgres.url, directory)
  const management = yield* Effect.promise(() => managementOf(service.base, service.token))
  const { policy, seats } = yield* makeLicenses(session, management)
  const filter = { product_id: policy.product_id }
  const during = besideLoad(management, seats)
  const without = Effect.andThen(
    say("measuring without a job"),
    during(() => pause(seconds * 1000))
  ).pipe(Effect.map(({ load }) => load))
  yield* during(() => pause(5_000))
  const first = yield* without
  const memory = megabytes(service.pid)

  yield* say("suspending")
  const suspended = yield* during(() => run(management, service.pid, { action: "suspend", filter }))
  const second = yield* without
  yield* say("applying the policy")
  yield* Effect.promise(() => addFeature(management, policy))
  const applied = yield* during(() => run(management, service.pid, { action: "apply_policy", filter }))
  const third = yield* without
  yield* say("dry run")
  const dryRun = yield* Effect.promise(() =>
    run(management, service.pid, { action: "revoke", filter: {}, confirm_all: true, dry_run: true })
  )
  const all = yield* count("SELECT count(*)::int4 FROM licenses")
  yield* say(`renewing, with ${kills} deaths`)
  const { renewed, job } = yield* dying(postgres.url, directory, service, management, filter)
  const once = yield* count(renewedOnce(policy.product_id))
  const events = yield* count(licensesAndEvents(job.id))

  const jobs = [
    { name: "suspend", max: targets.jobSecondsMax, ...suspended.result },
    { name: "apply_policy", max: targets.jobSecondsMax, ...applied.result },
    { name: "dry run", max: targets.dryRunSecondsMax, ...dryRun },
    { name: "renew", max: Number.POSITIVE_INFINITY, ...renewed }
  ].map(({ createdSeconds, job, max, name, peak, seconds }) => ({
    job: name,
    matched: job.matched,
    changed: job.changed,
    refused: job.refused,
    created_s: rounded(createdSeconds, 2),
    seconds: rounded(seconds, 1),
    peak_mb: rounded(peak, 0),
    holds: seconds <= max && job.changed === (name === "dry run" ? all : licenses) && peak - memory <= targets.growthMax
  }))
  // A machine changes its speed, so each job is compared with the times before and after it.
  const rows = [
    ...rowsOf("suspend", together(first, second), suspended.load),
    ...rowsOf("apply_policy", together(second, third), applied.load)
  ]
  const failed = [first, suspended.load, second, applied.load, third].reduce((sum, load) => sum + load.failed, 0)
  const checks = [
    { target: "memory before, MB", found: rounded(memory, 0), holds: true },
    { target: "failed requests: 0", found: failed, holds: failed === 0 },
    { target: "each license renewed once", found: once, holds: once === licenses },
    { target: "and each with one event", found: events / 2, holds: events === 2 * licenses }
  ]
  const parts = { jobs, rows, checks }
  const text = flags.json ? JSON.stringify(parts, null, 2) : Object.values(parts).map(table).join("\n\n")
  yield* tell(
    text,
    [...jobs, ...rows, ...checks].every(({ holds }) => holds)
  )
})

/** Renews, while the node dies after half a second to a second of work, and a new one takes its place. */
const dying = Effect.fnUntraced(function* (
  url: Parameters<typeof startOn>[0],
  directory: string,
  first: { readonly base: string; readonly pid: number; readonly token: string },
  management: Management,
  filter: object
) {
  const began = performance.now()
  const body = { action: "renew", filter, parameters: { extend_by_days: 1 } }
  const created = yield* Effect.promise(() => management.call<Job>("/bulk-jobs", body))
  let node = first
  for (let death = 0; death < kills; death++) {
    yield* Effect.promise(() => pause(1_000 + 173 * death))
    yield* Effect.sync(() => process.kill(node.pid, "SIGKILL"))
    node = { ...(yield* startOn(url, directory)), token: first.token }
    const { base } = node
    // The new node continues when the lease of the dead one is over.
    const { changed } = yield* Effect.promise(async () =>
      (await managementOf(base, first.token)).call<Job>(`/bulk-jobs/${created.id}`)
    )
    yield* say(`death ${death + 1} after ${changed} licenses`)
    yield* Effect.promise(() => pause(10_000))
  }
  const job = yield* Effect.promise(async () => untilEnded(await managementOf(node.base, first.token), created))
  const renewed = { job, peak: 0, createdSeconds: 0, seconds: (performance.now() - began) / 1000 }
  return { renewed, job }
})

NodeRuntime.runMain(Effect.scoped(program))
