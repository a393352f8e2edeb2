/**
 * How events become deliveries: in the statement that writes the events, or not at all. An endpoint is owed every event whose
 * sequence number follows the change that made it take the event, whatever ran at the same moment.
 *
 * That statement sees the endpoints of the moment at which it began, but gets the events' lock later. Whoever changes what an
 * endpoint takes raises `webhooks_revision` under the same lock, so the statement can tell that it has seen old endpoints;
 * what is missing then is added by a second one, which runs under the lock.
 */
import type { SqlClient } from "effect/sql"

/** Whether an endpoint takes an event: it lists no types, this one, or all of its noun. */
const takes = (sql: SqlClient.SqlClient) => sql`
  endpoint.is_active AND (endpoint.event_types = '{}'
    OR endpoint.event_types && ARRAY[event.event_type, split_part(event.event_type, '.', 1) || '.*'])`

const columns = "(endpoint_id, sequence, due_at, created_at)"

/** The deliveries of the rows of `event` (sequence, event_type, created_at). Gives a row for each. */
export const deliveryRows = (sql: SqlClient.SqlClient) => sql`
  INSERT INTO webhook_deliveries ${sql.literal(columns)}
  SELECT endpoint.id, event.sequence, event.created_at, event.created_at
  FROM event JOIN webhook_endpoints endpoint ON ${takes(sql)}
  RETURNING sequence`

/** The same for events that are written already; what was written with them is left alone. */
export const missingDeliveries = (sql: SqlClient.SqlClient, after: number, upTo: number) => sql`
  INSERT INTO webhook_deliveries ${sql.literal(columns)}
  SELECT endpoint.id, event.sequence, event.created_at, event.created_at
  FROM events event JOIN webhook_endpoints endpoint ON ${takes(sql)}
  WHERE event.sequence > ${after} AND event.sequence <= ${upTo}
  ON CONFLICT DO NOTHING`

/** Tells all appending transactions that what endpoints take has changed. Follows that change, and precedes its event. */
export const subscriptionsChanged = (sql: SqlClient.SqlClient) => sql`
  UPDATE event_sequence SET webhooks_revision = webhooks_revision + 1`
