/** Reads the database into the model's types. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { canonicalize } from "../../../src/contract/api/CanonicalJson.ts"
import type { Assignment, Catalog, Device, Lease, License, Policy } from "../model/Model.ts"
import type { PolicyFeature } from "../model/Moves.ts"
import type { Subscription } from "../model/Periods.ts"

export interface StoredEvent {
  readonly sequence: number
  readonly type: string
  readonly resource: string
  /** Undefined if the event does not concern a license. */
  readonly license: string | undefined
  readonly request: string
  readonly at: number
  readonly actor: string
  readonly address: string | null
  readonly metadata: { readonly [member: string]: unknown }
}

export interface StoredUsage {
  readonly sequence: number
  readonly license: string
  readonly feature: string
  readonly action: string
  readonly event_id: string | null
  readonly amount: number
  readonly balance: number
  readonly max: number | null
  readonly credits: number | null
  readonly overage: number | null
  readonly reverses: string | null
  readonly request: string
  /** The row's event: its number, feature code, actor, address and device. */
  readonly event: number | null
  readonly code: string | null
  readonly actor: string
  readonly address: string | null
  readonly device: string | null
}

export interface Stored {
  readonly licenses: ReadonlyMap<string, License>
  readonly catalog: Catalog
  readonly versionIds: ReadonlyArray<string>
  /** Since the last read. */
  readonly events: ReadonlyArray<StoredEvent>
  readonly ledger: ReadonlyArray<StoredUsage>
  /** Counters, and counts of all rows. */
  readonly totals: { readonly [what: string]: number }
  /** Transactions whose changes do not match their revisions. */
  readonly unfenced: ReadonlyArray<string>
  /** Revisions that were given twice. */
  readonly repeated: ReadonlyArray<string>
  /** Stored responses by scope. */
  readonly kept: ReadonlySet<string>
}

const licensesOf = Effect.fnUntraced(function* (sql: SqlClient.SqlClient) {
  type Owned<A> = A & { readonly license: string; readonly key: string }
  const [licenses, devices, leases, assignments, usage] = yield* Effect.all(
    [
      sql<License & { readonly metadata: never; readonly kept: never }>`
        SELECT id, policy_id AS policy, encode(key_hash, 'hex') AS key, status, created_at AS created, starts_at AS starts,
          expires_at AS expires, maintenance_expires_at AS maintenance, term_days AS term, term_began_at AS began,
          subscription_id AS subscription, kept_counts AS kept, max_activations, max_container_instances,
          max_floating_users, max_transfers, offline_grace_days, self_deactivations_per_month, self_deactivated_at AS returned, customer_id, customer_email, customer_name, metadata,
          active_device_count AS active, times_activated AS activations, times_transferred AS transfers,
          total_consumptions AS total, not_due_before AS floor, entitlement_counter AS version,
          activation_limit_recorded_at AS limited
        FROM licenses ORDER BY id`,
      sql<Owned<Device>>`
        SELECT license_id AS license, binding_kind || ':' || binding_key AS key, id, binding_kind AS kind, status,
          holds_slot AS slot, activated_at AS activated, last_validated_at AS validated, due_at AS due,
          offline_expires_at AS offline, slot_held_until AS held FROM devices ORDER BY id`,
      sql<Owned<Lease>>`
        SELECT license_id AS license, encode(token_hash, 'hex') AS key, id, device_id AS device, status, expires_at AS ends,
          borrowed_until AS borrowed
        FROM leases ORDER BY id`,
      sql<Owned<Assignment & { readonly metadata: never }>>`
        SELECT license_id AS license, feature_id AS key, enabled, max_consumptions AS max, total_consumptions AS used,
          expires_at AS expires, expires_after_days AS waiting, expires_with_license IS TRUE AS follows, expiry_recorded AS recorded,
          from_policy AS granted, metadata, ${quotaColumns(sql)}, credits_used AS credited, overage, rolled_over AS rolled,
          extra_credits AS extra, period_anchor AS "from", periods_end_at AS until, period_start AS start, resets_at AS resets
        FROM license_features ORDER BY feature_id`,
      sql<UsageRow>`
        SELECT license_id AS license, event_id AS key, action, feature_id AS feature, amount, reverses FROM usage_ledger
        WHERE action NOT IN ('top_up', 'set_limit') ORDER BY sequence`
    ],
    { concurrency: "unbounded" }
  )
  const owned = <A extends object>(rows: ReadonlyArray<Owned<A>>, id: string): ReadonlyMap<string, A> =>
    new Map(rows.flatMap(({ license, key, ...row }) => (license === id ? [[key, row as unknown as A] as const] : [])))
  return new Map(
    licenses.map((row): [string, License] => [
      row.id,
      {
        ...row,
        metadata: canonicalize(row.metadata),
        kept: canonicalize(row.kept ?? {}),
        devices: owned<Device>(devices, row.id),
        leases: owned<Lease>(leases, row.id),
        assignments: new Map(
          Array.from(owned<Assignment & { readonly metadata: never }>(assignments, row.id), ([key, assignment]) => [
            key,
            { ...assignment, metadata: canonicalize(assignment.metadata) }
          ])
        ),
        ...usageOf(usage.filter(({ license }) => license === row.id))
      }
    ])
  )
})

