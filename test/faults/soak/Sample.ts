/** What the node and its database take at one moment. */
import { readdirSync } from "node:fs"
import { Effect } from "effect"
import { query } from "../checks/Rows.ts"
import type { PostgresServer } from "../installation/PostgresServer.ts"
import type { ServiceNode } from "../installation/ServiceNode.ts"

/** Megabytes are of 10^6 bytes. */
export interface Sample {
  readonly minutes: number
  /** Of the minute before. */
  readonly requestsPerSecond: number
  readonly p50Millis: number
  readonly p99Millis: number
  readonly loopDelayMillis: number
  readonly rssMegabytes: number
  readonly heapMegabytes: number
  readonly handles: number
  readonly actors: number
  readonly connections: number
  readonly leases: number
  readonly waiting: number
  /** Of the tables that hold work in progress, and of none that grow with licenses or events. */
  readonly flatMegabytes: number
  readonly flatDeadRows: number
  readonly logMegabytes: number
  /** These grow: compare their growth by event. */
  readonly events: number
  readonly licenses: number
  readonly walMegabytes: number
  readonly databaseMegabytes: number
}

/** Tables with a row for each license, device, lease, event, consumption, delivery, stored response or export. */
const growing =
  "^(licenses|license_|devices|leases|event_log|event_id|usage_|handovers|idempotent_|webhook_deliveries|refusals|report_export|sequence_partitions)"

const statement = `SELECT jsonb_build_object(
  'events', (SELECT last FROM event_sequence),
  'licenses', (SELECT count(*) FROM licenses),
  'connections', (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'),
  'leases', (SELECT count(*) FROM leases WHERE status = 'live'),
  'waiting', (SELECT count(*) FROM waiting_entries) + (SELECT count(*) FROM webhook_deliveries WHERE status = 'pending'),
  'flatMegabytes', (SELECT sum(pg_total_relation_size(relid)) / 1e6 FROM pg_stat_user_tables WHERE relname !~ $1),
  'flatDeadRows', (SELECT sum(n_dead_tup) FROM pg_stat_user_tables WHERE relname !~ $1),
  'logMegabytes', (SELECT sum(size) / 1e6 FROM pg_ls_waldir()),
  'walMegabytes', pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0') / 1e6,
  'databaseMegabytes', pg_database_size(current_database()) / 1e6)::text`

type Measured = "minutes" | "requestsPerSecond" | "p50Millis" | "p99Millis"
type OfNode = "loopDelayMillis" | "rssMegabytes" | "heapMegabytes" | "handles" | "actors"

export const takeSample = Effect.fnUntraced(function* (
  node: ServiceNode,
  postgres: PostgresServer,
  measured: Pick<Sample, Measured>
) {
  const metrics = yield* Effect.promise(() =>
    node.pool.request({ path: "/metrics", method: "GET" }).then(({ body }) => body.text())
  )
  const metric = (name: string) => {
    const line = metrics.split("\n").find((text) => text.startsWith(`${name} `))
    return line === undefined ? Number.NaN : Number(line.slice(name.length + 1))
  }
  const stored = (yield* query(postgres, statement, [growing])) as Omit<Sample, Measured | OfNode>
  return {
    ...measured,
    loopDelayMillis: 1e3 * metric('licensing_event_loop_delay_seconds{stat="p99"}'),
    rssMegabytes: metric('licensing_process_memory_bytes{kind="rss"}') / 1e6,
    heapMegabytes: metric('licensing_process_memory_bytes{kind="heap_used"}') / 1e6,
    handles: yield* Effect.sync(() => readdirSync(`/proc/${node.pid()}/fd`).length),
    actors: metric("licensing_license_actors"),
    ...stored
  } satisfies Sample as Sample
})
