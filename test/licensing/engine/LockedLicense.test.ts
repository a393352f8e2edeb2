/** A license that is decided under its lock, while another transaction holds it. */
import { assert, layer } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { SqlClient } from "effect/sql"
import { UnlockedAttempts } from "../../../src/licensing/engine/CommandBatch.ts"
import { activate, check } from "../../../src/licensing/rules/Activation.ts"
import { openSession } from "../../../src/platform/postgres/driver/Postgres.ts"
import { Database, untilBlocked } from "../../support/database/Database.ts"
import { makeNode } from "../../support/database/LicenseNodes.ts"
import { makeLicense, requestOf } from "../../support/database/StoredLicenses.ts"
import { poll } from "../../support/rules/Poll.ts"

/** The SQLSTATE of a commit that did not get the event counter in time. */
const logBusy = "LS002"

/** Insertions of devices fail: all, or those of which this is true. A sequence keeps count over rolled back transactions. */
const refusing = (code: string, when = "true") => [
  "CREATE SEQUENCE refused",
  `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
   BEGIN IF ${when} THEN RAISE EXCEPTION 'refused' USING ERRCODE = '${code}'; END IF; RETURN NEW; END $$`,
  "CREATE TRIGGER refuse BEFORE INSERT ON devices FOR EACH ROW EXECUTE FUNCTION refuse()"
]
const isFirst = "nextval('refused') = 1"
const accepting = ["DROP TRIGGER refuse ON devices", "DROP FUNCTION refuse", "DROP SEQUENCE refused"]

layer(Database.layer, { timeout: 60_000, excludeTestServices: true })(
  "a license that is decided under its lock",
  (it) => {
    it.effect("is refused while another transaction holds it, and the connection is kept", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const { ask, journal } = yield* Effect.provideService(makeNode, UnlockedAttempts, 0)
        const license = yield* makeLicense()
        yield* Effect.scoped(
          Effect.gen(function* () {
            const holder = yield* openSession((yield* Database).url)
            assert.isFalse(journal.waitsForLock())
            yield* holder.values("BEGIN")
            yield* holder.values(`SELECT FROM licenses WHERE id = '${license.license}' FOR UPDATE`)
            const asked = yield* Effect.forkChild(ask(license.license, activate, requestOf(license, "m")), {
              startImmediately: true
            })
            const waiting = yield* untilBlocked
            assert.isTrue(journal.waitsForLock())
            const { code } = yield* Effect.flip(Fiber.join(asked))
            assert.strictEqual(code, "NOT_READY")
            const kept = yield* sql`SELECT FROM pg_stat_activity WHERE pid = ${waiting}`
            assert.strictEqual(kept.length, 1)
            yield* holder.values("ROLLBACK")
          })
        )
        const payload = yield* ask(license.license, activate, requestOf(license, "m"))
        assert.strictEqual(payload.status, "active")
      })
    )

    it.effect("is refused while the event log is busy, and used afterwards", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const { ask } = yield* Effect.provideService(makeNode, UnlockedAttempts, 0)
        const license = yield* makeLicense()
        const activation = ask(license.license, activate, requestOf(license, "m"))
        for (const statement of refusing(logBusy)) yield* sql.unsafe(statement)
        const { code, message } = yield* Effect.flip(activation)
        for (const statement of accepting) yield* sql.unsafe(statement)
        assert.strictEqual(code, "NOT_READY")
        assert.include(message, "event log")
        assert.strictEqual((yield* activation).status, "active")
      })
    )

    it.effect("is left as it is by a command that changes nothing", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const { ask } = yield* Effect.provideService(makeNode, UnlockedAttempts, 0)
        const license = yield* makeLicense()
        yield* ask(license.license, activate, requestOf(license, "m"))
        // As another node does: what this one has in memory is outdated.
        yield* sql`UPDATE licenses SET revision = revision + 1 WHERE id = ${license.license}`
        const revision = sql`SELECT revision FROM licenses WHERE id = ${license.license}`
        const before = yield* revision
        assert.strictEqual((yield* ask(license.license, check, requestOf(license, "m"))).status, "active")
        assert.deepStrictEqual(yield* revision, before)
      })
    )
  }
)

layer(Database.layer, { timeout: 60_000, excludeTestServices: true })("a commit of a license that was locked", (it) => {
  for (const [code, outcome] of [
    ["unique_violation", "Success"],
    [logBusy, "Success"],
    ["raise_exception", "Failure"]
  ] as const)
    it.effect(`ends in ${outcome} if the database first answers ${code}, and then the license can be used`, () =>
      Effect.gen(function* () {
        const { ask, journal } = yield* makeNode
        const license = yield* makeLicense()
        const holder = yield* openSession((yield* Database).url)
        for (const statement of refusing(code, isFirst)) yield* holder.values(statement)
        yield* holder.values("BEGIN")
        yield* holder.values(`SELECT FROM licenses WHERE id = '${license.license}' FOR UPDATE`)
        const asked = yield* Effect.forkChild(Effect.exit(ask(license.license, activate, requestOf(license, "m"))))
        yield* poll(Effect.sync(journal.waitsForLock), (waits) => waits)
        yield* holder.values("ROLLBACK")
        assert.strictEqual((yield* Fiber.join(asked))._tag, outcome)
        const payload = yield* ask(license.license, activate, requestOf(license, "m"))
        assert.strictEqual(payload.status, "active")
        for (const statement of accepting) yield* holder.values(statement)
      }).pipe(Effect.scoped)
    )
})
