/** The rows of license_states, which a trigger of licenses keeps row by row. A group of many licenses writes them at once. */
import type { SqlClient } from "effect/sql"
import { columns } from "../../platform/postgres/driver/Parameters.ts"
import type { LicenseRecord } from "../model/LicenseRecords.ts"

/** A license before and after a change. */
interface Restated {
  readonly base: { readonly license: LicenseRecord }
  readonly license: LicenseRecord
}

/** With fewer rows the trigger takes no longer. For a hundred it takes 12 ms, one statement takes 4. */
const togetherMin = 10

const isRestated = ({ base, license }: Restated): boolean =>
  license.status !== base.license.status ||
  license.expires_at !== base.license.expires_at ||
  license.policy_id !== base.license.policy_id

/** The changes whose rows one statement writes: those of the group, or none if they are few. */
export const restatedTogether = <A extends Restated>(group: ReadonlyArray<A>): ReadonlyArray<A> => {
  if (group.length < togetherMin) return []
  const restated = group.filter(isRestated)
  return restated.length < togetherMin ? [] : restated
}

/** Turns the trigger off for the rest of the transaction. */
export const withoutStateTrigger = (sql: SqlClient.SqlClient) =>
  sql`SELECT set_config('licensing.states_kept', 'on', true)`

/** Copies the state of licenses that the transaction has written. Each row is looked up, so that no plan scans a table. */
export const restate = (sql: SqlClient.SqlClient, restated: ReadonlyArray<Restated>) => sql`
  UPDATE license_states s SET status = current.status, policy_id = current.policy_id, expires_at = current.expires_at,
    notice = license_notice(current.status, current.expires_at, current.expiring_for, current.expiring_days)
  FROM unnest(${columns.text(restated.map(({ license }) => license.id))},
      ${columns.text(restated.map(({ base }) => base.license.status))}) AS written (id, old_status),
    LATERAL (
      SELECT status, policy_id, expires_at, expiring_for, expiring_days, created_at FROM licenses
      WHERE id = written.id OFFSET 0
    ) AS current,
    LATERAL (
      SELECT ctid AS address FROM license_states
      WHERE status = written.old_status AND created_at = current.created_at AND license_id = written.id OFFSET 0
    ) AS target
  WHERE s.ctid = target.address`