const quotaColumns = (sql: SqlClient.SqlClient) =>
  sql.literal("reset_period AS period, reset_anchor AS anchor, rollover_max AS rollover, overage_max AS beyond")

interface UsageRow {
  readonly license: string
  readonly key: string | null
  readonly action: string
  readonly feature: string
  readonly amount: number
  readonly reverses: string | null
}

/** What event ids were used for, and the consumptions after the last reset of the count. */
const usageOf = (rows: ReadonlyArray<UsageRow>): Pick<License, "counted" | "open"> => {
  const counted = new Map<string, { feature: string; amount: number; reverses: string | null }>()
  const open = new Map<string, Map<string, string | null>>()
  for (const { action, amount, feature, key, reverses } of rows) {
    if (key !== null) counted.set(key, { feature, amount, reverses })
    const events = open.get(feature) ?? new Map<string, string | null>()
    if (action === "consume") open.set(feature, events.set(key!, null))
    else if (action === "reverse") events.set(reverses!, key)
    else open.delete(feature)
  }
  return { counted, open }
}

const catalogOf = Effect.fnUntraced(function* (sql: SqlClient.SqlClient) {
  const [policies, granted, features, versions, subscriptions] = yield* Effect.all(
    [
      sql<Omit<Policy, "features">>`
        SELECT id, license_type, max_activations, max_floating_users, max_container_instances, floating_timeout_minutes,
          grace_period_days, validation_interval_minutes, require_heartbeat, allow_offline_activation, offline_grace_days,
          allow_vm, allow_container, max_transfers, allow_transfer, self_deactivations_per_month, hold_offline_slots, borrow_days_max, show_licensee, duration_days, maintenance_days,
          duration_starts, not_due_before AS floor, entitlement_counter AS version FROM policies
        WHERE product_id = 'prod_own' ORDER BY id`,
      sql<Omit<PolicyFeature, "metadata"> & { readonly policy: string; readonly id: string; readonly metadata: never }>`
        SELECT policy_id AS policy, feature_id AS id, enabled, max_consumptions AS max, expires_after_days AS days,
          expires_with_license IS TRUE AS follows, metadata, ${quotaColumns(sql)}
        FROM policy_features ORDER BY policy_id, feature_id`,
      sql<{ readonly id: string; readonly code: string }>`
        SELECT id, code FROM features WHERE product_id = 'prod_own' ORDER BY id`,
      sql<{ readonly id: string; readonly version: string; readonly released_at: number }>`
        SELECT id, version, released_at FROM product_versions ORDER BY version`,
      sql<Subscription>`
        SELECT id, current_period_start AS start, current_period_end AS end FROM subscriptions
        WHERE product_id = 'prod_own' ORDER BY id`
    ],
    { concurrency: "unbounded" }
  )
  const featuresOf = (of: string): Policy["features"] =>
    new Map(
      granted.flatMap(({ id, policy, metadata, ...feature }) =>
        policy === of ? [[id, { ...feature, metadata: canonicalize(metadata) }] as const] : []
      )
    )
  const catalog: Catalog = {
    policies: new Map(policies.map((policy) => [policy.id, { ...policy, features: featuresOf(policy.id) }])),
    features: new Map(features.map(({ id, code }) => [id, code])),
    versions: new Map(versions.map(({ version, released_at }) => [version, released_at])),
    subscriptions: new Map(subscriptions.map((subscription) => [subscription.id, subscription]))
  }
  return { catalog, versionIds: versions.map(({ id }) => id) }
})

