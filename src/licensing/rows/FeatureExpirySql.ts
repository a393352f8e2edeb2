/** Which assigned features have expired without a record, in SQL: the rule of `FeatureExpiry.expiryDueAt`. */
import type { SqlClient } from "effect/sql"
import { instant } from "../../platform/postgres/driver/Parameters.ts"

/** A condition for assignments `a` that matches two indexes. */
export const expiryIsDue = (sql: SqlClient.SqlClient, now: number) =>
  sql`a.enabled AND NOT a.expiry_recorded AND a.expires_at <= ${instant(now)}`

/** The number of these features of a license `l`. */
export const expiredFeatureCount = (sql: SqlClient.SqlClient, now: number) =>
  sql`(SELECT count(*) FROM license_features a WHERE a.license_id = l.id AND ${expiryIsDue(sql, now)})`
