/** The statements on queued mails. A node owns a claimed mail until its lease ends. A row goes when its mail was sent. */
import type { SqlClient, Statement } from "effect/sql"
import { columns, instant } from "../../platform/postgres/driver/Parameters.ts"
import type { MailKind } from "./QueuedMail.ts"

export interface MailRow {
  readonly id: string
  readonly kind: MailKind
  readonly license_id: string | undefined
  readonly recipient_hash: Uint8Array
  readonly content_sealed: Uint8Array
  readonly expires_at: number
  readonly created_at: number
}

/** The additional data that binds a mail's content to its row. */
export const sealedFor = (id: string): string => `mails/${id}`

export const insertMails = (sql: SqlClient.SqlClient, rows: ReadonlyArray<MailRow>) => sql`
  INSERT INTO mails (id, kind, license_id, recipient_hash, content_sealed, due_at, expires_at, created_at)
  SELECT id, kind, license_id, recipient_hash, content_sealed, created_at, expires_at, created_at FROM unnest(
    ${columns.text(rows.map((row) => row.id))}, ${columns.text(rows.map((row) => row.kind))},
    ${columns.text(rows.map((row) => row.license_id ?? null))}, ${columns.bytea(rows.map((row) => row.recipient_hash))},
    ${columns.bytea(rows.map((row) => row.content_sealed))}, ${columns.timestamptz(rows.map((row) => row.expires_at))},
    ${columns.timestamptz(rows.map((row) => row.created_at))}
  ) AS mail (id, kind, license_id, recipient_hash, content_sealed, expires_at, created_at)`

/** The number of waiting mails, counted up to a limit. */
export const countMails = (sql: SqlClient.SqlClient, limit: number) => sql<{ readonly count: number }>`
  SELECT count(*) AS count FROM (SELECT FROM mails LIMIT ${limit}) AS waiting`

/** Removes the waiting mails about the licenses and to the addresses of a customer that is being erased. */
export const eraseMails = (
  sql: SqlClient.SqlClient,
  customerId: string,
  recipientHashes: ReadonlyArray<Uint8Array>
) => sql`
  DELETE FROM mails WHERE recipient_hash = ANY(${columns.bytea(recipientHashes)})
    OR license_id IN (SELECT resource_id FROM erasure_records WHERE customer_id = ${customerId})`

/** Removes the waiting mails to these addresses that are about no license. */
export const eraseMailsOfAddresses = (sql: SqlClient.SqlClient, recipientHashes: ReadonlyArray<Uint8Array>) => sql`
  DELETE FROM mails WHERE license_id IS NULL AND recipient_hash = ANY(${columns.bytea(recipientHashes)})`

/** A mail that this node sends, with the values of its license. */
export interface ClaimedMail {
  readonly id: string
  readonly kind: MailKind
  readonly content_sealed: Uint8Array
  readonly attempts: number
  readonly leased_until: number
  readonly expires_at: number
  readonly created_at: number
  readonly license_id: string | null
  readonly product_name: string | null
  readonly policy_name: string | null
  readonly license_key_prefix: string | null
  readonly license_key_last4: string | null
  readonly license_expires_at: number | null
  readonly maintenance_expires_at: number | null
}

/** Claims due mails, the oldest first. */
export const claimMails = (
  sql: SqlClient.SqlClient,
  { leasedUntil, limit, now }: { readonly now: number; readonly leasedUntil: number; readonly limit: number }
) => sql<ClaimedMail>`
  WITH taken AS (
    UPDATE mails SET leased_until = ${instant(leasedUntil)} WHERE id = ANY(ARRAY(
      SELECT id FROM mails
      WHERE due_at <= ${instant(now)} AND expires_at > ${instant(now)} AND coalesce(leased_until <= ${instant(now)}, TRUE)
      ORDER BY due_at, id LIMIT ${limit} FOR UPDATE SKIP LOCKED
    ))
    RETURNING id, kind, license_id, content_sealed, attempts, leased_until, expires_at, created_at
  )
  SELECT taken.*, product.name AS product_name, policy.name AS policy_name, l.license_key_prefix, l.license_key_last4,
    l.expires_at AS license_expires_at, l.maintenance_expires_at
  FROM taken LEFT JOIN licenses l ON l.id = taken.license_id LEFT JOIN products product ON product.id = l.product_id
    LEFT JOIN policies policy ON policy.id = l.policy_id
  ORDER BY taken.created_at, taken.id`

