import { Clock, Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { CurrentProducts } from "../../access/CurrentActor.ts"
import { checkUnchanged } from "../../access/preconditions/RecordTag.ts"
import { ownedBy } from "../../access/productLimits/OwnedRows.ts"
import { type Refusal, refuse, refuseErasing, refuseUnknownId } from "../../contract/api/Failure.ts"
import { Identifiers } from "../../contract/api/Identifier.ts"
import type { MetadataFilter } from "../../contract/api/Metadata.ts"
import type { ListRequest, Page } from "../../contract/api/Paging.ts"
import { EventLog } from "../../ledger/events/EventLog.ts"
import { columns as arrays, instant, json } from "../../platform/postgres/driver/Parameters.ts"
import { metadataMatches } from "../../platform/postgres/queries/MetadataFilter.ts"
import { readPage } from "../../platform/postgres/queries/Pages.ts"
import {
  constraints,
  decodeRows,
  equals,
  patched,
  refuseIfReferenced,
  transaction
} from "../../platform/postgres/queries/Sql.ts"
import { editOf, eventsOf, recordsIn } from "../Records.ts"
import { Customer, type CustomerCreate, CustomerUpdate, customerSorts } from "./Customer.ts"
import { ownCustomers } from "./OwnCustomers.ts"

const decodeCustomers = decodeRows(Customer)

const notFound = (id: string) => refuseUnknownId("customer", id)
const duplicateCode = (code: string) =>
  constraints({
    customers_code_key: () =>
      refuse("DUPLICATE_CODE", `Another customer has the code ${code}: choose a different one.`, "code")
  })
const addressOfOthers = refuse(
  "TOKEN_SCOPE_DENIED",
  "Keys of the customer's licenses of other products are mailed to this email: use a token without product_ids, or set customer_email on your licenses.",
  "product_ids"
)

interface CustomerFilter extends ListRequest, MetadataFilter {
  readonly code?: string
  readonly email?: string
}

export class Customers extends Context.Service<
  Customers,
  {
    list(filter: CustomerFilter): Effect.Effect<Page<Customer>>
    /** Finds customers by a part of their name or email, or by their whole code. */
    search(text: string, limit: number): Effect.Effect<ReadonlyArray<Customer>>
    /** The customers with these ids that the request's token reaches, in any order. */
    many(ids: ReadonlyArray<string>): Effect.Effect<ReadonlyArray<Customer>>
    get(id: string): Effect.Effect<Customer, Refusal<"NOT_FOUND">>
    create(input: typeof CustomerCreate.Type): Effect.Effect<Customer, Refusal<"DUPLICATE_CODE">>
    update(
      id: string,
      input: typeof CustomerUpdate.Type
    ): Effect.Effect<Customer, Refusal<"NOT_FOUND" | "DUPLICATE_CODE" | "CONFLICT" | "TOKEN_SCOPE_DENIED">>
    delete(id: string): Effect.Effect<void, Refusal<"NOT_FOUND" | "RESOURCE_IN_USE" | "CONFLICT">>
  }
>()("licensing/vendor/customers/Customers") {
  static readonly layer = Layer.effect(
    Customers,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const ids = yield* Identifiers
      const events = yield* EventLog
      const columns = sql.literal("id, name, code, metadata, created_at, updated_at, email, erased_at")
      const inTransaction = transaction(sql)
      const append = eventsOf(events, "customer")
      const edit = editOf(events, "customer", CustomerUpdate)

      const list = Effect.fn("Customers.list")(function* (filter: CustomerFilter) {
        const { code, email } = filter
        const hasEmail = email === undefined ? sql`TRUE` : sql`lower(email) = lower(${email})`
        const matches = metadataMatches(sql, "metadata", filter)
        return yield* readPage(sql, filter, {
          columns,
          table: "customers",
          where: sql`${equals(sql, { code })} AND ${hasEmail}`,
          match: matches && { matches, indexed: matches },
          part: yield* ownCustomers(sql),
          sorts: customerSorts,
          decode: decodeCustomers
        })
      }, Effect.orDie)

      const search = Effect.fn("Customers.search")(function* (text: string, limit: number) {
        const match = {
          matches: sql`strpos(search_text(name, email), lower(${text})) > 0`,
          indexed: sql`search_grams(search_text(name, email)) @@ search_query(lower(${text}))`
        }
        const part = yield* ownCustomers(sql)
        const source = { columns, table: "customers", part, sorts: customerSorts, decode: decodeCustomers }
        const named = yield* readPage(sql, { limit }, { ...source, where: sql`TRUE`, match })
        const coded = yield* readPage(sql, { limit: 1 }, { ...source, where: equals(sql, { code: text }) })
        const found = new Map([...coded.items, ...named.items].map((customer) => [customer.id, customer]))
        return [...found.values()].slice(0, limit)
      }, Effect.orDie)

      const many = Effect.fn("Customers.many")(function* (ids: ReadonlyArray<string>) {
        return yield* decodeCustomers(sql`
          SELECT ${columns} FROM customers
          WHERE id = ANY(${arrays.text(ids)}) AND ${ownedBy(sql, "customers", "customers", yield* CurrentProducts)}`)
      }, Effect.orDie)

      const records = recordsIn(sql, { columns, table: "customers", decode: decodeCustomers, notFound })
      const get = Effect.fn("Customers.get")(records.get)

      const locked = Effect.fnUntraced(function* (id: string) {
        const customer = yield* records.locked(id)
        const [erasure] = yield* sql`SELECT FROM erasures WHERE customer_id = ${id}`
        return erasure === undefined ? customer : yield* refuseErasing("customer_id")
      })

      const create = Effect.fn("Customers.create")(function* (input: typeof CustomerCreate.Type) {
        const now = yield* Clock.currentTimeMillis
        const id = yield* ids.make("customer")
        const customer: Customer = { id, metadata: {}, ...input, created_at: now, updated_at: now }
        yield* sql`
          INSERT INTO customers (id, name, code, email, metadata, created_at, updated_at)
          VALUES (${id}, ${customer.name}, ${customer.code}, ${customer.email ?? null}, ${json(customer.metadata)},
            ${instant(now)}, ${instant(now)})`.pipe(duplicateCode(customer.code))
        yield* append("customer.created", id, { name: customer.name, code: customer.code })
        return customer
      }, inTransaction)

      /** Who has the email of a customer gets the keys of its licenses, by mail and at the customer's page. */
      const checkAddress = Effect.fnUntraced(function* (id: string) {
        const products = yield* CurrentProducts
        if (products === undefined) return
        const [other] = yield* sql`
          SELECT FROM licenses WHERE customer_id = ${id} AND customer_email IS NULL
            AND product_id <> ALL(${arrays.text(products)}::text[]) LIMIT 1`
        if (other !== undefined) return yield* addressOfOthers
      })

      const update = Effect.fn("Customers.update")(function* (id: string, input: typeof CustomerUpdate.Type) {
        const before = yield* locked(id)
        yield* checkUnchanged(CustomerUpdate, before)
        const now = yield* Clock.currentTimeMillis
        const customer: Customer = { ...patched<Customer>(before, input), updated_at: now }
        if (customer.email !== before.email) yield* checkAddress(id)
        return yield* edit(before, customer, function* () {
          yield* sql`
            UPDATE customers SET name = ${customer.name}, code = ${customer.code}, email = ${customer.email ?? null},
              metadata = ${json(customer.metadata)}, updated_at = ${instant(now)}
            WHERE id = ${id}`.pipe(duplicateCode(customer.code))
        })
      }, inTransaction)

      const remove = Effect.fn("Customers.delete")(function* (id: string) {
        const customer = yield* locked(id)
        yield* sql`DELETE FROM customers WHERE id = ${id}`.pipe(
          refuseIfReferenced(() =>
            refuse(
              "RESOURCE_IN_USE",
              "Licenses, orders or subscriptions link to the customer: clear those links first.",
              "id"
            )
          )
        )
        yield* append("customer.deleted", id, { name: customer.name, code: customer.code })
      }, inTransaction)

      return Customers.of({ list, search, many, get, create, update, delete: remove })
    })
  )
}
