/** The baseline's tables and statements. Every statement is prepared; locks keep concurrent requests exact. */

export interface License {
  readonly id: string
  readonly status: string
  readonly license_type: string
  readonly expires_at: Date | null
  readonly max_activations: number
  readonly validation_interval_minutes: number
  /** 0 = floating is off. */
  readonly max_floating_users: number
  readonly floating_timeout_minutes: number
  readonly active_device_count: number
  readonly times_activated: number
  readonly total_consumptions: string
  readonly entitlement_version: string
}

export interface Device {
  readonly id: string
  readonly status: string
  /** Whether it is activated; a device with a floating seat is active without activation. */
  readonly holds_slot: boolean
}

export interface Lease {
  readonly id: string
  readonly device_id: string
  readonly status: string
  readonly expires_at: Date
}

export interface Assignment {
  readonly feature_id: string
  readonly code: string
  readonly enabled: boolean
  readonly max_consumptions: string | null
  readonly total_consumptions: string
}

export const schema = `
  CREATE TABLE products (id text PRIMARY KEY, name text NOT NULL, code text NOT NULL UNIQUE);
  CREATE TABLE policies (
    id text PRIMARY KEY, product_id text NOT NULL REFERENCES products, name text NOT NULL, code text NOT NULL,
    license_type text NOT NULL, max_activations int NOT NULL, validation_interval_minutes int NOT NULL,
    max_floating_users int NOT NULL, floating_timeout_minutes int NOT NULL);
  CREATE TABLE features (
    id text PRIMARY KEY, product_id text NOT NULL REFERENCES products, name text NOT NULL, code text NOT NULL);
  CREATE TABLE licenses (
    id text PRIMARY KEY, product_id text NOT NULL, policy_id text NOT NULL, key_hash bytea NOT NULL UNIQUE,
    status text NOT NULL, expires_at timestamptz, active_device_count int NOT NULL DEFAULT 0,
    times_activated int NOT NULL DEFAULT 0, total_consumptions bigint NOT NULL DEFAULT 0,
    entitlement_version bigint NOT NULL DEFAULT 1);
  CREATE TABLE license_features (
    license_id text, feature_id text, code text NOT NULL, enabled bool NOT NULL, max_consumptions bigint,
    total_consumptions bigint NOT NULL DEFAULT 0, PRIMARY KEY (license_id, feature_id));
  CREATE TABLE devices (
    id text PRIMARY KEY, license_id text NOT NULL, binding_key text NOT NULL, status text NOT NULL,
    holds_slot bool NOT NULL, last_seen_at timestamptz NOT NULL, last_validated_at timestamptz,
    UNIQUE (license_id, binding_key));
  CREATE TABLE leases (
    id text PRIMARY KEY, license_id text NOT NULL, device_id text NOT NULL, token_hash bytea NOT NULL UNIQUE,
    status text NOT NULL, checked_out_at timestamptz NOT NULL, heartbeat_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL, ended_at timestamptz);
  CREATE INDEX ON leases (license_id, expires_at) WHERE status = 'live';
  CREATE UNIQUE INDEX ON leases (device_id) WHERE status = 'live';
  CREATE TABLE usage (
    license_id text, event_id text, feature_id text NOT NULL, amount bigint NOT NULL, balance_after bigint NOT NULL,
    created_at timestamptz NOT NULL, PRIMARY KEY (license_id, event_id));
  CREATE TABLE events (
    sequence bigserial PRIMARY KEY, event_type text NOT NULL, actor_id text NOT NULL, resource_id text NOT NULL,
    metadata jsonb NOT NULL, created_at timestamptz NOT NULL);`

const license = `
  SELECT licenses.*, policies.license_type, policies.max_activations, policies.validation_interval_minutes,
    policies.max_floating_users, policies.floating_timeout_minutes
  FROM licenses JOIN policies ON policies.id = licenses.policy_id`

