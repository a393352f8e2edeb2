/** Checks migrations, and finds late work of the background workers. */
import { Clock, Effect, type Redacted } from "effect"
import { SqlError } from "effect/sql"
import { dayRowsMax } from "../../insight/reports/usage/UsageRollup.ts"
import { Settings } from "../../platform/config/Config.ts"
import { inspect } from "../../platform/postgres/migrations/Migrations.ts"
import { type Finding, findingsOf, messageOf } from "./Check.ts"
import type { Database } from "./Database.ts"

const shownMax = 5

export const checkMigrations = Effect.fnUntraced(function* (url: Redacted.Redacted<string>) {
  const { fail, ok, warn } = findingsOf("migrations")
  const inspected = yield* Effect.result(inspect({ url }))
  if (inspected._tag === "Failure") {
    return fail(messageOf(inspected.failure), "Start the version of the service that made this schema.")
  }
  const { missing, pending } = inspected.success
  if (missing.length > 0) {
    return fail(
      `All of this version are applied, but the database lacks ${missing.slice(0, shownMax).join(", ")}${missing.length > shownMax ? ` and ${missing.length - shownMax} more` : ""}`,
      "Restore a backup, or create them again as schema/schema.sql has them."
    )
  }
  if (pending.length === 0) return ok("All of this version are applied, and the schema is whole")
  return warn(
    `${pending.length} are pending, the first is ${pending[0]}`,
    "Run `migrate`, or start a node of this version: it applies them."
  )
})

interface Lag {
  readonly [queue: string]: number | null
}

const lagQuery = `
  SELECT
    (SELECT count(*) FROM pg_stat_activity WHERE application_name = 'licensing' AND datname = current_database()
      AND pid <> pg_backend_pid()) AS connections,
    extract(epoch FROM now - (SELECT min(oldest.due_at) FROM webhook_endpoints e CROSS JOIN LATERAL (
      SELECT due_at FROM webhook_deliveries d WHERE d.endpoint_id = e.id AND d.status = 'pending'
      ORDER BY due_at, sequence LIMIT 1) AS oldest WHERE e.is_active)) AS deliveries,
    extract(epoch FROM now - (SELECT min(expires_at) FROM leases WHERE status = 'live')) AS leases,
    extract(epoch FROM (now AT TIME ZONE 'UTC') - (SELECT min(oldest.expiry) FROM policies p CROSS JOIN LATERAL (
      SELECT s.expires_at AT TIME ZONE 'UTC' AS expiry FROM license_states s
      WHERE s.policy_id || ' ' || s.status = p.id || ' active' AND s.expires_at IS NOT NULL
      ORDER BY s.expires_at AT TIME ZONE 'UTC' LIMIT 1) AS oldest)) AS expiries,
    extract(epoch FROM now - (SELECT min(greatest(day + interval '24 hours', seen_at)) FROM usage_rollup_days
      WHERE rolled_rows <> ledger_rows AND ledger_rows <= ${dayRowsMax})) AS rollup,
    extract(epoch FROM now - (SELECT min(due_at) FROM mails)) AS mails,
    (SELECT count(*) FROM mails WHERE expires_at > now) AS unsent,
    extract(epoch FROM now - (SELECT min(created_at) FROM report_exports WHERE status IN ('pending', 'processing'))) AS exports,
    extract(epoch FROM now - (SELECT min(updated_at) FROM bulk_jobs WHERE status IN ('pending', 'running'))) AS jobs,
    (SELECT last FROM event_sequence) - (SELECT coalesce(max(last_sequence), 0) FROM event_spans) AS events
  FROM (SELECT to_timestamp($1::float8 / 1000) AS now) AS clock`

/** A worker indexes the times of some thousand events every ten seconds. */
const eventsMax = 1_000_000
const secondsMax = { deliveries: 300, mails: 300, exports: 3_600, jobs: 3_600, rollup: 86_400 }
const sweepsMissed = 10

