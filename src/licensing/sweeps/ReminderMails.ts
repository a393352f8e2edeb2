/** The mails about the notices before an end, for licenses whose policies want them. */
import { Effect } from "effect"
import type { SqlClient } from "effect/sql"
import type { Metadata } from "../../contract/api/Metadata.ts"
import type { NewMail } from "../../ledger/mail/QueuedMail.ts"
import { columns } from "../../platform/postgres/driver/Parameters.ts"
import { type NullableRow, withoutNulls } from "../../platform/postgres/queries/Sql.ts"
import { recipientOf } from "../changes/MailRecipient.ts"
import { type Reminded, reachedDays } from "./Reminders.ts"

export interface MailedNotice extends Reminded {
  readonly id: string
  /** Whether the license's policy wants mails. */
  readonly mail_reminders: boolean
}

/** What the mail of each end is called, and the value with the end. */
const reminders = {
  expiry_reminder: "expires_at",
  maintenance_reminder: "maintenance_expires_at"
} as const

interface Owned {
  readonly id: string
  readonly customer_email?: string
  readonly customer_name?: string
  readonly metadata: Metadata
  readonly name?: string
  readonly email?: string
  readonly language?: string
}

/** One mail for each license, about its due notice. A license without an address gets none. */
export const reminderMails = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  kind: keyof typeof reminders,
  rows: ReadonlyArray<MailedNotice>,
  now: number
) {
  const wanted = rows.flatMap((row) => {
    const days_before = row.mail_reminders ? reachedDays(row, now) : 0
    return days_before === 0 ? [] : [{ ...row, days_before }]
  })
  if (wanted.length === 0) return []
  const owners = yield* sql<NullableRow<Owned>>`
    SELECT l.id, l.customer_email, l.customer_name, l.metadata, c.name, c.email, c.metadata ->> 'language' AS language
    FROM licenses l LEFT JOIN customers c ON c.id = l.customer_id
    WHERE l.id = ANY(${columns.text(wanted.map(({ id }) => id))})`
  const ownerOf = new Map(owners.map((row) => [row.id, withoutNulls<Owned>(row)]))
  return wanted.flatMap(({ days_before, ends, id }): ReadonlyArray<NewMail> => {
    const owner = ownerOf.get(id)
    const to = owner && recipientOf(owner as never, owner)
    return to === undefined ? [] : [{ kind, to, license_id: id, values: { days_before, [reminders[kind]]: ends } }]
  })
})