export const statements = {
  license: `${license} WHERE key_hash = $1`,
  licenseLocked: `${license} WHERE key_hash = $1 FOR UPDATE OF licenses`,
  licenseById: `${license} WHERE licenses.id = $1`,
  device: "SELECT id, status, holds_slot FROM devices WHERE license_id = $1 AND binding_key = $2",
  seen: "UPDATE devices SET last_seen_at = $2, last_validated_at = $2 WHERE id = $1",
  activate: `
    INSERT INTO devices (id, license_id, binding_key, status, holds_slot, last_seen_at)
    VALUES ($1, $2, $3, 'active', true, $4)
    ON CONFLICT (license_id, binding_key) DO UPDATE SET status = 'active', holds_slot = true, last_seen_at = $4
    RETURNING id, status, holds_slot`,
  countActivation: `
    UPDATE licenses SET active_device_count = active_device_count + 1, times_activated = times_activated + 1
    WHERE id = $1`,
  assignments: `
    SELECT feature_id, code, enabled, max_consumptions, total_consumptions
    FROM license_features WHERE license_id = $1 ORDER BY code`,
  assignment: `
    SELECT feature_id, code, enabled, max_consumptions, total_consumptions
    FROM license_features WHERE license_id = $1 AND code = $2`,
  usage: `
    INSERT INTO usage (license_id, event_id, feature_id, amount, balance_after, created_at)
    VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING RETURNING event_id`,
  countUsage: "UPDATE license_features SET total_consumptions = $3 WHERE license_id = $1 AND feature_id = $2",
  countTotal: "UPDATE licenses SET total_consumptions = total_consumptions + $2 WHERE id = $1",
  event: `
    INSERT INTO events (event_type, actor_id, resource_id, metadata, created_at) VALUES ($1, $2, $2, $3, $4)`,
  holder: `
    INSERT INTO devices (id, license_id, binding_key, status, holds_slot, last_seen_at)
    VALUES ($1, $2, $3, 'active', false, $4)
    ON CONFLICT (license_id, binding_key) DO UPDATE SET status = 'active', last_seen_at = $4
    RETURNING id, status, holds_slot`,
  supersede: "UPDATE leases SET status = 'superseded', ended_at = $2 WHERE device_id = $1 AND status = 'live'",
  seats: `
    SELECT count(*)::int AS taken FROM leases WHERE license_id = $1 AND status = 'live' AND expires_at > $2`,
  checkout: `
    INSERT INTO leases (id, license_id, device_id, token_hash, status, checked_out_at, heartbeat_at, expires_at)
    VALUES ($1, $2, $3, $4, 'live', $5, $5, $6) RETURNING id, device_id, status, expires_at`,
  leaseLocked: `
    SELECT id, device_id, status, expires_at FROM leases WHERE token_hash = $1 AND license_id = $2 FOR UPDATE`,
  heartbeat: "UPDATE leases SET heartbeat_at = $2, expires_at = $3 WHERE id = $1",
  holderSeen: "UPDATE devices SET last_seen_at = $2 WHERE id = $1",
  checkin: "UPDATE leases SET status = 'checked_in', ended_at = $2 WHERE id = $1",
  holderLeft: `
    UPDATE devices SET status = CASE WHEN holds_slot THEN 'active' ELSE 'deactivated' END, last_seen_at = $2
    WHERE id = $1`,
  liveLeases: `
    SELECT id, device_id, status, expires_at FROM leases
    WHERE license_id = $1 AND status = 'live' AND expires_at > $2 LIMIT 200`,
  createProduct: "INSERT INTO products VALUES ($1, $2, $3)",
  createPolicy: "INSERT INTO policies VALUES ($1, $2, $3, $4, $5, $6, 1440, $7, 30)",
  createFeature: "INSERT INTO features VALUES ($1, $2, $3, $4)",
  createLicense: `
    INSERT INTO licenses (id, product_id, policy_id, key_hash, status, expires_at)
    VALUES ($1, $2, $3, $4, 'active', $5)`,
  assign: `
    INSERT INTO license_features (license_id, feature_id, code, enabled, max_consumptions)
    SELECT $1, id, code, true, $3 FROM features WHERE id = $2`
} as const
