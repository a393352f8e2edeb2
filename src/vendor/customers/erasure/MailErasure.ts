/** Removes the mails that wait for a customer. After the licenses are erased, none with its address is queued any more. */
import { Effect } from "effect"
import type { SqlClient } from "effect/sql"
import { recipientHashes } from "../../../ledger/mail/Mail.ts"
import { eraseMails } from "../../../ledger/mail/MailRows.ts"
import type { MasterKey } from "../../../platform/signing/MasterKey.ts"
import { beginOf, type Step } from "./ErasureStep.ts"

/** One statement: at most a day's mails wait, and few of a customer. */
export const makeMailStep =
  (sql: SqlClient.SqlClient, masterKey: MasterKey["Service"]): Step =>
  ({ customer_id, terms }) =>
    Effect.as(
      eraseMails(
        sql,
        customer_id,
        terms.flatMap((term) => recipientHashes(masterKey, term))
      ),
      beginOf("orders")
    )