const queues: ReadonlyArray<{ readonly name: keyof typeof secondsMax | "leases" | "expiries"; readonly what: string }> =
  [
    { name: "deliveries", what: "The oldest due webhook delivery has waited" },
    { name: "mails", what: "The oldest due mail has waited" },
    { name: "expiries", what: "A license that expired is not recorded as such since" },
    { name: "leases", what: "A lease that expired is not recorded as such since" },
    { name: "rollup", what: "A past day of the usage ledger is not summed up since" },
    { name: "exports", what: "The oldest export of a report has waited" },
    { name: "jobs", what: "A change of many licenses has not continued since" }
  ]

export const checkWork = Effect.fnUntraced(
  function* ({ row }: Database) {
    const { ok, warn } = findingsOf("workers")
    const { smtpUrl, sweepSeconds } = yield* Settings
    const lag = yield* row<Lag>(lagQuery, [yield* Clock.currentTimeMillis])
    const isServed = Number(lag["connections"]) > 0
    const limits = { ...secondsMax, leases: sweepSeconds * sweepsMissed, expiries: sweepSeconds * sweepsMissed }
    const late: Array<Finding> = queues.flatMap(({ name, what }) => {
      const seconds = Number(lag[name] ?? 0)
      // No worker sends mails while mail is off.
      if (name === "mails" && smtpUrl === undefined) return []
      return seconds > limits[name] ? warn(`${what} ${durationOf(seconds)}`, adviceOf(isServed)) : []
    })
    if (Number(lag["events"]) > eventsMax) {
      late.push(...warn(`${lag["events"]} events are not in the index of times`, adviceOf(isServed)))
    }
    const unsent = smtpUrl === undefined ? unsentMails(Number(lag["unsent"])) : []
    if (late.length > 0) return [...late, ...unsent]
    return [
      ...ok(isServed ? "No work is late" : "No work is late, and no node is connected to the database"),
      ...unsent
    ]
  },
  Effect.catchIf(
    (error): error is SqlError.SqlError => SqlError.isSqlError(error) && error.reason._tag === "SqlSyntaxError",
    () => Effect.succeed(findingsOf("workers").ok("Not asked: the schema is not that of this version"))
  )
)

const unsentMails = (count: number): ReadonlyArray<Finding> =>
  count === 0
    ? []
    : findingsOf("mail").warn(
        `Mail is off, and ${count === 1 ? "1 mail waits" : `${count} mails wait`}`,
        "Set LICENSING_SMTP_URL again: a mail that is not sent within 24 hours is dropped."
      )

const adviceOf = (isServed: boolean) =>
  isServed
    ? "Look for the worker in the log and in GET /api/v1/ops/summary (docs/OPERATIONS.md, Alerts)."
    : "Start a node: none is connected to the database."

const durationOf = (seconds: number) =>
  seconds < 7_200 ? `${Math.round(seconds / 60)} minutes` : `${Math.round(seconds / 3_600)} hours`

/** The newest devices by id. */
const devicesSampled = 200
const devicesMin = 20

/** If all callers have one address, it is probably a balancer's. */
export const checkRecordedAddresses = Effect.fnUntraced(function* ({ row }: Database) {
  const { warn } = findingsOf("client address")
  const seen = yield* row<{ devices: number; addresses: number }>(`
    SELECT count(*) AS devices, count(DISTINCT ip_address) AS addresses FROM (
      SELECT ip_address FROM devices WHERE ip_address IS NOT NULL ORDER BY id DESC LIMIT ${devicesSampled}) AS recent`)
  if (seen.devices >= devicesMin && seen.addresses === 1) {
    return warn(
      `The newest ${seen.devices} devices all have one address`,
      "If that is a balancer's, put it into LICENSING_TRUSTED_PROXIES, and have it send X-Forwarded-For."
    )
  }
  return []
})
