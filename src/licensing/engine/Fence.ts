/**
 * The fence of a group commit: a license is written only if the revisions of its decision are still current. Licenses
 * are written in the order of their ids, so that two groups never deadlock. The group's number is written with them,
 * and refused if the journal's row already has a higher number. All licenses of a group get its revision, which is
 * unique.
 */
import { Effect } from "effect"
import type { SqlClient, Statement } from "effect/sql"
import { columns, instant, int8 } from "../../platform/postgres/driver/Parameters.ts"
import { concurrentChange, groupGivenUp } from "../../platform/postgres/queries/Sql.ts"
import type { PendingChanges } from "./PendingChanges.ts"

type PendingGroup = ReadonlyArray<PendingChanges>

/** Identifies a group: the node's epoch, the journal, the number in that journal, the time, the revision. */
export interface GroupId {
  readonly epoch: string
  readonly journal: string
  readonly number: number
  readonly at: number
  readonly revision: number
}

/** A fence for the whole group: one outdated license fails the group. Each policy and product is checked once. */
export const fenceAll = (sql: SqlClient.SqlClient, groupId: GroupId, group: PendingGroup) => {
  const policies = [
    ...distinctRevisions(group, ({ base: { policy } }) => [policy.id, policy.revision]),
    ...distinctRevisions(group.filter(isMove), ({ policy }) => [policy.id, policy.revision])
  ]
  const products = distinctRevisions(group, ({ base }) => [base.license.product_id, base.catalogRevision])
  const pairs = (of: typeof policies) => sql`unnest(${columns.text(of.map(({ id }) => id))},
    ${columns.int8(of.map(({ revision }) => revision))}) AS seen (id, revision)`
  return sql`
    WITH written AS (${writeLicenses(sql, groupId, group)} RETURNING l.id), numbered AS (${claimNumber(sql, groupId)})
    SELECT demand((SELECT count(*) FROM written) = ${group.length} AND EXISTS (SELECT FROM numbered)
      AND NOT EXISTS (SELECT FROM ${pairs(policies)}
        WHERE revision IS DISTINCT FROM (SELECT p.revision FROM policies p WHERE p.id = seen.id))
      AND NOT EXISTS (SELECT FROM ${pairs(products)}
        WHERE revision IS DISTINCT FROM (SELECT p.catalog_revision FROM products p WHERE p.id = seen.id))
      ${group.some(namesCustomer) ? sql`AND NOT EXISTS (${erasedCustomers(sql, group)})` : sql``}
      ${group.some(readsPeriod) ? sql`AND NOT EXISTS (${movedSubscriptions(sql, group)})` : sql``},
      ${concurrentChange}, 'a license was changed meanwhile')`
}

/** A fence for each license: outdated licenses are omitted. Returns the ids of the written licenses. */
export const fence = (sql: SqlClient.SqlClient, groupId: GroupId, group: PendingGroup) => {
  const seen = sql`,
    unnest(${columns.int8(byLicense(group).map(({ base }) => base.policy.revision))}) AS policy_revision,
    unnest(${columns.int8(byLicense(group).map(({ base }) => base.catalogRevision))}) AS catalog_revision${targets(sql, group)}`
  const holds = sql`
    AND (SELECT p.revision FROM policies p WHERE p.id = l.policy_id) = decided.policy_revision
    AND (SELECT p.catalog_revision FROM products p WHERE p.id = l.product_id) = decided.catalog_revision
    ${group.some(isMove) ? sql`AND (decided.target_id IS NULL OR (SELECT p.revision FROM policies p WHERE p.id = decided.target_id) = decided.target_revision)` : sql``}
    ${group.some(namesCustomer) ? sql`AND NOT EXISTS (${erasedCustomers(sql, group)} AND named.license_id = l.id)` : sql``}
    ${group.some(readsPeriod) ? sql`AND NOT EXISTS (${movedSubscriptions(sql, group)} AND read.license_id = l.id)` : sql``}`
  return Effect.map(
    sql<{ readonly id: string }>`
      WITH written AS (${writeLicenses(sql, groupId, group, seen, holds)} RETURNING l.id), numbered AS (${claimNumber(sql, groupId)}), claimed AS (
        SELECT demand(EXISTS (SELECT FROM numbered), ${groupGivenUp}, 'the group was given up') AS holds
      ) SELECT written.id FROM written, claimed WHERE claimed.holds`,
    (rows): ReadonlySet<string> => new Set(rows.map((row) => row.id))
  )
}

/** Whether the license moves to another policy, whose revision the fence also checks. */
const isMove = ({ base, policy }: PendingChanges): boolean => policy !== base.policy