const newsOf = (sql: SqlClient.SqlClient, after: { readonly event: number; readonly usage: number }) =>
  Effect.all(
    [
      sql<StoredEvent & { readonly license: string | null }>`
        SELECT sequence, event_type AS type, resource_id AS resource, metadata->>'request_id' AS request, created_at AS at,
          actor_type || ' ' || actor_id AS actor, ip_address AS address, metadata, CASE resource_type WHEN 'license' THEN resource_id ELSE metadata->>'license_id' END AS license
        FROM events WHERE sequence > ${after.event} ORDER BY sequence`,
      sql<StoredUsage>`
        SELECT sequence, license_id AS license, feature_id AS feature, action, event_id, amount, balance_after AS balance,
          max_after AS max, credits, overage, reverses, request_id AS request, event_sequence AS event, event_feature_code AS code,
          actor_type || ' ' || actor_id AS actor, event_ip_address AS address, device_id AS device
        FROM usage_ledger WHERE sequence > ${after.usage} ORDER BY sequence`
    ],
    { concurrency: "unbounded" }
  )

const totalsOf = (sql: SqlClient.SqlClient) => sql<{ readonly [what: string]: number }>`
  SELECT last AS "event counter", (SELECT count(*) FROM events) AS events,
    (SELECT coalesce(max(sequence), 0) FROM events) AS "last event",
    (SELECT count(*) FROM event_log) + (SELECT count(*) FROM usage_ledger WHERE action = 'consume') AS "what is an event",
    (SELECT count(DISTINCT number) FROM (
      SELECT sequence AS number FROM event_log UNION ALL SELECT event_sequence FROM usage_ledger) AS numbers
    ) AS "numbers of events", ledger_last AS "ledger counter",
    (SELECT count(*) FROM usage_ledger) AS "ledger rows",
    (SELECT coalesce(max(sequence), 0) FROM usage_ledger) AS "last ledger row",
    (SELECT count(*) FROM webhook_deliveries) AS deliveries,
    (SELECT count(*) FROM licenses) AS licenses, (SELECT count(*) FROM license_states) AS "license states",
    (SELECT count(*) FROM licenses l JOIN license_states s ON s.license_id = l.id AND s.created_at = l.created_at
      WHERE (s.status, s.policy_id) = (l.status, l.policy_id) AND s.expires_at IS NOT DISTINCT FROM l.expires_at
        AND s.notice IS NOT DISTINCT FROM license_notice(l.status, l.expires_at, l.expiring_for, l.expiring_days)
    ) AS "license states that agree"
  FROM event_sequence`

const unfencedOf = (sql: SqlClient.SqlClient) => sql<{ readonly wrong: string }>`
  WITH seen AS (DELETE FROM simulation_changes RETURNING *)
  SELECT license_id || ': ' || string_agg(what, ', ') || ' changed, revisions: ' || sum(raised) AS wrong
  FROM seen GROUP BY xid, license_id HAVING sum(raised) > 1 OR (bool_or(decisive) AND sum(raised) <> 1)`

const repeatedOf = (sql: SqlClient.SqlClient) => sql<{ readonly resource: string }>`
  SELECT resource FROM simulation_revisions GROUP BY resource, revision HAVING count(*) > 1`

/** Reads everything while no transaction writes. */
/** What a worker of a node does within milliseconds, unless a transaction holds the counter. */
export const numberStoredEntries = (sql: SqlClient.SqlClient) => sql`
  UPDATE event_sequence SET last = last
  WHERE EXISTS (SELECT FROM waiting_entries) AND EXISTS (SELECT FROM event_sequence FOR NO KEY UPDATE SKIP LOCKED)
  RETURNING true`

export const readRows = Effect.fnUntraced(function* (after: { readonly event: number; readonly usage: number }) {
  const sql = yield* SqlClient.SqlClient
  yield* numberStoredEntries(sql)
  const [licenses, catalog, [events, ledger], [totals], unfenced, repeated, kept] = yield* Effect.all(
    [
      licensesOf(sql),
      catalogOf(sql),
      newsOf(sql, after),
      totalsOf(sql),
      unfencedOf(sql),
      repeatedOf(sql),
      sql<{ readonly scope: Uint8Array }>`SELECT scope FROM idempotent_answers ORDER BY scope`
    ],
    { concurrency: "unbounded" }
  )
  const stored: Stored = {
    licenses,
    ...catalog,
    events: events.map((event) => ({ ...event, license: event.license ?? undefined })),
    ledger,
    totals: totals!,
    unfenced: unfenced.map(({ wrong }) => wrong),
    repeated: repeated.map(({ resource }) => resource),
    kept: new Set(kept.map(({ scope }) => Buffer.from(scope).toString()))
  }
  return stored
})