export interface MailOutcome {
  readonly id: string
  /** After the lease a node must not overwrite the state of the next owner. */
  readonly leased_until: number
  /** Undefined: the mail was sent. */
  readonly failure: string | undefined
  /** When it is tried again. Undefined: never, and the row goes. */
  readonly due_at: number | undefined
}

/** The period of a row of counts. */
const periodMillis = 600_000

/** A lost outcome repeats a mail under its Message-ID, so the commit does not wait for the disk. */
export const recordMails = (sql: SqlClient.SqlClient, outcomes: ReadonlyArray<MailOutcome>, now: number) => sql`
  WITH commits AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true)), outcome AS MATERIALIZED (
    SELECT outcome.* FROM commits, unnest(
      ${columns.text(outcomes.map((one) => one.id))}, ${columns.timestamptz(outcomes.map((one) => one.leased_until))},
      ${columns.text(outcomes.map((one) => one.failure ?? null))},
      ${columns.timestamptz(outcomes.map((one) => one.due_at ?? null))}
    ) AS outcome (id, leased_until, failure, due_at)
  ), gone AS (
    DELETE FROM mails m USING outcome o
    WHERE m.id = o.id AND o.due_at IS NULL AND (o.failure IS NULL OR m.leased_until = o.leased_until)
  ), kept AS (
    UPDATE mails m SET attempts = m.attempts + 1, due_at = o.due_at, leased_until = NULL FROM outcome o
    WHERE m.id = o.id AND o.due_at IS NOT NULL AND m.leased_until = o.leased_until
  )
  ${counting(
    sql,
    now,
    sql`
    SELECT count(*) FILTER (WHERE failure IS NULL), count(failure), count(failure) FILTER (WHERE due_at IS NULL),
      max(failure) FROM outcome`
  )}`

/** Adds (sent, failed, given_up, failure) to the counts of the running period. */
const counting = (sql: SqlClient.SqlClient, now: number, counts: Statement.Fragment) => sql`
  INSERT INTO mail_counts AS c (period, sent, failed, given_up, last_success_at, last_failure_at, last_failure)
  SELECT ${instant(now - (now % periodMillis))}, sent, failed, given_up, CASE WHEN sent > 0 THEN ${instant(now)} END,
    CASE WHEN failed > 0 THEN ${instant(now)} END, failure
  FROM (${counts}) AS counted (sent, failed, given_up, failure)
  ON CONFLICT (period) DO UPDATE SET sent = c.sent + excluded.sent, failed = c.failed + excluded.failed,
    given_up = c.given_up + excluded.given_up, last_success_at = GREATEST(c.last_success_at, excluded.last_success_at),
    last_failure_at = GREATEST(c.last_failure_at, excluded.last_failure_at),
    last_failure = coalesce(excluded.last_failure, c.last_failure)`

/** Counts a failure to reach the server, which is no attempt of a mail. */
export const recordOutage = (sql: SqlClient.SqlClient, reason: string, now: number) =>
  counting(sql, now, sql`SELECT 0, 1, 0, ${reason}::text`)

/** Releases claimed mails, which are due as before. */
export const releaseMails = (
  sql: SqlClient.SqlClient,
  claimed: ReadonlyArray<Pick<ClaimedMail, "id" | "leased_until">>
) => sql`
  UPDATE mails m SET leased_until = NULL
  FROM unnest(${columns.text(claimed.map((one) => one.id))}, ${columns.timestamptz(claimed.map((one) => one.leased_until))})
    AS taken (id, leased_until)
  WHERE m.id = taken.id AND m.leased_until = taken.leased_until`

/** Removes mails that were not sent in time, and counts of earlier days. Returns the ids of the mails. */
export const removeExpired = (
  sql: SqlClient.SqlClient,
  { countsBefore, limit, now }: { readonly now: number; readonly countsBefore: number; readonly limit: number }
) => sql<{ readonly id: string; readonly kind: string; readonly license_id: string | null }>`
  WITH late AS MATERIALIZED (
    SELECT id FROM mails WHERE expires_at <= ${instant(now)} AND coalesce(leased_until <= ${instant(now)}, TRUE)
    ORDER BY expires_at LIMIT ${limit} FOR UPDATE SKIP LOCKED
  ), old AS (
    DELETE FROM mail_counts WHERE period < ${instant(countsBefore)}
  ), gone AS (
    DELETE FROM mails m USING late WHERE m.id = late.id RETURNING m.id, m.kind, m.license_id
  ), counted AS (
    ${counting(sql, now, sql`SELECT 0, 0, count(*), NULL::text FROM gone HAVING count(*) > 0`)}
  )
  SELECT id, kind, license_id FROM gone`
