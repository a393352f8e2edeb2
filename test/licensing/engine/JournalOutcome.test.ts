/** The outcome of a group whose connection is lost is read from the journal's row, on a real database. */
import { assert, layer } from "@effect/vitest"
import { Effect, Result } from "effect"
import { SqlClient, SqlError } from "effect/sql"
import { TestClock } from "effect/testing"
import { resetUsage } from "../../../src/licensing/changes/UsageReset.ts"
import { JournalRetention } from "../../../src/licensing/engine/JournalRetention.ts"
import { activate } from "../../../src/licensing/rules/Activation.ts"
import { consume } from "../../../src/licensing/rules/Consumption.ts"
import { columns } from "../../../src/platform/postgres/driver/Parameters.ts"
import { Postgres } from "../../../src/platform/postgres/driver/Postgres.ts"
import { Database } from "../../support/database/Database.ts"
import { makeNode } from "../../support/database/LicenseNodes.ts"
import { makeLicense, requestOf } from "../../support/database/StoredLicenses.ts"
import { hardware } from "../../support/rules/Licenses.ts"

type Write = (commit: Effect.Effect<void, SqlError.SqlError>) => Effect.Effect<void, SqlError.SqlError>

const lost = new SqlError.SqlError({
  reason: new SqlError.ConnectionError({ cause: new Error("lost"), message: "lost", operation: "execute" })
})

/** A node whose next group is written by the given function; later groups are written normally. */
const makeNodeWriting = Effect.fnUntraced(function* (next: Write) {
  const postgres = yield* Postgres
  let written = 0
  const inOneWrite: Postgres["Service"]["inOneWrite"] = (statements) =>
    Effect.suspend(() => (written++ === 0 ? next(postgres.inOneWrite(statements)) : postgres.inOneWrite(statements)))
  const actors = yield* Effect.provideService(makeNode, Postgres, Postgres.of({ ...postgres, inOneWrite }))
  return { actors, groups: () => written }
})

const activation = (license: { readonly keyHash: string }) => ({
  keyHash: license.keyHash,
  binding: hardware("m"),
  newDeviceId: `dev_${license.keyHash.slice(0, 12)}`
})

const topUp = { feature_code: "export", add_credits: 5 }

const stateOf = Effect.fnUntraced(function* (license: string) {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<{ changed: boolean; max: number; events: number }>`
    SELECT revision <> 1 AS changed, (SELECT max_consumptions FROM license_features WHERE license_id = l.id) AS max,
      (SELECT count(*) FROM events WHERE resource_id = l.id) AS events
    FROM licenses l WHERE id = ${license}`
  return row!
})

