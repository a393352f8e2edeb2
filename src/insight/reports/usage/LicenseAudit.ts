/** The audit of one license: its record, its features, the balances of its counters, its validations and its events. */
import { Effect } from "effect"
import type { SqlClient } from "effect/sql"
import { Event } from "../../../ledger/events/Event.ts"
import { eventColumns } from "../../../ledger/events/Events.ts"
import { eventsRemovedAt } from "../../../ledger/partitions/Removed.ts"
import { presentAt } from "../../../licensing/changes/Assignments.ts"
import { presentLicense } from "../../../licensing/management/PresentLicense.ts"
import { type AssignmentRow, assignmentColumns, assignmentOf } from "../../../licensing/rows/AssignmentRows.ts"
import { lapsedCount } from "../../../licensing/rows/DeviceStatusSql.ts"
import { expiredFeatureCount } from "../../../licensing/rows/FeatureExpirySql.ts"
import { type LicenseAndPolicyRow, policyColumns, policyOf } from "../../../licensing/rows/LicenseRows.ts"
import { licenseColumns, licenseOf } from "../../../licensing/rows/LicenseTable.ts"
import { accessEndsAt } from "../../../licensing/rules/Lifecycle.ts"
import { decodeRows, within } from "../../../platform/postgres/queries/Sql.ts"
import type { LicenseAuditFilter } from "../model/Filter.ts"
import type { LicenseAudit } from "../model/Report.ts"
import { ledgerPeriodOf, notReceived, removedUntil } from "../model/RequestChecks.ts"
import { balanceOf, balanceRows } from "./LedgerRows.ts"
import { licenseValidations } from "./ValidationCounts.ts"

const decodeEvents = decodeRows(Event)

interface Request extends LicenseAuditFilter {
  readonly limit: number
  readonly cursor?: number
}

export const licenseAudit = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, request: Request, now: number) {
  const { license_id, limit } = request
  const period = yield* ledgerPeriodOf(sql, request, now)
  const [row] = yield* sql<LicenseAndPolicyRow & { readonly lapsed: number; readonly expired_features: number }>`
    SELECT ${sql.literal(licenseColumns)}, ${sql.literal(policyColumns)},
      ${lapsedCount(sql, now)} AS lapsed, ${expiredFeatureCount(sql, now)} AS expired_features
    FROM licenses l JOIN policies p ON p.id = l.policy_id WHERE l.id = ${license_id}`
  if (row === undefined) return yield* notReceived
  const features = yield* sql<AssignmentRow>`
    SELECT ${sql.literal(assignmentColumns)}
    FROM license_features a JOIN features f ON f.id = a.feature_id WHERE a.license_id = ${license_id} ORDER BY f.code`
  const license = licenseOf(row)
  const policy = policyOf(row)
  const active_device_count = license.active_device_count - row.lapsed
  const balances = yield* balanceRows(sql, request, Number.MAX_SAFE_INTEGER - 1)
  const events = yield* eventRows(sql, request)
  const events_removed_until = yield* removedUntil(sql, eventsRemovedAt, request)
  const pageEvents = events.slice(0, limit)
  const audit: LicenseAudit = {
    period: { ...period, ...(events_removed_until !== undefined && { events_removed_until }) },
    license: presentLicense({ ...license, active_device_count }, policy, row.expired_features, now),
    features: features.map((assignment) =>
      presentAt(license_id, assignmentOf(assignment), accessEndsAt(license, policy), license.status, now)
    ),
    usage: yield* Effect.forEach(balances, balanceOf),
    validations: yield* licenseValidations(sql, request),
    events: pageEvents,
    next_cursor: events.length > limit ? (pageEvents.at(-1)?.sequence ?? null) : null
  }
  return audit
})

const eventRows = (sql: SqlClient.SqlClient, { license_id, cursor, limit, ...period }: Request) =>
  decodeEvents(sql`
  SELECT ${sql.literal(eventColumns)} FROM events
  WHERE resource_id = ${license_id} AND ${cursor === undefined ? sql`TRUE` : sql`sequence < ${cursor}`}
    AND ${within(sql, "created_at", period)}
  ORDER BY sequence DESC LIMIT ${limit + 1}`)
