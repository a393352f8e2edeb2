/** Reminders by mail: one for each notice, to whom the license names, and none twice. */
import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, layer } from "@effect/vitest"
import { Context, Effect, Layer, Redacted } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import { EventLog } from "../../../src/ledger/events/EventLog.ts"
import { Mail } from "../../../src/ledger/mail/Mail.ts"
import { sealedFor } from "../../../src/ledger/mail/MailRows.ts"
import type { MailContent } from "../../../src/ledger/mail/QueuedMail.ts"
import { ExpirySweep } from "../../../src/licensing/sweeps/ExpirySweep.ts"
import { Settings } from "../../../src/platform/config/Config.ts"
import { MasterKey } from "../../../src/platform/signing/MasterKey.ts"
import { fromNoon } from "../../support/database/LicenseNodes.ts"
import { Foundations } from "../../support/database/Services.ts"
import { storeMany, storeOne } from "../../support/database/StoredLicenses.ts"
import { day, noon } from "../../support/rules/Licenses.ts"

const layerSweep = ExpirySweep.layer.pipe(
  Layer.provide([EventLog.layer, Mail.layer]),
  Layer.provide(Settings.layerTest({ smtpUrl: Redacted.make("smtp://localhost") }))
)

const makeSweep = Effect.map(Layer.build(Layer.fresh(layerSweep)), (node) => Context.get(node, ExpirySweep).pass)

/** The contents of the waiting mails about a license. */
const mailsOf = Effect.fnUntraced(function* (licenseId: string) {
  const sql = yield* SqlClient.SqlClient
  const masterKey = yield* MasterKey
  const rows = yield* sql<{ id: string; kind: string; content_sealed: Uint8Array }>`
    SELECT id, kind, content_sealed FROM mails WHERE license_id = ${licenseId} ORDER BY created_at, id`
  return yield* Effect.forEach(rows, ({ content_sealed, id, kind }) =>
    Effect.map(masterKey.open(content_sealed, sealedFor(id)), (bytes) => ({
      kind,
      ...(JSON.parse(Buffer.from(bytes).toString()) as MailContent)
    }))
  )
})

layer(Layer.merge(Foundations, NodeServices.layer), { timeout: 60_000, excludeTestServices: true })(
  "Reminders by mail",
  (it) => {
    it.effect("are queued with their events, each once, from any node, if the policy wants them", () =>
      fromNoon(
        Effect.gen(function* () {
          const sql = yield* SqlClient.SqlClient
          const sweeps = [yield* makeSweep, yield* makeSweep]
          const expiry = noon + 10 * day
          const owned = { expires_at: expiry, customer_email: "ada@example.com", customer_name: "Ada" }
          const license = yield* storeOne({ license: owned })
          const unwanted = yield* storeOne({ license: owned })
          const withoutAddress = yield* storeOne({ license: { expires_at: expiry } })
          yield* sql`
            UPDATE policies SET mail_reminders = TRUE WHERE id IN (
              SELECT policy_id FROM licenses WHERE id IN (${license.license}, ${withoutAddress.license}))`
          for (const elapsed of [3 * day, 0, 6 * day, day]) {
            yield* TestClock.adjust(elapsed)
            yield* Effect.all([...sweeps, ...sweeps], { concurrency: "unbounded" })
          }
          const mail = { kind: "expiry_reminder", to: { address: "ada@example.com", name: "Ada" } }
          assert.deepStrictEqual(yield* mailsOf(license.license), [
            { ...mail, values: { days_before: 7, expires_at: expiry } },
            { ...mail, values: { days_before: 1, expires_at: expiry } }
          ])
          assert.deepStrictEqual(yield* mailsOf(unwanted.license), [])
          assert.deepStrictEqual(yield* mailsOf(withoutAddress.license), [])
        })
      )
    )

    it.effect("of a thousand licenses are queued once, each with its own, while two nodes sweep", () =>
      fromNoon(
        Effect.gen(function* () {
          const sql = yield* SqlClient.SqlClient
          const licenses = yield* storeMany(1_000, {
            license: { expires_at: noon + 10 * day, customer_email: "many@example.com" }
          })
          const ids = sql.in(licenses.map(({ license }) => license))
          yield* sql`UPDATE policies SET mail_reminders = TRUE WHERE id IN (SELECT policy_id FROM licenses WHERE id IN ${ids})`
          const sweeps = [yield* makeSweep, yield* makeSweep]
          yield* TestClock.adjust(3 * day)
          yield* Effect.all([...sweeps, ...sweeps], { concurrency: "unbounded" })
          const [mails] = yield* sql`
            SELECT count(*)::int AS queued, count(DISTINCT license_id)::int AS licenses,
              count(DISTINCT xmin::text)::int > 1 AS "in batches"
            FROM mails WHERE license_id IN ${ids}`
          assert.deepStrictEqual(mails, { queued: 1_000, licenses: 1_000, "in batches": true })
        })
      )
    )
  }
)
