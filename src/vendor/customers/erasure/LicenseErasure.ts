/**
 * Removes a customer's data from its licenses, orders and subscriptions. Each license gets a new revision, so that no node decides
 * on its old state. Later events then contain no erased value as the old value.
 */
import { Clock, Effect } from "effect"
import type { SqlClient, SqlError } from "effect/sql"
import type { Metadata } from "../../../contract/api/Metadata.ts"
import type { EventRow } from "../../../ledger/events/Entry.ts"
import type { EventLog } from "../../../ledger/events/EventLog.ts"
import { columns, instant, int8 } from "../../../platform/postgres/driver/Parameters.ts"
import { hasAddress } from "../../../platform/postgres/queries/LicenseAddress.ts"
import { nextRevision } from "../../../platform/postgres/queries/Revision.ts"
import { type Matches, matcherOf, withoutText } from "./ErasedText.ts"
import {
  addRecords,
  beginOf,
  type ErasureRow,
  type Phase,
  placeAt,
  positionOf,
  type Step,
  textsOf
} from "./ErasureStep.ts"
import { type Transfer, transfersAfter, transfersMax, unchangedSince } from "./Transfers.ts"

/** The licenses of one transaction are locked for some tens of milliseconds. */
const licensesMax = 100

interface LicenseRow {
  readonly id: string
  readonly customer_id: string | null
  readonly status: string
  readonly customer_name: string | null
  readonly customer_email: string | null
  readonly metadata: Metadata
  /** Of the current owner. */
  readonly owner_name: string | null
  readonly owner_email: string | null
}

interface ErasedLicense extends Omit<LicenseRow, "owner_name" | "owner_email"> {
  readonly terms: ReadonlyArray<string>
  readonly changed: boolean
}

/** Times are text, which is exact also for rows that were inserted by other means. */
type Keyset = readonly [createdAt: string, id: string]

const linkedRows = (
  sql: SqlClient.SqlClient,
  table: "licenses" | "orders" | "subscriptions",
  erasure: ErasureRow
): Effect.Effect<ReadonlyArray<{ readonly id: string; readonly at: string }>, never> => {
  const after = positionOf<Keyset>(erasure)
  return Effect.orDie(sql<{ readonly id: string; readonly at: string }>`
    SELECT id, created_at::text AS at FROM ${sql(table)}
    WHERE customer_id = ${erasure.customer_id}
      AND ${after === undefined ? sql`TRUE` : sql`(created_at, id) < (${after[0]}::text::timestamptz, ${after[1]})`}
    ORDER BY created_at DESC, id DESC LIMIT ${licensesMax}`)
}

/** Licenses without a customer that have an address of the customer. */
const unlinkedAfter = (sql: SqlClient.SqlClient, { terms }: ErasureRow, after: string) =>
  Effect.map(
    sql<{ readonly id: string }>`
      SELECT DISTINCT id FROM (SELECT lower(unnest(${columns.text(terms)}))) AS given (address)
      CROSS JOIN LATERAL (
        SELECT l.id FROM licenses l
        WHERE ${hasAddress(sql, sql`given.address`)} AND l.customer_id IS NULL AND l.id > ${after} OFFSET 0
      ) AS named
      WHERE given.address LIKE '%@%' ORDER BY id LIMIT ${licensesMax}`,
    (rows) => rows.map(({ id }) => id)
  )

/** Locks licenses in the order of their ids, as the Journal does. */
const lockedLicenses = (sql: SqlClient.SqlClient, ids: ReadonlyArray<string>) => sql<LicenseRow>`
  SELECT l.id, l.customer_id, l.status, l.customer_name, l.customer_email, l.metadata, c.name AS owner_name,
    c.email AS owner_email
  FROM licenses l LEFT JOIN customers c ON c.id = l.customer_id
  WHERE l.id = ANY(${columns.text(ids)}) ORDER BY l.id FOR NO KEY UPDATE OF l`

const sameText = (one: string, other: string | null) => one.toLowerCase() === other?.toLowerCase()

interface Former {
  /** The names and emails at its transfers. */
  readonly terms: ReadonlyArray<string>
  /** True if the link was cleared, and the name and email have not changed since. */
  readonly keepsCopies: boolean
}

const noFormer: Former = { terms: [], keepsCopies: false }

