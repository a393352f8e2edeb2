/**
 * Queues deliveries: the statement that writes events also writes their deliveries. What must stay true: an endpoint
 * gets all events with higher sequence numbers than the change of its subscriptions.
 *
 * The statement takes its snapshot of the endpoints before it gets the lock of the event counter's row. A change of
 * subscriptions raises `webhooks_revision` under that lock. So the statement detects an outdated snapshot, and a second
 * statement under the lock adds the missing deliveries.
 */
import type { SqlClient } from "effect/sql"
import { waitsForLog } from "../../platform/postgres/queries/Sql.ts"

/** Whether the endpoint's list of types is empty, or contains the event's type or all types of its noun. */
const isSubscribed = (sql: SqlClient.SqlClient) => sql`
  endpoint.is_active AND subscribes(endpoint.event_types, event.event_type)`

const columns = "(endpoint_id, sequence, due_at, created_at)"

/** Inserts the deliveries of the rows of `event` (sequence, event_type, created_at). */
export const deliveryRows = (sql: SqlClient.SqlClient) => sql`
  INSERT INTO webhook_deliveries ${sql.literal(columns)}
  SELECT endpoint.id, event.sequence, event.created_at, event.created_at
  FROM event JOIN webhook_endpoints endpoint ON ${isSubscribed(sql)}
  RETURNING sequence`

/** Inserts the missing deliveries of written events. */
export const missingDeliveries = (sql: SqlClient.SqlClient, after: number, upTo: number) => sql`
  INSERT INTO webhook_deliveries ${sql.literal(columns)}
  SELECT endpoint.id, event.sequence, event.created_at, event.created_at
  FROM events event JOIN webhook_endpoints endpoint ON ${isSubscribed(sql)}
  WHERE event.sequence > ${after} AND event.sequence <= ${upTo}
  ON CONFLICT DO NOTHING`

/**
 * Signals a change of subscriptions to all appending transactions. Run it before the change, and after the endpoint's row is locked:
 * it numbers the entries that were committed before, which get the deliveries of the earlier subscriptions.
 */
export const subscriptionsChanged = (sql: SqlClient.SqlClient) =>
  waitsForLog(sql`UPDATE event_sequence SET webhooks_revision = webhooks_revision + 1`)
