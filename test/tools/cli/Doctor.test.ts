/** `licensing doctor` and `licensing migrate`. */
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { assert, layer } from "@effect/vitest"
import { Context, Effect, FileSystem, Layer } from "effect"
import { Hex } from "effect/encoding"
import { SqlClient } from "effect/sql"
import { Partitions } from "../../../src/ledger/partitions/Partitions.ts"
import { Settings } from "../../../src/platform/config/Config.ts"
import { Postgres } from "../../../src/platform/postgres/driver/Postgres.ts"
import { Database } from "../../support/database/Database.ts"
import { startServer } from "../../support/http/TestServer.ts"
import { type LineResult, operatorSettings, runLine } from "../../support/processes/CommandLine.ts"
import { poll } from "../../support/rules/Poll.ts"

interface Report {
  readonly status: string
  readonly checks: ReadonlyArray<{
    readonly check: string
    readonly status: string
    readonly message: string
    readonly advice?: string
  }>
}

const reportOf = ({ code, error, out }: LineResult): Report => {
  assert.strictEqual(error, "")
  const report = JSON.parse(out) as Report
  const worst = ["ok", "warn", "fail"].findLast((status) => report.checks.some((check) => check.status === status))
  assert.deepStrictEqual([report.status, code], [worst, ["ok", "warn", "fail"].indexOf(worst ?? "")])
  for (const check of report.checks)
    assert.strictEqual(check.advice === undefined, check.status === "ok", check.message)
  return report
}

/** The status of a check: the worst of its findings. */
const statusOf = ({ checks }: Report, name: string) => {
  const statuses = checks.filter(({ check }) => check === name).map(({ status }) => status)
  return ["fail", "warn", "ok"].find((status) => statuses.includes(status))
}

const subject = Layer.merge(
  NodeFileSystem.layer,
  Layer.unwrap(Effect.map(Database, ({ url }) => Layer.orDie(Postgres.layer({ url, maxConnections: 2 })))).pipe(
    Layer.provideMerge(Database.layerUrlEmpty)
  )
)

const untilPartitioned = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* Context.get(yield* Layer.build(Layer.provide(Partitions.layer, Settings.layerTest())), Partitions).pass
  // The server's own worker may be the one that does it.
  const ended = sql`SELECT FROM sequence_partitions WHERE name = 'event_log_from_1' AND end_sequence IS NOT NULL`
  yield* poll(ended, (rows) => rows.length > 0)
})

/** Of the stored responses, which may be very many, doctor looks at the newest. */
const examineStoredResponses = Effect.fnUntraced(function* <E, R>(doctor: () => Effect.Effect<Report, E, R>) {
  const sql = yield* SqlClient.SqlClient
  yield* sql`
    INSERT INTO idempotent_answers (scope, body_hash, status, body, sealed, expires_at, created_at)
    SELECT sha256(n::text::bytea), '', 200, 'x', n = 0, now() + n * interval '1 minute' + interval '1 hour', now()
    FROM generate_series(0, 1000) AS n`
  assert.strictEqual(statusOf(yield* doctor(), "master key"), "ok")
  yield* sql`UPDATE idempotent_answers SET expires_at = now() + interval '7 days' WHERE sealed`
  assert.strictEqual(statusOf(yield* doctor(), "master key"), "fail")
  yield* sql`DELETE FROM idempotent_answers`
})

/** Mails that wait while mail is off are a finding about mail, and none about the worker. */
const examineUnsentMails = Effect.fnUntraced(function* <E, R>(doctor: () => Effect.Effect<Report, E, R>) {
  const sql = yield* SqlClient.SqlClient
  yield* sql`
    INSERT INTO mails (id, kind, recipient_hash, content_sealed, due_at, expires_at, created_at)
    SELECT 'mail_' || n, 'license_key', '\\x00'::bytea, '\\x00'::bytea, now() - interval '1 hour', now() + interval '23 hours', now()
    FROM generate_series(1, 2) AS n`
  const unsent = (yield* doctor()).checks.filter(({ check, status }) => check === "workers" || status === "warn")
  assert.include(
    unsent.map(({ check, message }) => `${check}: ${message}`),
    "mail: Mail is off, and 2 mails wait"
  )
  assert.include(unsent.find(({ check }) => check === "workers")?.message, "No work is late")
  yield* sql`DELETE FROM mails`
})

