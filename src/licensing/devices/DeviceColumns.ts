/** The columns of a device `d` that responses contain, except its status, which needs more tables. */
import type { SqlClient } from "effect/sql"
import { instant } from "../../platform/postgres/driver/Parameters.ts"

export const deviceColumns = (sql: SqlClient.SqlClient, now: number) => sql`
  d.id, d.license_id, d.binding_kind, d.binding_key, d.is_vm, d.is_container, d.first_seen_at, d.last_seen_at, d.metadata, d.created_at,
  d.updated_at, d.fingerprint, d.hostname, d.os, d.ip_address, d.container_id, d.cluster_id, d.namespace, d.pod_name,
  d.last_validated_at, CASE WHEN d.slot_held_until > ${instant(now)} THEN d.slot_held_until END AS slot_held_until`