/** Whether a decision has read a customer, and may have copied the name and e-mail. */
const namesCustomer = ({ prefetched: { links } }: PendingChanges): boolean =>
  links.length > 0 && links.some(({ kind }) => kind === "customer")

/** Whether a decision has read the period of a subscription, which the license's quotas may follow. */
const readsPeriod = ({ prefetched: { links } }: PendingChanges): boolean =>
  links.length > 0 && links.some(({ period_start }) => period_start !== undefined)

const subscriptionsOf = ({ prefetched: { links } }: PendingChanges) =>
  links.flatMap(({ id, kind, period_end, period_start, subscription_id }) => {
    const subscription = kind === "subscription" ? id : subscription_id
    return subscription === undefined || period_start === undefined || period_end === undefined
      ? []
      : [{ id: subscription, period_start, period_end }]
  })

/** The subscriptions whose period was changed after a decision had read it, in whole milliseconds. */
const movedSubscriptions = (sql: SqlClient.SqlClient, group: PendingGroup) => {
  const read = group.flatMap((pending) =>
    subscriptionsOf(pending).map((subscription) => ({ ...subscription, license: pending.base.license.id }))
  )
  return sql`
    SELECT FROM unnest(${columns.text(read.map(({ license }) => license))}, ${columns.text(read.map(({ id }) => id))},
      ${columns.timestamptz(read.map(({ period_start }) => period_start))},
      ${columns.timestamptz(read.map(({ period_end }) => period_end))}) AS read (license_id, id, period_start, period_end)
    WHERE NOT EXISTS (SELECT FROM subscriptions s WHERE s.id = read.id
      AND date_trunc('milliseconds', s.current_period_start) = read.period_start
      AND date_trunc('milliseconds', s.current_period_end) = read.period_end)`
}

/**
 * Locks the policies that licenses of the group move to, and the customers and subscriptions that they name, before the fence reads their
 * revisions. A concurrent edit, deletion or erasure either precedes the fence, which then refuses the change, or waits
 * for the commit and finds the license.
 */
export const lockTargets = (
  sql: SqlClient.SqlClient,
  group: PendingGroup
): ReadonlyArray<Statement.Statement<object>> => {
  const lock = (table: "policies" | "customers" | "subscriptions", ids: ReadonlyArray<string>) =>
    ids.length === 0
      ? []
      : [sql`SELECT FROM ${sql(table)} WHERE id = ANY(${columns.text(ids)}) ORDER BY id FOR KEY SHARE`]
  return [
    ...lock(
      "policies",
      group.filter(isMove).map(({ policy }) => policy.id)
    ),
    ...lock(
      "customers",
      group.filter(namesCustomer).flatMap((pending) => customersOf(pending).map(({ id }) => id))
    ),
    ...lock(
      "subscriptions",
      group.filter(readsPeriod).flatMap((pending) => subscriptionsOf(pending).map(({ id }) => id))
    )
  ]
}

const customersOf = ({ prefetched: { links } }: PendingChanges) => links.filter(({ kind }) => kind === "customer")

/** The customers whose erasure began after a decision had read them. Copies of their data must not be written. */
const erasedCustomers = (sql: SqlClient.SqlClient, group: PendingGroup) => {
  const named = group
    .filter(namesCustomer)
    .flatMap((pending) => customersOf(pending).map((customer) => ({ ...customer, license: pending.base.license.id })))
  return sql`
    SELECT FROM unnest(${columns.text(named.map(({ license }) => license))}, ${columns.text(named.map(({ id }) => id))},
      ${columns.int8(named.map(({ erasure_revision = 0 }) => erasure_revision))}) AS named (license_id, id, revision)
    WHERE revision IS DISTINCT FROM (SELECT c.erasure_revision FROM customers c WHERE c.id = named.id)`
}

const targets = (sql: SqlClient.SqlClient, group: PendingGroup) => {
  if (!group.some(isMove)) return sql``
  const moved = byLicense(group).map((pending) => (isMove(pending) ? pending.policy : undefined))
  return sql`, unnest(${columns.text(moved.map((policy) => policy?.id ?? null))}) AS target_id,
    unnest(${columns.int8(moved.map((policy) => policy?.revision ?? null))}) AS target_revision`
}

/** The licenses that no other transaction holds, locked in the order of their ids. */
export const lockFree = (sql: SqlClient.SqlClient, group: PendingGroup) =>
  Effect.map(
    sql<{ readonly id: string }>`
      SELECT id FROM licenses WHERE id = ANY(${columns.text(group.map(({ base }) => base.license.id))})
      ORDER BY id FOR NO KEY UPDATE SKIP LOCKED`,
    (rows): ReadonlySet<string> => new Set(rows.map((row) => row.id))
  )

