/**
 * The search over all records. Each kind is found by indexes of its own, at the same time. License keys and fingerprints are
 * compared by their digests. A generated license key is compared with nothing else; any other text is also a parameter of the other
 * searches.
 */
import { Context, Effect, Layer, Option } from "effect"
import { SqlClient, type Statement } from "effect/sql"
import { CurrentProducts } from "../../access/CurrentActor.ts"
import { ownedBy } from "../../access/productLimits/OwnedRows.ts"
import { findJob } from "../../licensing/bulk/JobRows.ts"
import { AllDevices } from "../../licensing/devices/AllDevices.ts"
import { LicenseList } from "../../licensing/management/LicenseList.ts"
import * as LicenseKey from "../../licensing/model/LicenseKey.ts"
import { columns as arrays, bytes } from "../../platform/postgres/driver/Parameters.ts"
import { sha256 } from "../../platform/signing/Digest.ts"
import { Orders } from "../../vendor/commerce/Orders.ts"
import { Subscriptions } from "../../vendor/commerce/Subscriptions.ts"
import { Customers } from "../../vendor/customers/Customers.ts"
import type { SearchResults } from "./SearchResults.ts"

/** Records of all kinds together. */
const foundMax = 20

export class Searches extends Context.Service<
  Searches,
  {
    search(text: string): Effect.Effect<SearchResults>
  }
>()("licensing/insight/search/Searches") {
  static readonly layer = Layer.effect(
    Searches,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const list = yield* LicenseList
      const customers = yield* Customers
      const all = yield* AllDevices
      const orders = yield* Orders
      const subscriptions = yield* Subscriptions

      /** The condition for licenses that the token of the request reaches. */
      const areOwn = Effect.map(CurrentProducts, (products) => ownedBy(sql, "licenses", "licenses", products))

      const idsOf = Effect.fnUntraced(function* (condition: Statement.Fragment) {
        const rows = yield* sql<{ readonly id: string }>`
          SELECT id FROM licenses WHERE ${condition} AND ${yield* areOwn}
          ORDER BY created_at DESC, id DESC LIMIT ${foundMax}`
        return rows.map(({ id }) => id)
      })

      /** The newest licenses of some records, by the column that names them. */
      const idsOfRecords = Effect.fnUntraced(function* (
        column: string,
        records: ReadonlyArray<{ readonly id: string }>
      ) {
        if (records.length === 0) return []
        const rows = yield* sql<{ readonly id: string }>`
          SELECT found.id FROM unnest(${arrays.text(records.map(({ id }) => id))}::text[]) AS record (id), LATERAL (
            SELECT id, created_at FROM licenses WHERE ${sql(column)} = record.id AND ${yield* areOwn}
            ORDER BY created_at DESC, id DESC LIMIT ${foundMax}
          ) AS found ORDER BY found.created_at DESC, found.id DESC LIMIT ${foundMax}`
        return rows.map(({ id }) => id)
      })

      /** Generated keys have capitals only; the case of a vendor key matters. */
      const idsOfLast4 = (text: string) =>
        Effect.map(
          Effect.forEach(
            [...new Set([text, text.toUpperCase()])],
            (last4) => idsOf(sql`license_key_last4 = ${last4}`),
            {
              concurrency: 2
            }
          ),
          (found) => found.flat()
        )

      const devicesOf = Effect.fnUntraced(function* (text: string) {
        const found = yield* Effect.all(
          [all.list({ fingerprint: text, limit: foundMax }), all.list({ hostname: text, limit: foundMax })],
          { concurrency: 2 }
        )
        return distinct(found.flatMap(({ items }) => items))
      })

      /** The bulk job with this id, if the token of the request reaches it. */
      const bulkJobOf = Effect.fnUntraced(function* (id: string) {
        if (!id.startsWith("bulk_")) return []
        const products = yield* CurrentProducts
        const [own] =
          yield* sql`SELECT id FROM bulk_jobs WHERE id = ${id} AND ${ownedBy(sql, "bulk_jobs", "bulk_jobs", products)}`
        const job = own === undefined ? undefined : yield* findJob(sql, id)
        return job === undefined ? [] : [job]
      })

      const customersOf = Effect.fnUntraced(function* (text: string) {
        const named = yield* customers.search(text, foundMax)
        return text.startsWith("cust_") ? distinct([...(yield* customers.many([text])), ...named]) : named
      })

      const byText = Effect.fnUntraced(function* (text: string, keyed: ReadonlyArray<string>) {
        // Of a short vendor key fewer are stored.
        const isLast4 = /^[\x21-\x7e]{2,4}$/.test(text)
        const found = yield* Effect.all(
          {
            byId: text.startsWith("lic_") ? idsOf(sql`id = ${text}`) : Effect.succeed([]),
            last4: isLast4 ? idsOfLast4(text) : Effect.succeed([]),
            named: list.page({ q: text, limit: foundMax }),
            customers: customersOf(text),
            devices: devicesOf(text),
            orders: orders.byExternalId(text, foundMax),
            subscriptions: subscriptions.byExternalId(text, foundMax),
            bulk_jobs: bulkJobOf(text)
          },
          { concurrency: "unbounded" }
        )
        const linked = yield* Effect.all(
          [
            idsOfRecords("customer_id", found.customers),
            idsOfRecords("order_id", found.orders),
            idsOfRecords("subscription_id", found.subscriptions)
          ],
          { concurrency: "unbounded" }
        )
        const { byId, last4, named, ...others } = found
        const ids = [
          ...keyed,
          ...byId,
          ...last4,
          ...found.devices.map(({ license_id }) => license_id),
          ...named.items.map(({ id }) => id),
          ...linked.flat()
        ]
        return shared({ licenses: yield* list.many([...new Set(ids)].slice(0, foundMax)), ...others })
      })

      const search = Effect.fn("Searches.search")(function* (text: string) {
        const plain = text.trim()
        const key = LicenseKey.parse(plain)
        const hash = Option.isSome(key) ? LicenseKey.hash(key.value) : sha256(plain)
        const keyed = yield* idsOf(sql`key_hash = ${bytes(hash)}`)
        if (Option.isNone(key)) return yield* byText(plain, keyed)
        return { ...nothing, licenses: yield* list.many(keyed) }
      }, Effect.orDie)

      return Searches.of({ search })
    })
  )
}

const nothing: SearchResults = {
  ...{ licenses: [], customers: [], devices: [], orders: [], subscriptions: [], bulk_jobs: [] }
}

/** The results within the limit: each kind gets the same number of places, and those that it does not need go to the others. */
const shared = (found: SearchResults): SearchResults => {
  let left = foundMax
  const kinds = Object.entries(found).toSorted(([, one], [, other]) => one.length - other.length)
  const kept = kinds.map(([kind, records], index) => {
    const places = Math.min(records.length, Math.ceil(left / (kinds.length - index)))
    left -= places
    return [kind, records.slice(0, places)]
  })
  return { ...found, ...Object.fromEntries(kept) }
}

const distinct = <A extends { readonly id: string }>(records: ReadonlyArray<A>): ReadonlyArray<A> =>
  [...new Map(records.map((record) => [record.id, record])).values()].slice(0, foundMax)
