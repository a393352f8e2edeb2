/** A node that sends mails to a test's server, and its rows. */
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { Mail } from "../../../src/ledger/mail/Mail.ts"
import { MailTemplates } from "../../../src/ledger/mail/MailTemplates.ts"
import { MailWorker } from "../../../src/ledger/mail/MailWorker.ts"
import type { NewMail } from "../../../src/ledger/mail/QueuedMail.ts"
import { Smtp } from "../../../src/ledger/mail/Smtp.ts"
import { Settings } from "../../../src/platform/config/Config.ts"
import { Foundations } from "../../support/database/Services.ts"
import { type MailServer, mailSettingsOf } from "../../support/http/MailServer.ts"

export const layers = Layer.merge(Foundations, NodeServices.layer)

export const key = "LK-AAAAA-BBBBB-CCCCC-DDDDD-EEEEE-FFFFF"

export const linkTo = (address: string, more: Partial<NewMail> = {}): NewMail => ({
  kind: "sign_in_link",
  to: { address },
  values: { link: "https://licenses.example.com/portal#token=abc", minutes: 15 },
  ...more
})

/** A node that sends mails to this server. */
export const makeNode = Effect.fnUntraced(function* (server: MailServer, settings = mailSettingsOf(server)) {
  const node = yield* Layer.build(
    Layer.fresh(
      MailWorker.layer.pipe(
        Layer.provideMerge(Mail.layer),
        Layer.provide([Smtp.layer, MailTemplates.layer]),
        Layer.provide(Settings.layerTest(settings))
      )
    )
  )
  const { pass } = Context.get(node, MailWorker)
  return { pass, queue: Context.get(node, Mail).queue }
})

export const rows = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  return yield* sql<{ id: string; attempts: number; leased_until: number | null }>`
    SELECT id, attempts, leased_until FROM mails ORDER BY created_at, id`
})

export const counts = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<{ sent: number; failed: number; given_up: number; last_failure: string | null }>`
    SELECT sum(sent)::int AS sent, sum(failed)::int AS failed, sum(given_up)::int AS given_up, max(last_failure) AS last_failure
    FROM mail_counts`
  return row!
})