/** A license of the customer loses name and email; a license of another owner loses them if they are not that owner's. */
const erasedLicense = (row: LicenseRow, erasure: ErasureRow, former: Former): ErasedLicense => {
  const { customer_email, customer_name, owner_email, owner_name, ...license } = row
  const isOwned = license.customer_id === erasure.customer_id
  const isUnlinked = license.customer_id === null && erasure.terms.some((term) => sameText(term, customer_email))
  const hasCopies = isOwned || former.keepsCopies || isUnlinked
  const terms = [...former.terms, ...(hasCopies ? textsOf([customer_name, customer_email]) : [])]
  const matches = matcherOf([...erasure.terms, ...terms])
  const kept = (copy: string | null, owned: string | null) =>
    copy !== null && !hasCopies && (!matches(copy) || sameText(copy, owned)) ? copy : null
  const erased = {
    ...license,
    customer_id: isOwned && license.status === "revoked" ? null : license.customer_id,
    customer_name: kept(customer_name, owner_name),
    customer_email: kept(customer_email, owner_email),
    metadata: withoutText(license.metadata, matches) as Metadata
  }
  const changed =
    isOwned ||
    erased.customer_name !== customer_name ||
    erased.customer_email !== customer_email ||
    JSON.stringify(erased.metadata) !== JSON.stringify(license.metadata)
  return { ...erased, terms, changed }
}

const writeLicenses = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, licenses: ReadonlyArray<ErasedLicense>) {
  const rows = licenses.filter(({ changed }) => changed)
  if (rows.length === 0) return
  const [now, revision] = [yield* Clock.currentTimeMillis, yield* nextRevision]
  yield* sql`
    UPDATE licenses l SET customer_id = erased.customer_id, customer_name = erased.customer_name,
      customer_email = erased.customer_email, metadata = erased.metadata, revision = ${int8(revision)},
      updated_at = ${instant(now)}, entitlement_counter = l.entitlement_counter + (
        SELECT (p.show_licensee AND l.customer_name IS DISTINCT FROM erased.customer_name OR EXISTS (
          SELECT FROM unnest(p.show_metadata) AS name WHERE l.metadata -> name IS DISTINCT FROM erased.metadata -> name
        ))::integer FROM policies p WHERE p.id = l.policy_id)
    FROM unnest(${columns.text(rows.map(({ id }) => id))}, ${columns.text(rows.map((row) => row.customer_id))},
      ${columns.text(rows.map((row) => row.customer_name))}, ${columns.text(rows.map((row) => row.customer_email))},
      ${columns.jsonb(rows.map((row) => row.metadata))}
    ) AS erased (id, customer_id, customer_name, customer_email, metadata)
    WHERE l.id = erased.id`
})

interface FieldValue {
  readonly license_id: string
  readonly definition_id: string
  readonly value: string
}

const eraseFieldValues = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  erasure: ErasureRow,
  licenses: ReadonlyArray<ErasedLicense>
) {
  const matchers = new Map(licenses.map(({ id, terms }) => [id, matcherOf([...erasure.terms, ...terms])]))
  const values = yield* sql<FieldValue>`
    SELECT license_id, definition_id, coalesce(string_value, enum_value) AS value FROM custom_field_values
    WHERE license_id = ANY(${columns.text(licenses.map(({ id }) => id))})
      AND coalesce(string_value, enum_value) IS NOT NULL`
  const erased = values.filter(({ license_id, value }) => matchers.get(license_id)?.(value) === true)
  if (erased.length === 0) return
  yield* sql`
    DELETE FROM custom_field_values v
    USING unnest(${columns.text(erased.map((one) => one.license_id))}, ${columns.text(erased.map((one) => one.definition_id))})
      AS erased (license_id, definition_id)
    WHERE v.license_id = erased.license_id AND v.definition_id = erased.definition_id`
})

/** Unlinking is the only accepted write of a revoked license. */
const unlinkedEvent = (erasure: ErasureRow, licenseId: string, now: number): EventRow => ({
  event_type: "license.transferred",
  resource_type: "license",
  resource_id: licenseId,
  actor_type: erasure.actor_type,
  actor_id: erasure.actor_id,
  actor_name: erasure.actor_name ?? undefined,
  ip_address: erasure.ip_address ?? undefined,
  created_at: now,
  metadata: { changes: { customer_id: { old: erasure.customer_id, new: null } }, request_id: erasure.request_id }
})

