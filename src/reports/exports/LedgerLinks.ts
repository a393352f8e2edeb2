/**
 * What the licenses and features of the ledger's rows are linked to, looked up once for all rows of an export and kept within a
 * bound. A license that is transferred while its export is being made, and a feature that is given another code or deleted, is
 * shown with what it had when the export was asked for, in every row, also by whoever goes on after a node has died: what
 * has changed since is read from the events.
 */
import { Effect } from "effect"
import type { SqlClient } from "effect/sql"
import { columns } from "../../postgres/Parameters.ts"
import { type Bytes, IdTable } from "./IdTable.ts"
import { LedgerRecords, place } from "./LedgerRecords.ts"
import { isPlain } from "./PlainText.ts"

/** Entries that are kept: some 20 MB of licenses. Beyond it, they are begun anew. */
const licensesMax = 131_072
const featuresMax = 16_384

/** An entry's mark: what hangs on the id is known, and needs no escape in JSON or CSV. */
export const known = 1
export const plain = 2

interface LicenseRow {
  readonly id: string
  readonly product_id: string
  readonly customer_id: string | null
  readonly order_id: string | null
  readonly subscription_id: string | null
}

interface Change {
  readonly id: string
  readonly before: string | null
}

/** Entries of each kind at most; never less than a piece has rows. */
export interface Bounds {
  readonly licensesMax: number
  readonly featuresMax: number
}

export class LedgerLinks {
  /** Of a license: id, product, customer, order, subscription. */
  readonly licenses: IdTable
  /** Of a feature: id, code. */
  readonly features: IdTable
  /** What was changed since the export was asked for, as it was before: customers of licenses, codes of features. */
  readonly #before = new Map<string, string | null>()
  #seen: number | undefined

  /** `since`: the event by which the export was asked for; undefined where all is read as of one moment. */
  constructor(since: number | undefined, bounds: Bounds = { licensesMax, featuresMax }) {
    this.#seen = since
    this.licenses = new IdTable(bounds.licensesMax)
    this.features = new IdTable(bounds.featuresMax)
  }

  /** Ids of licenses and features that are no longer what they were. */
  get changed(): ReadonlyArray<string> {
    return Array.from(this.#before.keys())
  }

  /** Reads what has changed, in the snapshot that rows or links are read in. */
  readonly follow = Effect.fnUntraced(function* (this: LedgerLinks, sql: SqlClient.SqlClient) {
    const seen = this.#seen
    if (seen === undefined) return
    const [counter] = yield* sql<{ readonly last: number }>`SELECT last FROM event_sequence`
    if (counter === undefined || counter.last <= seen) return
    const changes = yield* sql<Change>`
      SELECT resource_id AS id, CASE event_type WHEN 'license.transferred' THEN metadata #>> '{changes,customer_id,old}'
        WHEN 'feature.updated' THEN metadata #>> '{changes,code,old}' ELSE metadata ->> 'code' END AS before
      FROM events WHERE sequence > ${seen} AND sequence <= ${counter.last} AND (event_type = 'feature.deleted'
        OR event_type = 'license.transferred' AND metadata -> 'changes' ? 'customer_id'
        OR event_type = 'feature.updated' AND metadata -> 'changes' ? 'code')
      ORDER BY sequence`
    for (const { id, before } of changes) if (!this.#before.has(id)) this.#before.set(id, before)
    this.#seen = Math.max(this.#seen ?? 0, counter.last)
  })

  /**
   * Looks up what these rows hang on and is not known yet, all of it as of one moment. What is known may be forgotten for it, but
   * nothing of these rows.
   */
  readonly fill = Effect.fnUntraced(function* (this: LedgerLinks, sql: SqlClient.SqlClient, records: Uint8Array) {
    const missing = this.#missing(records)
    if (missing.licenses.length + missing.features.length === 0) return undefined
    yield* this.follow(sql)
    if (!this.licenses.hasRoom(missing.licenses.length) || !this.features.hasRoom(missing.features.length)) {
      this.licenses.clear()
      this.features.clear()
      return yield* this.#load(sql, this.#missing(records))
    }
    return yield* this.#load(sql, missing)
  })

  readonly #load = Effect.fnUntraced(function* (this: LedgerLinks, sql: SqlClient.SqlClient, missing: Missing) {
    if (missing.licenses.length > 0) {
      const rows = yield* sql<LicenseRow>`
        SELECT id, product_id, customer_id, order_id, subscription_id FROM licenses
        WHERE id = ANY(${columns.text(missing.licenses)})`
      const found = new Map(rows.map((row) => [row.id, row]))
      for (const id of missing.licenses) {
        const row = found.get(id)
        const { product_id, order_id, subscription_id } = row ?? none
        const customer_id = this.#asAsked(id, row?.customer_id ?? null)
        add(this.licenses, row !== undefined, [id, product_id, customer_id, order_id, subscription_id])
      }
    }
    if (missing.features.length > 0) {
      const rows = yield* sql<{ readonly id: string; readonly code: string }>`
        SELECT id, code FROM features WHERE id = ANY(${columns.text(missing.features)})`
      const found = new Map(rows.map(({ code, id }) => [id, code]))
      for (const id of missing.features) add(this.features, true, [id, this.#asAsked(id, found.get(id) ?? null)])
    }
  })

  #asAsked(id: string, now: string | null): string | null {
    const before = this.#before.get(id)
    return before === undefined ? now : before
  }

  #missing(records: Uint8Array): Missing {
    const [licenses, features] = [new Set<string>(), new Set<string>()]
    const rows = new LedgerRecords(records)
    const unknown = (table: IdTable, field: number) =>
      table.find(rows.bytes, rows.start(field), rows.size(field)) < 0 ? rows.text(field) : null
    while (rows.next()) {
      const license = unknown(this.licenses, place.license_id)
      if (license !== null) licenses.add(license)
      const feature = unknown(this.features, place.feature_id)
      if (feature !== null) features.add(feature)
    }
    return { licenses: Array.from(licenses), features: Array.from(features) }
  }
}

interface Missing {
  readonly licenses: ReadonlyArray<string>
  readonly features: ReadonlyArray<string>
}

const none = { product_id: null, order_id: null, subscription_id: null }

const add = (table: IdTable, isKnown: boolean, texts: ReadonlyArray<string | null>) => {
  const bytes = texts.map((text): Bytes => (text === null ? undefined : Buffer.from(text)))
  const allPlain = bytes.every((text) => text === undefined || isPlain(text, 0, text.length))
  table.add((isKnown ? known : 0) | (allPlain ? plain : 0), bytes)
}