layer(Database.layer, { timeout: 60_000 })("a group whose connection is lost", (it) => {
  it.effect("is reported as committed if it was, and applied once", () =>
    Effect.gen(function* () {
      const license = yield* makeLicense({ max_consumptions: 10 })
      const { actors, groups } = yield* makeNodeWriting((commit) => Effect.andThen(commit, Effect.fail(lost)))
      const { max_consumptions } = yield* actors.ask(license.license, resetUsage, topUp)
      assert.strictEqual(max_consumptions, 15)
      assert.deepStrictEqual(yield* stateOf(license.license), { changed: true, max: 15, events: 1 })
      assert.strictEqual(groups(), 1)
    })
  )

  it.effect("fails if it was not committed, and leaves nothing", () =>
    Effect.gen(function* () {
      const license = yield* makeLicense({ max_consumptions: 10 })
      const { actors } = yield* makeNodeWriting(() => Effect.fail(lost))
      const exit = yield* Effect.exit(actors.ask(license.license, resetUsage, topUp))
      assert.strictEqual(exit._tag, "Failure")
      assert.deepStrictEqual(yield* stateOf(license.license), { changed: false, max: 10, events: 0 })
      yield* actors.ask(license.license, resetUsage, topUp)
      assert.deepStrictEqual(yield* stateOf(license.license), { changed: true, max: 15, events: 1 })
    })
  )

  it.effect("has no effect if the server reads it only after it was given up", () =>
    Effect.gen(function* () {
      const license = yield* makeLicense({ max_consumptions: 10 })
      let lateCommit: Effect.Effect<void, SqlError.SqlError> = Effect.void
      const { actors } = yield* makeNodeWriting((commit) => {
        lateCommit = commit
        return Effect.fail(lost)
      })
      assert.strictEqual((yield* Effect.exit(actors.ask(license.license, resetUsage, topUp)))._tag, "Failure")
      assert.isTrue(Result.isFailure(yield* Effect.result(lateCommit)))
      assert.deepStrictEqual(yield* stateOf(license.license), { changed: false, max: 10, events: 0 })
    })
  )

  it.effect("is distinguished from the groups of other nodes, and a deleted journal row is created again", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const license = yield* makeLicense({ max_activations: 0, max_consumptions: 10 })
      const { actors: other } = yield* makeNodeWriting((commit) => commit)
      const { actors } = yield* makeNodeWriting((commit) => Effect.andThen(commit, Effect.fail(lost)))
      yield* other.ask(license.license, activate, activation(license))
      yield* actors.ask(license.license, resetUsage, topUp)
      const before = yield* sql`SELECT id FROM journals`
      assert.isAtLeast(before.length, 2)
      yield* TestClock.adjust("8 days")
      const retention = yield* Effect.provide(JournalRetention, JournalRetention.layer)
      yield* retention.pass
      assert.deepStrictEqual(yield* sql`SELECT id FROM journals`, [])
      yield* actors.ask(license.license, resetUsage, topUp)
      assert.strictEqual((yield* stateOf(license.license)).max, 20)
    })
  )
})

layer(Database.layer, { timeout: 60_000 })("a group in which a consumption is counted already", (it) => {
  // As after a failover that restores the revision, but not what the node has read.
  for (const [count, groupsMade] of [
    // Both, then the one that is not repeated: the answer of the other one writes nothing.
    [1, 2],
    [2, 1]
  ] as const)
    it.effect(`answers repeated ones without counting them again, and commits the others: ${count} of 2 repeated`, () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const other = yield* makeNode
        const quota = { max_consumptions: 10 }
        const licenses = [yield* makeLicense(quota), yield* makeLicense(quota)] as const
        for (const license of licenses) yield* other.ask(license.license, activate, requestOf(license, "m"))
        const consumption = (license: (typeof licenses)[number]) =>
          [
            license.license,
            consume,
            { ...requestOf(license, "m"), feature_code: "export", event_id: "once", amount: 3 }
          ] as const
        const { actors, groups } = yield* makeNodeWriting((commit) =>
          Effect.gen(function* () {
            for (const repeated of licenses.slice(0, count)) {
              const [before] = yield* sql<{ readonly revision: number }>`
                SELECT revision FROM licenses WHERE id = ${repeated.license}`
              yield* Effect.orDie(other.ask(...consumption(repeated)))
              yield* sql`UPDATE licenses SET revision = ${before!.revision} WHERE id = ${repeated.license}`
            }
            yield* commit
          })
        )
        const answers = yield* Effect.forEach(licenses, (license) => actors.ask(...consumption(license)), {
          concurrency: "unbounded"
        })
        assert.deepStrictEqual(
          answers.map(({ features }) => features.map(({ consumed }) => consumed)),
          [[3], [3]]
        )
        const ids = licenses.map(({ license }) => license)
        const counted = yield* sql`
          SELECT license_id, amount FROM usage_ledger WHERE license_id = ANY(${columns.text(ids)})
          ORDER BY array_position(${columns.text(ids)}, license_id)`
        assert.deepStrictEqual(
          counted,
          ids.map((license_id) => ({ license_id, amount: 3 }))
        )
        assert.strictEqual(groups(), groupsMade)
      })
    )
})
