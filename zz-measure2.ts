import { Clock, Context, Effect, Layer, References } from "effect"
import { SqlClient } from "effect/sql"
import { SecureRandom } from "effect/crypto"
import { mkdtempSync, chmodSync, rmSync } from "node:fs"
import { databaseAt } from "./src/Foundation.ts"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { EmbeddedPostgres } from "./src/postgres/EmbeddedPostgres.ts"
import { EventLog } from "./src/events/EventLog.ts"
import { ExpirySweep } from "./src/licenses/ExpirySweep.ts"
import { LeaseSweep } from "./src/licenses/LeaseSweep.ts"
import { HeartbeatSweep } from "./src/licenses/HeartbeatSweep.ts"
import { instant } from "./src/postgres/Parameters.ts"

const directory = mkdtempSync("/tmp/licmeasure-"); chmodSync(directory, 0o711)
const n = Number(process.argv[2] ?? 100000)
const db = Layer.unwrap(EmbeddedPostgres.useSync(({ url }) => databaseAt(url))).pipe(Layer.provide(EmbeddedPostgres.layer({ directory })))
const sweeps = Layer.mergeAll(ExpirySweep.layer, LeaseSweep.layer, HeartbeatSweep.layer).pipe(Layer.provide(EventLog.layer), Layer.provideMerge(db), Layer.provide(NodeServices.layer))
const timed = <A, E, R>(name: string, e: Effect.Effect<A, E, R>) => Effect.gen(function* () {
  const t = performance.now(); const cpu = process.cpuUsage(); const a = yield* e
  const c = process.cpuUsage(cpu)
  console.log(name.padEnd(40), ((performance.now() - t) / 1000).toFixed(2), "s, node cpu", ((c.user + c.system) / 1e6).toFixed(2), "s"); return a })