export const makeLicenseSteps = (sql: SqlClient.SqlClient, events: EventLog["Service"]) => {
  /** `formers` reads after the licenses are locked, so that it sees all earlier changes. */
  const eraseLicenses = Effect.fnUntraced(function* (
    erasure: ErasureRow,
    ids: ReadonlyArray<string>,
    formers: Effect.Effect<ReadonlyMap<string, Former>, SqlError.SqlError>
  ) {
    const rows = yield* lockedLicenses(sql, ids)
    const formerOf = yield* formers
    const licenses = rows.map((row) => erasedLicense(row, erasure, formerOf.get(row.id) ?? noFormer))
    yield* writeLicenses(sql, licenses)
    yield* eraseFieldValues(sql, erasure, licenses)
    yield* addRecords(sql, erasure, licenses)
    const now = yield* Clock.currentTimeMillis
    const unlinked = rows.filter((row) => row.customer_id === erasure.customer_id && row.status === "revoked")
    yield* events.appendRows(unlinked.map(({ id }) => unlinkedEvent(erasure, id, now)))
  })

  const licenses: Step = Effect.fnUntraced(function* (erasure) {
    const linked = yield* linkedRows(sql, "licenses", erasure)
    const last = linked.at(-1)
    if (last === undefined) return beginOf("transfers")
    yield* eraseLicenses(
      erasure,
      linked.map(({ id }) => id),
      Effect.succeed(new Map())
    )
    return placeAt("licenses", [last.at, last.id])
  })

  /** Licenses that the customer owned earlier. Licenses transferred from now on contain no erased value. */
  const transfers: Step = Effect.fnUntraced(function* (erasure) {
    const { customer_id } = erasure
    const { found, last, transferred } = yield* transfersAfter(sql, customer_id, positionOf<number>(erasure) ?? 0)
    const ids = [...new Set(transferred.map(({ id }) => id))]
    if (ids.length > 0) yield* eraseLicenses(erasure, ids, formersOf(sql, customer_id, transferred))
    return found < transfersMax ? beginOf("unlinked licenses") : placeAt("transfers", last)
  })

  /** Retention may have removed the transfer that cleared the link. */
  const unlinkedLicenses: Step = Effect.fnUntraced(function* (erasure) {
    const ids = yield* unlinkedAfter(sql, erasure, positionOf<string>(erasure) ?? "")
    const last = ids.at(-1)
    if (last === undefined) return beginOf("mails")
    yield* eraseLicenses(erasure, ids, Effect.succeed(new Map()))
    return placeAt("unlinked licenses", last)
  })

  const commerce =
    (table: "orders" | "subscriptions", next: Phase): Step =>
    (erasure) =>
      Effect.gen(function* () {
        const linked = yield* linkedRows(sql, table, erasure)
        const last = linked.at(-1)
        if (last === undefined) return beginOf(next)
        // Without this setting a trigger rejects changes of metadata in these rows.
        yield* sql`SELECT set_config('licensing.erasing', 'on', true)`
        yield* eraseMetadata(sql, table, linked, matcherOf(erasure.terms))
        yield* addRecords(
          sql,
          erasure,
          linked.map(({ id }) => ({ id, terms: [] }))
        )
        return placeAt(table, [last.at, last.id])
      })

  return {
    licenses,
    transfers,
    "unlinked licenses": unlinkedLicenses,
    orders: commerce("orders", "subscriptions"),
    subscriptions: commerce("subscriptions", "customer events")
  }
}

const formersOf = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  customerId: string,
  transferred: ReadonlyArray<Transfer>
) {
  const unlinked = yield* unchangedSince(
    sql,
    transferred.filter(({ new_owner }) => new_owner === null)
  )
  const formerOf = new Map<string, Former>()
  for (const { id, new_owner, old_owner, terms_after, terms_before } of transferred) {
    const terms = [
      ...(old_owner === customerId ? textsOf(terms_before) : []),
      ...(new_owner === customerId ? textsOf(terms_after) : [])
    ]
    formerOf.set(id, { terms: [...(formerOf.get(id)?.terms ?? []), ...terms], keepsCopies: unlinked.has(id) })
  }
  return formerOf
})

const eraseMetadata = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  table: "orders" | "subscriptions",
  linked: ReadonlyArray<{ readonly id: string }>,
  matches: Matches
) {
  const rows = yield* sql<{ readonly id: string; readonly metadata: Metadata }>`
    SELECT id, metadata FROM ${sql(table)} WHERE id = ANY(${columns.text(linked.map(({ id }) => id))})
    ORDER BY id FOR NO KEY UPDATE`
  const erased = rows.flatMap(({ id, metadata }) => {
    const after = withoutText(metadata, matches)
    return JSON.stringify(after) === JSON.stringify(metadata) ? [] : [{ id, metadata: after }]
  })
  if (erased.length === 0) return
  const now = yield* Clock.currentTimeMillis
  yield* sql`
    UPDATE ${sql(table)} AS t SET metadata = erased.metadata, updated_at = ${instant(now)}
    FROM unnest(${columns.text(erased.map(({ id }) => id))}, ${columns.jsonb(erased.map((row) => row.metadata))})
      AS erased (id, metadata)
    WHERE t.id = erased.id`
})
