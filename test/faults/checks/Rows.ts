/** What the database says of a round's licenses, in one snapshot. */
import { Effect } from "effect"
import { openConnection } from "../../../src/platform/postgres/driver/Postgres.ts"
import type { PostgresServer } from "../installation/PostgresServer.ts"

export interface LicenseRow {
  readonly id: string
  readonly status: string
  readonly active_device_count: number
  readonly total_consumptions: number
  readonly max_activations: number | null
  readonly max_floating_users: number | null
  /** The request that created it, if a client did. */
  readonly request: string | null
  /** Of the feature; null if it has none. */
  readonly feature_consumed: number | null
  readonly feature_max: number | null
}

interface DeviceRow {
  readonly license_id: string
  readonly fingerprint: string
  readonly status: string
  readonly holds_slot: boolean
}

interface LeaseRow {
  readonly id: string
  readonly license_id: string
  readonly token_hash: string
  readonly status: string
}

export interface LedgerRow {
  readonly sequence: number
  readonly license_id: string
  readonly action: string
  readonly event_id: string | null
  readonly amount: number
  readonly balance_after: number
  readonly max_after: number | null
  readonly request_id: string
}

export interface EventRow {
  readonly sequence: number
  readonly event_type: string
  /** The license that it is about, also if its resource is a lease. */
  readonly license_id: string
  readonly resource_id: string
  readonly metadata: {
    readonly request_id?: string
    readonly superseded?: string
    readonly changes?: { readonly [field: string]: { readonly new?: unknown } }
  }
}

/** The counters, and how many numbers above the round's first ones have a row. */
export interface Sequences {
  readonly events: number
  readonly ledger: number
}

export interface Rows {
  readonly licenses: ReadonlyArray<LicenseRow>
  readonly devices: ReadonlyArray<DeviceRow>
  readonly leases: ReadonlyArray<LeaseRow>
  readonly ledger: ReadonlyArray<LedgerRow>
  readonly events: ReadonlyArray<EventRow>
  /** The counters at the round's begin, those at the snapshot, and the number and highest of the rows between. */
  readonly from: Sequences
  readonly to: Sequences
  readonly counted: Sequences
  readonly highest: Sequences
}

const rowsOf = "coalesce(jsonb_agg(to_jsonb(r)), '[]')"

const tables = {
  licenses: `SELECT l.id, l.status, l.active_device_count, l.total_consumptions, l.max_activations, l.max_floating_users,
      l.metadata ->> 'request' AS request, f.total_consumptions AS feature_consumed, f.max_consumptions AS feature_max
    FROM licenses l LEFT JOIN license_features f ON f.license_id = l.id WHERE l.id IN (SELECT id FROM mine)`,
  devices: "SELECT license_id, fingerprint, status, holds_slot FROM devices WHERE license_id IN (SELECT id FROM mine)",
  leases:
    "SELECT id, license_id, encode(token_hash, 'hex') AS token_hash, status FROM leases WHERE license_id IN (SELECT id FROM mine)",
  ledger: `SELECT sequence, license_id, action, event_id, amount, balance_after, max_after, request_id
    FROM usage_ledger WHERE license_id IN (SELECT id FROM mine) ORDER BY sequence`,
  events: `SELECT sequence, event_type, coalesce(metadata ->> 'license_id', resource_id) AS license_id, resource_id, metadata
    FROM events WHERE sequence > $2 AND coalesce(metadata ->> 'license_id', resource_id) IN (SELECT id FROM mine) ORDER BY sequence`
}

const snapshot = `WITH mine AS (SELECT id FROM licenses WHERE metadata ->> 'round' = $1)
  SELECT jsonb_build_object(
    ${Object.entries(tables)
      .map(([name, query]) => `'${name}', (SELECT ${rowsOf} FROM (${query}) r)`)
      .join(",\n    ")},
    'to', (SELECT jsonb_build_object('events', last, 'ledger', ledger_last) FROM event_sequence),
    'counted', jsonb_build_object('events', (SELECT count(DISTINCT sequence) FROM events WHERE sequence > $2),
      'ledger', (SELECT count(DISTINCT sequence) FROM usage_ledger WHERE sequence > $3)),
    'highest', jsonb_build_object('events', (SELECT coalesce(max(sequence), 0) FROM events),
      'ledger', (SELECT coalesce(max(sequence), 0) FROM usage_ledger)))::text`

/** The only value of a query's only row, which is JSON. */
export const query = Effect.fnUntraced(
  function* ({ url }: PostgresServer, sql: string, values: ReadonlyArray<unknown>) {
    const connection = yield* openConnection(url)
    const [[text]] = (yield* connection.queryValues(sql, values)) as [[string]]
    return JSON.parse(text) as unknown
  },
  Effect.scoped,
  Effect.orDie
)

/** The counters now. */
export const readSequences = (postgres: PostgresServer): Effect.Effect<Sequences> =>
  Effect.map(
    query(postgres, "SELECT jsonb_build_object('events', last, 'ledger', ledger_last)::text FROM event_sequence", []),
    (found) => found as Sequences
  )

/** The events from a number on. */
export const readDeliverable = (postgres: PostgresServer, first: number) =>
  Effect.map(
    query(
      postgres,
      `SELECT coalesce(jsonb_agg(jsonb_build_object('sequence', sequence, 'type', event_type)), '[]')::text
        FROM events WHERE sequence >= $1`,
      [first]
    ),
    (found) => found as ReadonlyArray<{ readonly sequence: number; readonly type: string }>
  )

export const readRows = (postgres: PostgresServer, round: string, from: Sequences): Effect.Effect<Rows> =>
  Effect.map(query(postgres, snapshot, [round, from.events, from.ledger]), (found) => ({
    ...(found as Omit<Rows, "from">),
    from
  }))
