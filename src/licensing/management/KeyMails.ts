/** The mails with the keys of new licenses. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import type { NewMail } from "../../ledger/mail/QueuedMail.ts"
import { columns } from "../../platform/postgres/driver/Parameters.ts"
import { type Nullable, withoutNulls } from "../../platform/postgres/queries/Sql.ts"
import { recipientOf, refuseNoRecipient } from "../changes/MailRecipient.ts"
import type { NewLicenseInput } from "../changes/NewLicense.ts"
import type { LinkRecord } from "../model/LicenseRecords.ts"
import type { Draft, PathOf } from "./Drafts.ts"

type Owner = Pick<LinkRecord, "id" | "name" | "email" | "language">

/** Those that the requests ask for. A license without an address is refused. */
export const makeKeyMails = Effect.map(SqlClient.SqlClient, (sql) =>
  Effect.fnUntraced(function* (inputs: ReadonlyArray<NewLicenseInput>, drafts: ReadonlyArray<Draft>, pathOf: PathOf) {
    const wanted = drafts.flatMap((draft, index) => (inputs[index]?.send_key === true ? [{ ...draft, index }] : []))
    const owners = yield* readOwners(
      sql,
      wanted.flatMap(({ license }) => license.customer_id ?? [])
    )
    const mails: Array<NewMail> = []
    for (const { index, license, license_key } of wanted) {
      const to = recipientOf(license, owners.get(license.customer_id ?? ""))
      if (to === undefined) return yield* refuseNoRecipient(pathOf(index, "send_key"))
      mails.push({ kind: "license_key", to, license_id: license.id, values: { license_key } })
    }
    return mails
  })
)

const readOwners = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, ids: ReadonlyArray<string>) {
  if (ids.length === 0) return new Map<string, Owner>()
  const rows = yield* sql<Nullable<Owner>>`
    SELECT id, name, email, metadata ->> 'language' AS language FROM customers
    WHERE id = ANY(${columns.text([...new Set(ids)])})`
  return new Map(rows.map((row) => [row.id, withoutNulls<Owner>(row)]))
})
