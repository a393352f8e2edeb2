/** Frequent look-ups, for many requests in one statement. Each result has the license's revisions at its read. */
import { Effect } from "effect"
import type { SqlClient } from "effect/sql"
import { columns } from "../../platform/postgres/driver/Parameters.ts"
import type { BindingName, Revisions } from "../model/LicenseRecords.ts"
import type { CountedUsage } from "../model/Usage.ts"
import {
  type CachedDeviceRow,
  cachedDeviceColumns,
  cachedDeviceOf,
  joinDeviceLease,
  licenseDependencies,
  revisionColumns
} from "../rows/LicenseRows.ts"
import type { CachedDevice } from "../state/CommittedState.ts"

export interface DeviceRequest {
  readonly licenseId: string
  readonly binding: BindingName
}

export interface UsageRequest {
  readonly licenseId: string
  readonly eventId: string
}

export interface LeaseRequest {
  readonly licenseId: string
  readonly tokenHash: string
}

export interface VersionedDevices {
  readonly devices: ReadonlyArray<CachedDevice>
  readonly revisions: Revisions
}

export interface VersionedUsage {
  readonly counted: CountedUsage
  readonly revisions: Revisions
}

export const readDevices = (sql: SqlClient.SqlClient) =>
  Effect.fnUntraced(function* (requested: ReadonlyArray<DeviceRequest>) {
    const rows = yield* sql<VersionedDeviceRow>`
      SELECT requested.ordinal, ${sql.literal(revisionColumns)}, ${sql.literal(cachedDeviceColumns)}
      FROM unnest(${columns.text(requested.map(({ licenseId }) => licenseId))}, ${columns.text(requested.map(({ binding }) => binding.kind))},
        ${columns.text(requested.map(({ binding }) => binding.key))}) WITH ORDINALITY AS requested (license_id, kind, key, ordinal)
      JOIN devices d ON d.license_id = requested.license_id AND d.binding_kind = requested.kind AND d.binding_key = requested.key
      JOIN licenses l ON l.id = requested.license_id ${sql.literal(licenseDependencies)} ${sql.literal(joinDeviceLease)}`
    return versionedDevicesByRequest(requested, rows)
  }, Effect.orDie)

export const readLeases = (sql: SqlClient.SqlClient) =>
  Effect.fnUntraced(function* (requested: ReadonlyArray<LeaseRequest>) {
    const rows = yield* sql<VersionedDeviceRow>`
      SELECT requested.ordinal, ${sql.literal(revisionColumns)}, ${sql.literal(cachedDeviceColumns)}
      FROM unnest(${columns.text(requested.map(({ licenseId }) => licenseId))},
        ${columns.bytea(requested.map(({ tokenHash }) => Buffer.from(tokenHash, "hex")))}) WITH ORDINALITY AS requested (license_id, token_hash, ordinal)
      JOIN leases named ON named.token_hash = requested.token_hash AND named.license_id = requested.license_id
      JOIN devices d ON d.id = named.device_id
      JOIN licenses l ON l.id = requested.license_id ${sql.literal(licenseDependencies)}
      CROSS JOIN LATERAL (
        SELECT named.* UNION ALL
        SELECT * FROM leases WHERE device_id = d.id AND status = 'live' AND id <> named.id
      ) AS e`
    return versionedDevicesByRequest(requested, rows)
  }, Effect.orDie)

type VersionedDeviceRow = CachedDeviceRow & Revisions & { readonly ordinal: number }

/** The devices of each request, in the order of the requests. A missing device has no revisions. */
const versionedDevicesByRequest = (
  requested: ReadonlyArray<unknown>,
  rows: ReadonlyArray<VersionedDeviceRow>
): ReadonlyArray<VersionedDevices | undefined> => {
  const rowsByOrdinal = Map.groupBy(rows, ({ ordinal }) => ordinal)
  return requested.map((_, index) => {
    const deviceRows = rowsByOrdinal.get(index + 1)
    if (deviceRows === undefined) return undefined
    const { license, policy, catalog } = deviceRows[0]!
    return { devices: deviceRows.map(cachedDeviceOf), revisions: { license, policy, catalog } }
  })
}

/** An event id stays used when its feature is deleted. Then its feature code is empty, and matches no request. */
export const readCountedUsage = (sql: SqlClient.SqlClient) =>
  Effect.fnUntraced(function* (requested: ReadonlyArray<UsageRequest>) {
    const rows = yield* sql<CountedUsage & Revisions & { readonly ordinal: number }>`
      SELECT requested.ordinal, ${sql.literal(revisionColumns)}, used.amount,
        coalesce((SELECT f.code FROM features f WHERE f.product_id = l.product_id
          AND hashtextextended(f.id, 0) = used.feature_digest LIMIT 1), '') AS feature_code
      FROM unnest(${columns.text(requested.map(({ licenseId }) => licenseId))}, ${columns.text(requested.map(({ eventId }) => eventId))})
        WITH ORDINALITY AS requested (license_id, event_id, ordinal)
      CROSS JOIN LATERAL counted_event(requested.license_id, requested.event_id) AS used
      JOIN licenses l ON l.id = requested.license_id ${sql.literal(licenseDependencies)}`
    const rowsByOrdinal = new Map(
      rows.map(({ ordinal, feature_code, amount, ...revisions }) => [
        ordinal,
        { counted: { feature_code, amount }, revisions }
      ])
    )
    return requested.map((_, index) => rowsByOrdinal.get(index + 1))
  }, Effect.orDie)
