/** Removes the mails that wait for a customer. After the licenses are erased, none with its address is queued any more. */
import { Effect } from "effect"
import type { SqlClient } from "effect/sql"
import { recipientHashes } from "../../../ledger/mail/Mail.ts"
import { eraseMails, eraseMailsOfAddresses } from "../../../ledger/mail/MailRows.ts"
import { columns } from "../../../platform/postgres/driver/Parameters.ts"
import type { MasterKey } from "../../../platform/signing/MasterKey.ts"
import { beginOf, type ErasedRecord, placeAt, positionOf, type Step } from "./ErasureStep.ts"

/** Hashing this many addresses takes about ten milliseconds. */
const recordsMax = 1_000

export const makeMailStep = (sql: SqlClient.SqlClient, masterKey: MasterKey["Service"]): Step => {
  /** Sign-in links are mailed to an address in the database's small letters, which for a few characters are others. */
  const hashesOf = Effect.fnUntraced(function* (terms: ReadonlyArray<string>) {
    const rows = yield* sql<{ readonly term: string }>`SELECT lower(unnest(${columns.text(terms)})) AS term`
    const small = [...terms, ...rows.map(({ term }) => term)].map((term) => term.toLowerCase())
    return [...new Set(small)].flatMap((term) => recipientHashes(masterKey, term))
  })

  return Effect.fnUntraced(function* (erasure) {
    const { customer_id, terms } = erasure
    const records = yield* sql<ErasedRecord>`
      SELECT resource_id AS id, terms FROM erasure_records
      WHERE customer_id = ${customer_id} AND resource_id > ${positionOf<string>(erasure) ?? ""}
      ORDER BY resource_id LIMIT ${recordsMax}`
    // Other customers may have an address that only a license had, so mails about their licenses stay.
    yield* eraseMailsOfAddresses(sql, yield* hashesOf(records.flatMap((record) => record.terms)))
    if (records.length === recordsMax) return placeAt("mails", records.at(-1)!.id)
    yield* eraseMails(sql, customer_id, yield* hashesOf(terms))
    return beginOf("orders")
  })
}