const program = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const at = instant(Date.UTC(2030, 0, 1)); const end = instant(Date.UTC(2030, 0, 15))
  yield* sql`INSERT INTO products (id,name,code,metadata,created_at,updated_at) VALUES ('p','p','p','{}',${at},${at})`
  yield* sql`INSERT INTO policies (id, product_id, name, code, license_type, max_activations, max_floating_users, floating_timeout_minutes, grace_period_days,
      validation_interval_minutes, require_heartbeat, allow_offline_activation, offline_grace_days, allow_vm, allow_container, max_transfers, metadata, created_at, updated_at)
    SELECT 'pol' || i, 'p', 'P', 'c' || i, 'subscription', 5, 100, 30, (i % 2) * 3, 60, i % 4 = 0, true, 7, true, true, 0, '{}', ${at}, ${at} FROM generate_series(0, 199) i`
  yield* timed("insert licenses", sql`
    INSERT INTO licenses (id, product_id, policy_id, key_hash, license_key_prefix, license_key_last4, status, expires_at, metadata, created_at, updated_at, active_device_count)
    SELECT 'lic_' || i, 'p', 'pol' || (i % 200), sha256(i::text::bytea), 'LK-AAAAA', 'AAAA', 'active', ${end}::timestamptz + (i % 3 = 2)::int * interval '400 days', '{}', ${at}, ${at}, 1 FROM generate_series(1, ${Math.round(n * 1.5)}::int) i`)
  yield* timed("insert devices", sql`
    INSERT INTO devices (id, license_id, binding_kind, binding_key, is_vm, is_container, status, holds_slot, activated_at, first_seen_at, last_seen_at, metadata, created_at, updated_at)
    SELECT 'dev_' || i || k, 'lic_' || i, 'hardware', 'm' || k, false, false, 'active', k = 1, CASE WHEN k = 1 THEN ${at}::timestamptz END, ${at}, ${at}, '{}', ${at}, ${at} FROM generate_series(1, ${Math.round(n * 1.5)}::int) i, generate_series(1, 2) k`)
  yield* timed("insert leases", sql`
    INSERT INTO leases (id, license_id, device_id, token_hash, status, checked_out_at, heartbeat_at, expires_at)
    SELECT 'lse_' || i, 'lic_' || i, 'dev_' || i || 2, sha256(i::text::bytea), 'live', ${at}, ${at}, ${end}::timestamptz + (i % 2) * interval '1 hour' FROM generate_series(1, ${n}::int) i`)
  yield* sql.unsafe("ANALYZE")
  const expiry = (yield* ExpirySweep).pass, lease = (yield* LeaseSweep).pass, heartbeat = (yield* HeartbeatSweep).pass
  let now = Date.UTC(2030, 0, 15)
  const real = yield* Clock.Clock; const clock = Object.assign(Object.create(real), { sleep: (d: never) => real.sleep(d), currentTimeNanosUnsafe: () => real.currentTimeNanosUnsafe(), monotonicTimeNanosUnsafe: () => real.monotonicTimeNanosUnsafe(), currentTimeMillisUnsafe: () => now, currentTimeMillis: Effect.sync(() => now) }) as Clock.Clock
  const live = (e: Effect.Effect<void>) => Effect.provideService(e, Clock.Clock, clock)
  const counts = Effect.map(sql`SELECT event_type, count(*) FROM events GROUP BY 1 ORDER BY 1`, (rows) => console.log(JSON.stringify(rows)))
  const q = `SELECT due.id FROM policies p CROSS JOIN LATERAL (
      (SELECT l.id FROM licenses l WHERE l.policy_id = p.id AND l.status = 'active' AND l.expires_at <= timestamptz '2030-01-15Z' LIMIT 500)
      UNION ALL
      (SELECT l.id FROM licenses l WHERE l.policy_id = p.id AND l.status = 'grace_period'
        AND l.expires_at <= timestamptz '2030-01-15Z' - make_interval(days => p.grace_period_days) LIMIT 500)
      UNION ALL
      (SELECT l.id FROM licenses l WHERE l.policy_id = p.id AND l.status = 'grace_period' AND l.expires_at > timestamptz '2030-01-15Z' LIMIT 500)
      UNION ALL
      (SELECT l.id FROM licenses l WHERE l.policy_id = p.id AND l.status = 'expired'
        AND l.expires_at > timestamptz '2030-01-15Z' - make_interval(days => p.grace_period_days) LIMIT 500)
    ) AS due LIMIT 500`
  const explain = Effect.map(sql.unsafe<{ "QUERY PLAN": string }>("EXPLAIN (ANALYZE, BUFFERS) " + q), (r) => console.log(r.map((x) => x["QUERY PLAN"]).join("\n")))
  yield* explain
  const fiber = yield* Effect.forkChild(live(expiry))
  yield* Effect.sleep("20 seconds")
  yield* explain
  yield* sql`SELECT query, state, now() - query_start AS d FROM pg_stat_activity WHERE state = 'active'`.pipe(Effect.map((r) => console.log(r.map((x: never) => JSON.stringify(x).slice(0, 200)).join("\n"))))
  yield* Effect.die("stop")
  yield* timed("lease sweep", live(lease)); yield* counts
  yield* timed("heartbeat sweep", live(heartbeat)); yield* counts
  yield* timed("idle expiry", live(expiry)); yield* timed("idle lease", live(lease)); yield* timed("idle heartbeat", live(heartbeat))
  now += 4 * 86400000
  yield* timed("expiry sweep after grace", live(expiry)); yield* counts
  yield* timed("idle expiry", live(expiry)); yield* timed("lease", live(lease)); yield* timed("heartbeat", live(heartbeat))
  const left = yield* sql`SELECT status, count(*) FROM licenses GROUP BY 1`; console.log(JSON.stringify(left))
  now = Date.UTC(2030, 0, 15) + 395 * 86400000
  yield* timed("notices", live(expiry)); yield* counts
  yield* timed("idle", live(expiry))
  for (const [name, q] of [["expired", `SELECT l.id FROM licenses l WHERE l.policy_id = 'pol1' AND l.status = 'expired' AND l.expires_at > now() + interval '10 years' LIMIT 500`]] as const) {
    const plan = yield* sql.unsafe<{ "QUERY PLAN": string }>(`EXPLAIN ANALYZE ${q}`); console.log(name, plan.map((r) => r["QUERY PLAN"]).join("\n"))
  }
})
await Effect.runPromise(program.pipe(Effect.provide(sweeps), Effect.provideService(References.MinimumLogLevel, "Warn")) as never).finally(() => rmSync(directory, { recursive: true, force: true }))