const byLicense = (group: PendingGroup): PendingGroup =>
  group.toSorted((a, b) => (a.base.license.id < b.base.license.id ? -1 : 1))

/** Each id with the revision of the decision. If two decisions read different revisions, one fails the fence. */
const distinctRevisions = (group: PendingGroup, pairOf: (pending: PendingChanges) => readonly [string, number]) => {
  const pairs = new Map<string, { readonly id: string; readonly revision: number }>()
  for (const pending of group) {
    const [id, revision] = pairOf(pending)
    pairs.set(`${revision} ${id}`, { id, revision })
  }
  return Array.from(pairs.values())
}

/**
 * Looks up each license by id and writes it by its row address (ctid), so that no plan scans the table, even with old
 * statistics. PostgreSQL checks a row again after waiting for its lock. Reading the arrays row by row, and writing
 * without an earlier lock, made the statement a third faster.
 */
const writeLicenses = (
  sql: SqlClient.SqlClient,
  { revision }: GroupId,
  group: PendingGroup,
  seen: Statement.Fragment = sql``,
  holds: Statement.Fragment = sql``
) => {
  const rows = byLicense(group)
  const licenses = rows.map(({ license }) => license)
  // Setting the status fires the table's trigger for every row, and the status rarely changes.
  const statusChanged = rows.some(({ base, license }) => license.status !== base.license.status)
  const status = () => sql`unnest(${columns.text(licenses.map((license) => license.status))}) AS status,`
  return sql`
    UPDATE licenses l SET ${statusChanged ? sql`status = decided.status,` : sql``} active_device_count = decided.active_device_count,
      times_activated = decided.times_activated, times_transferred = decided.times_transferred,
      total_consumptions = decided.total_consumptions, entitlement_counter = decided.entitlement_counter,
      updated_at = decided.updated_at, revision = ${int8(revision)}
    FROM (
      SELECT unnest(${columns.text(licenses.map((license) => license.id))}) AS id,
        unnest(${columns.int8(rows.map(({ base }) => base.license.revision))}) AS revision,
        ${statusChanged ? status() : sql``}
        unnest(${columns.int4(licenses.map((license) => license.active_device_count))}) AS active_device_count,
        unnest(${columns.int4(licenses.map((license) => license.times_activated))}) AS times_activated,
        unnest(${columns.int4(licenses.map((license) => license.times_transferred))}) AS times_transferred,
        unnest(${columns.int8(licenses.map((license) => license.total_consumptions))}) AS total_consumptions,
        unnest(${columns.int8(licenses.map((license) => license.entitlement_counter))}) AS entitlement_counter,
        unnest(${columns.timestamptz(licenses.map((license) => license.updated_at))}) AS updated_at${seen}
    ) AS decided CROSS JOIN LATERAL (SELECT ctid AS address FROM licenses WHERE id = decided.id OFFSET 0) AS target
    WHERE l.ctid = target.address AND l.revision = decided.revision ${holds}`
}

const claimNumber = (sql: SqlClient.SqlClient, { journal, number, at }: GroupId) => sql`
  INSERT INTO journals (id, last_group, written_at) VALUES (${journal}, ${number}, ${instant(at)})
  ON CONFLICT (id) DO UPDATE SET last_group = excluded.last_group, written_at = excluded.written_at
  WHERE journals.last_group < excluded.last_group RETURNING id`

/** Added to the last number of a retired journal: no group has a higher one, and the last committed one stays known. */
const retired = 2 ** 52

/** Whether the group is the last one that its journal committed. Waits for the lock of the journal's row. */
export const wasLastGroup = (sql: SqlClient.SqlClient, { journal, number, at }: GroupId) =>
  Effect.map(
    sql<{ readonly last_group: number }>`
      INSERT INTO journals (id, last_group, written_at) VALUES (${journal}, 0, ${instant(at)})
      ON CONFLICT (id) DO UPDATE SET last_group = journals.last_group RETURNING last_group`,
    ([row]) => row!.last_group % retired === number
  )

/** Prevents all commits of groups with lower numbers. */
export const abandonGroupsBelow = (sql: SqlClient.SqlClient, journal: string, number: number) => sql`
  UPDATE journals SET last_group = ${number} WHERE id = ${journal} AND last_group < ${number}`

/** Prevents all commits of this journal, after waiting for a running one. */
export const retireJournal = (sql: SqlClient.SqlClient, journal: string, at: number) => sql`
  INSERT INTO journals (id, last_group, written_at) VALUES (${journal}, ${retired}, ${instant(at)})
  ON CONFLICT (id) DO UPDATE SET last_group = journals.last_group + ${retired}, written_at = excluded.written_at
  WHERE journals.last_group < ${retired}`
