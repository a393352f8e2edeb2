/** Licenses with an e-mail address of their own. */
import type { SqlClient, Statement } from "effect/sql"

/** The licenses `l` whose own e-mail is this address, in lower case. The index of the search finds them. */
export const hasAddress = (sql: SqlClient.SqlClient, address: Statement.Fragment): Statement.Fragment => sql`
  (search_grams(search_text(l.customer_name, l.customer_email)) @@ search_query(${address})
    AND lower(l.customer_email) = ${address})`
