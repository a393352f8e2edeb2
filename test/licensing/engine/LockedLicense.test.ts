/** A license that is decided under its lock, while another transaction holds it. */
import { assert, layer } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { SqlClient } from "effect/sql"
import { UnlockedAttempts } from "../../../src/licensing/engine/CommandBatch.ts"
import { activate } from "../../../src/licensing/rules/Activation.ts"
import { openSession } from "../../../src/platform/postgres/driver/Postgres.ts"
import { Database, untilBlocked } from "../../support/database/Database.ts"
import { makeNode } from "../../support/database/LicenseNodes.ts"
import { makeLicense, requestOf } from "../../support/database/StoredLicenses.ts"

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
  }
)