/** Damages the schema as by hand, and as an index whose build was cut off does. Returns what is missing. */
const damage = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`ALTER TABLE webhook_deliveries RENAME TO dropped_by_hand`
  yield* sql`ALTER TABLE customers RENAME COLUMN email TO mail`
  yield* sql`UPDATE pg_index SET indisvalid = FALSE WHERE indexrelid = 'products_page'::regclass`
  return ["index products_page", "column customers.email", "table webhook_deliveries"]
})

layer(subject, { excludeTestServices: true, timeout: 60_000 })("an installation", (it) => {
  it.effect("is migrated and examined before the service runs, while it runs, and when something is wrong", () =>
    Effect.gen(function* () {
      const settings = { ...(yield* operatorSettings), LICENSING_PORT: "0" }
      const doctor = (more: Record<string, string> = {}) =>
        Effect.map(runLine({ ...settings, ...more }, "doctor", "--json"), reportOf)
      const migrate = (...args: ReadonlyArray<string>) => runLine(settings, "migrate", ...args)

      const empty = yield* doctor()
      assert.deepStrictEqual([statusOf(empty, "database"), statusOf(empty, "migrations")], ["ok", "warn"])
      const pending = yield* migrate("--check")
      assert.deepStrictEqual([pending.code, pending.error], [1, ""])
      assert.match(pending.out, /^pending 0001_initial\.sql\n/)
      assert.deepStrictEqual(JSON.parse((yield* migrate("--json")).out).applied.slice(0, 1), ["0001_initial.sql"])
      assert.strictEqual((yield* migrate("--check")).code, 0)
      assert.strictEqual((yield* migrate()).out, "The database has all migrations of this version.")

      const { port } = yield* startServer()
      const serving = { LICENSING_PORT: String(port) }
      const healthy = yield* doctor(serving)
      for (const name of ["settings", "rights", "clock", "migrations", "master key", "signing keys", "workers", "port"])
        assert.strictEqual(statusOf(healthy, name), "ok", name)
      assert.include(healthy.checks.find(({ check }) => check === "port")?.message, "is ready at")
      // The test's server does without what keeps changes through a power cut.
      assert.strictEqual(statusOf(healthy, "durability"), "fail")

      assert.strictEqual(statusOf(healthy, "retention"), undefined)
      const sql = yield* SqlClient.SqlClient
      yield* untilPartitioned
      const retained = yield* doctor({ LICENSING_EVENT_RETENTION_DAYS: "30" })
      const [retention, ...more] = retained.checks.filter(({ check }) => check === "retention")
      assert.deepStrictEqual([retention?.status, more], ["warn", []])
      assert.match(
        retention?.message ?? "",
        /^Events are kept for 30 days\. Those to today leave with event_log_from_1, which ends after 67,108,\d{3} more events/
      )

      const other = yield* doctor({ LICENSING_MASTER_KEY: Buffer.alloc(32, 8).toString("base64") })
      assert.strictEqual(statusOf(other, "master key"), "fail")
      const proxied = yield* doctor({ LICENSING_BASE_URL: "https://licenses.example.com", LICENSING_PROT: "1" })
      assert.deepStrictEqual([statusOf(proxied, "client address"), statusOf(proxied, "settings")], ["warn", "warn"])
      const ahead = yield* doctor({ LICENSING_CLOCK_OFFSET_SECONDS: "3600" })
      assert.deepStrictEqual([statusOf(ahead, "clock"), statusOf(ahead, "settings")], ["ok", "warn"])

      yield* examineStoredResponses(doctor)
      yield* examineUnsentMails(doctor)

      const missing = yield* damage
      const damaged = yield* doctor()
      const [{ message = "", status } = {}] = damaged.checks.filter(({ check }) => check === "migrations")
      assert.deepStrictEqual([status, message.split(" lacks ")[1]], ["fail", missing.join(", ")])
      const checked = yield* migrate("--check")
      assert.deepStrictEqual([checked.code, checked.out], [1, missing.map((name) => `missing ${name}`).join("\n")])

      yield* sql`INSERT INTO schema_migrations VALUES (9999, '9999_later.sql', 'x', now())`
      assert.strictEqual(statusOf(yield* doctor(), "migrations"), "fail")
      assert.strictEqual((yield* migrate("--check")).code, 2)
      assert.strictEqual((yield* migrate()).code, 1)
      const printed = JSON.stringify([empty, healthy, other, proxied])
      assert.notInclude(printed, settings.LICENSING_MASTER_KEY)
      assert.notInclude(printed, new URL(settings.LICENSING_DATABASE_URL).password)
    }).pipe(Effect.scoped)
  )

  it.effect("is examined by an ordinary role, which must own the tables", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const settings = { ...(yield* operatorSettings), LICENSING_PORT: "0" }
      const address = new URL(settings.LICENSING_DATABASE_URL)
      const role = `licensing_test_${Hex.random(12)}`
      yield* Effect.acquireRelease(sql.unsafe(`CREATE ROLE ${role} LOGIN PASSWORD 'chosen' CONNECTION LIMIT 26`), () =>
        Effect.orDie(sql.unsafe(`DROP ROLE ${role}`))
      )
      address.username = role
      address.password = "chosen"
      const asRole = { ...settings, LICENSING_DATABASE_URL: address.href }
      const report = reportOf(yield* runLine(asRole, "doctor", "--json"))
      assert.strictEqual(statusOf(report, "rights"), "fail")
      const unchecked = report.checks.filter(({ message }) => message.startsWith("It could not be checked"))
      assert.deepStrictEqual(unchecked, [])
      for (const name of ["database", "connection", "clock"]) assert.strictEqual(statusOf(report, name), "ok", name)
      assert.strictEqual(statusOf(report, "connections"), "warn")
      const place = { LICENSING_CLUSTER_LISTEN: "127.0.0.1:8081", LICENSING_CLUSTER_ADDRESS: "127.0.0.1:8081" }
      const inCluster = { ...asRole, ...place, LICENSING_CLUSTER: "true" }
      const clustered = reportOf(yield* runLine(inCluster, "doctor", "--json"))
      assert.strictEqual(statusOf(clustered, "connections"), "fail")
    }).pipe(Effect.scoped)
  )

  it.effect("without a database or with wrong settings is a finding, and nothing is created", () =>
    Effect.gen(function* () {
      const files = yield* FileSystem.FileSystem
      const folder = yield* files.makeTempDirectoryScoped()
      const data = `${folder}/data`
      const missing = reportOf(yield* runLine({ LICENSING_DATA_DIR: data, LICENSING_PORT: "0" }, "doctor", "--json"))
      assert.deepStrictEqual([statusOf(missing, "database"), statusOf(missing, "data folder")], ["warn", "warn"])
      const check = yield* runLine({ LICENSING_DATA_DIR: data }, "migrate", "--check")
      assert.deepStrictEqual([check.code, check.out], [1, "There is no database yet: `serve` creates it."])
      const listed = yield* runLine({ LICENSING_DATA_DIR: data }, "tokens", "list")
      assert.deepStrictEqual([listed.code, listed.out], [1, ""])
      assert.isFalse(yield* files.exists(data))

      yield* files.writeFileString(`${folder}/file`, "")
      const below = {
        LICENSING_DATA_DIR: `${folder}/file/a/b`,
        LICENSING_REPORTS_FONT: `${folder}/none.ttf`,
        LICENSING_MAIL_TEMPLATES: `${folder}/none`,
        LICENSING_PORTAL_LOGO: `${folder}/none.svg`
      }
      const unusable = reportOf(yield* runLine({ ...below, LICENSING_PORT: "0" }, "doctor", "--json"))
      assert.deepStrictEqual([statusOf(unusable, "data folder"), statusOf(unusable, "settings")], ["fail", "fail"])
      const problems = unusable.checks.map(({ message }) => message)
      for (const start of ["LICENSING_MAIL_TEMPLATES: ", "LICENSING_PORTAL_LOGO must "])
        assert.isTrue(problems.some((problem) => problem.startsWith(start)))
      assert.include(unusable.checks.find(({ check }) => check === "data folder")?.message, `${folder}/file is not a`)

      const wrong = reportOf(yield* runLine({ LICENSING_PORT: "x", LICENSING_PROT: "1" }, "doctor", "--json"))
      assert.lengthOf(wrong.checks, 2)
      const unreachable = yield* runLine(
        {
          LICENSING_DATABASE_URL: "postgres://licensing:chosen@127.0.0.1:1/licensing",
          LICENSING_MASTER_KEY: Buffer.alloc(32, 7).toString("base64"),
          LICENSING_PORT: "0"
        },
        "doctor"
      )
      assert.strictEqual(unreachable.code, 2)
      assert.match(unreachable.out, /^fail {2}database .*ECONNREFUSED/m)
      assert.notInclude(unreachable.out, "chosen")
    }).pipe(Effect.scoped)
  )
})
