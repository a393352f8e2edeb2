/** Closes the periods of quotas of unused licenses: the changes of `Lifecycle.settle`, for many licenses at once. */
import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { columns, instant, int8 } from "../../platform/postgres/driver/Parameters.ts"
import { makeRevisions } from "../../platform/postgres/queries/Revision.ts"
import { concurrentChange } from "../../platform/postgres/queries/Sql.ts"
import type { Assignment, LicenseRecord } from "../model/LicenseRecords.ts"
import { type AssignmentRow, assignmentColumns, assignmentOf } from "../rows/AssignmentRows.ts"
import { clockOrigin, usageRow } from "../rows/EventRows.ts"
import { recordsExpiries } from "../rules/Lifecycle.ts"
import { type ClosedPeriod, closePeriod, periodClosedEvent, periodEntry } from "../rules/UsagePeriods.ts"
import { byId, type DueFeatures, featuresMax, makePasses, selectFeatures, writeUnchanged } from "./SweepBatches.ts"

type DueRow = AssignmentRow & Pick<LicenseRecord, "status" | "revision">
type DueLicense = DueFeatures<Assignment>

export class PeriodSweep extends Context.Service<PeriodSweep, { readonly pass: Effect.Effect<void> }>()(
  "licensing/licensing/sweeps/PeriodSweep"
) {
  static readonly layer = Layer.effect(
    PeriodSweep,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const passOf = yield* makePasses("period-sweep")
      const nextRevision = yield* makeRevisions
      const pass = passOf<DueLicense>({
        select: selectFeatures(sql, selectLicenses(sql), readFeatures(sql), assignmentOf),
        isDue: (license, now) => closedOf(license, now).length > 0,
        write: (rows, now) => writePeriods(sql, rows, nextRevision(), now),
        ledgerOf: (license, now) =>
          renewedOf(license, now).map((period) => usageRow(periodEntry(period), license.id, clockOrigin, now)),
        eventsOf: (license, now) => renewedOf(license, now).map((period) => periodClosedEvent(license.id, period))
      })
      return PeriodSweep.of({ pass: Effect.orDie(Effect.withSpan(pass, "PeriodSweep.pass")) })
    })
  )
}

/** Decided when it is written, so that the event names every period that has ended by then. */
const closedOf = (license: DueLicense, now: number): ReadonlyArray<ClosedPeriod> =>
  license.features.flatMap((assignment) => closePeriod(assignment, !recordsExpiries(license), now) ?? [])

const renewedOf = (license: DueLicense, now: number) =>
  closedOf(license, now).filter(({ periods }) => periods !== undefined)

const selectLicenses = (sql: SqlClient.SqlClient) => (now: number, limit: number) =>
  sql<{ readonly id: string }>`
  SELECT license_id AS id FROM license_features WHERE resets_at <= ${instant(now)} ORDER BY resets_at LIMIT ${limit}`

const readFeatures = (sql: SqlClient.SqlClient) => (ids: ReadonlyArray<string>, now: number) =>
  sql<DueRow>`
  SELECT l.status, l.revision, ${sql.literal(assignmentColumns)}
  FROM licenses l CROSS JOIN LATERAL (
    SELECT * FROM license_features WHERE license_id = l.id AND resets_at <= ${instant(now)}
    ORDER BY resets_at LIMIT ${featuresMax}
  ) AS a JOIN features f ON f.id = a.feature_id
  WHERE l.id = ANY(${columns.text(ids)}) ORDER BY l.id, a.resets_at, f.code`

/** Writes the licenses with their features. */
const writePeriods = (sql: SqlClient.SqlClient, due: ReadonlyArray<DueLicense>, revision: number, now: number) => {
  const rows = byId(due)
  const closed = rows.flatMap((license) =>
    closedOf(license, now).map(({ after }) => ({ ...after, license_id: license.id }))
  )
  return sql`
    WITH written AS (
      ${writeUnchanged(sql, rows, { set: sql`revision = ${int8(revision)}` })}
    ), recorded AS (
      UPDATE license_features a SET total_consumptions = closed.total_consumptions, credits_used = closed.credits_used,
        overage = closed.overage, rolled_over = closed.rolled_over, period_start = closed.period_start, resets_at = closed.resets_at
      FROM unnest(${columns.text(closed.map((row) => row.license_id))}, ${columns.text(closed.map((row) => row.feature_id))},
          ${columns.int8(closed.map((row) => row.total_consumptions))}, ${columns.int8(closed.map((row) => row.credits_used ?? null))},
          ${columns.int8(closed.map((row) => row.overage ?? null))}, ${columns.int8(closed.map((row) => row.rolled_over ?? null))},
          ${columns.timestamptz(closed.map((row) => row.period_start ?? null))},
          ${columns.timestamptz(closed.map((row) => row.resets_at ?? null))}
        ) AS closed (license_id, feature_id, total_consumptions, credits_used, overage, rolled_over, period_start, resets_at)
        JOIN written ON written.id = closed.license_id CROSS JOIN LATERAL (
          SELECT ctid AS address FROM license_features
          WHERE license_id = closed.license_id AND feature_id = closed.feature_id OFFSET 0
        ) AS target
      WHERE a.ctid = target.address
      RETURNING a.feature_id
    )
    SELECT demand((SELECT count(*) FROM written) = ${rows.length} AND (SELECT count(*) FROM recorded) = ${closed.length},
      ${concurrentChange}, 'a license was changed meanwhile')`
}
