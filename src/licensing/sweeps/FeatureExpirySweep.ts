/**
 * Records the expiry of features of unused licenses: the changes of `Lifecycle.settle`, for many licenses at once.
 * Features of a revoked license leave the index of due expiries without an event.
 */
import { Context, Effect, identity, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { columns, instant, int8 } from "../../platform/postgres/driver/Parameters.ts"
import { makeRevisions } from "../../platform/postgres/queries/Revision.ts"
import { concurrentChange } from "../../platform/postgres/queries/Sql.ts"
import type { Assignment, LicenseRecord } from "../model/LicenseRecords.ts"
import { expiryIsDue } from "../rows/FeatureExpirySql.ts"
import type { LicenseOwned } from "../rows/LicenseRows.ts"
import { featureExpiredEvent } from "../rules/ClockEvents.ts"
import { recordsExpiries } from "../rules/Lifecycle.ts"
import { byId, type DueFeatures, featuresMax, makePasses, selectFeatures, writeUnchanged } from "./SweepBatches.ts"

type DueFeature = Pick<Assignment, "feature_id" | "feature_code" | "expires_at">
type DueRow = DueFeature & LicenseOwned & Pick<LicenseRecord, "status" | "revision">
type DueLicense = DueFeatures<DueFeature>

export class FeatureExpirySweep extends Context.Service<FeatureExpirySweep, { readonly pass: Effect.Effect<void> }>()(
  "licensing/licensing/sweeps/FeatureExpirySweep"
) {
  static readonly layer = Layer.effect(
    FeatureExpirySweep,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const passOf = yield* makePasses("feature-expiry-sweep")
      const nextRevision = yield* makeRevisions
      const pass = passOf<DueLicense>({
        select: selectFeatures<DueRow, DueFeature>(sql, selectLicenses(sql), readFeatures(sql), identity),
        isDue: ({ features }) => features.length > 0,
        write: (rows, now) => writeExpiries(sql, rows, nextRevision(), now),
        eventsOf: (license) =>
          recordsExpiries(license) ? license.features.map((feature) => featureExpiredEvent(license.id, feature)) : []
      })
      return FeatureExpirySweep.of({ pass: Effect.orDie(Effect.withSpan(pass, "FeatureExpirySweep.pass")) })
    })
  )
}

const selectLicenses = (sql: SqlClient.SqlClient) => (now: number, limit: number) =>
  sql<{ readonly id: string }>`
  SELECT license_id AS id FROM license_features
  WHERE enabled AND NOT expiry_recorded AND expires_at IS NOT NULL
    AND expires_at AT TIME ZONE 'UTC' <= (${instant(now)} AT TIME ZONE 'UTC')
  ORDER BY expires_at AT TIME ZONE 'UTC' LIMIT ${limit}`

const readFeatures = (sql: SqlClient.SqlClient) => (ids: ReadonlyArray<string>, now: number) =>
  sql<DueRow>`
  SELECT l.id AS license_id, l.status, l.revision, due.feature_id, f.code AS feature_code, due.expires_at
  FROM licenses l CROSS JOIN LATERAL (
    SELECT a.feature_id, a.expires_at FROM license_features a WHERE a.license_id = l.id AND ${expiryIsDue(sql, now)}
    ORDER BY a.expires_at LIMIT ${featuresMax}
  ) AS due JOIN features f ON f.id = due.feature_id
  WHERE l.id = ANY(${columns.text(ids)}) ORDER BY l.id, due.expires_at, f.code`

/** Writes the licenses with their features. */
const writeExpiries = (
  sql: SqlClient.SqlClient,
  unordered: ReadonlyArray<DueLicense>,
  revision: number,
  now: number
) => {
  const rows = byId(unordered)
  const features = rows.flatMap(({ features, id }) => features.map((feature) => ({ ...feature, license_id: id })))
  return sql`
    WITH written AS (
      ${writeUnchanged(sql, rows, {
        set: sql`entitlement_counter = l.entitlement_counter + decided.expired, revision = ${int8(revision)}`,
        values: sql`, unnest(${columns.int4(rows.map((row) => (recordsExpiries(row) ? row.features.length : 0)))}) AS expired`
      })}
    ), recorded AS (
      UPDATE license_features a SET expiry_recorded = TRUE
      FROM unnest(${columns.text(features.map(({ license_id }) => license_id))},
          ${columns.text(features.map(({ feature_id }) => feature_id))}) AS ended (license_id, feature_id)
        JOIN written ON written.id = ended.license_id CROSS JOIN LATERAL (
          SELECT ctid AS address FROM license_features
          WHERE license_id = ended.license_id AND feature_id = ended.feature_id OFFSET 0
        ) AS target
      WHERE a.ctid = target.address AND ${expiryIsDue(sql, now)}
      RETURNING a.feature_id
    )
    SELECT demand((SELECT count(*) FROM written) = ${rows.length} AND (SELECT count(*) FROM recorded) = ${features.length},
      ${concurrentChange}, 'a license was changed meanwhile')`
}
