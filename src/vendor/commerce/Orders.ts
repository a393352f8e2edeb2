/**
 * Orders: records of another system, stored as provided. What must stay true: an order has both ends of a period or none, and
 * its linked subscription belongs to the order's product.
 */
import { Clock, Context, Effect, Layer, Schema, Struct } from "effect"
import { SqlClient } from "effect/sql"
import { checkUnchanged } from "../../access/preconditions/RecordTag.ts"
import { type Refusal, refuse, refuseUnknownId } from "../../contract/api/Failure.ts"
import { Identifiers } from "../../contract/api/Identifier.ts"
import type { Page } from "../../contract/api/Paging.ts"
import { EventLog } from "../../ledger/events/EventLog.ts"
import { instant, json } from "../../platform/postgres/driver/Parameters.ts"
import { decodeRows, patched, transaction } from "../../platform/postgres/queries/Sql.ts"
import { Products } from "../products/Products.ts"
import { editOf, eventsOf, type FilteredBy, listOfProduct, recordsIn } from "../Records.ts"
import { Order, type OrderCreate, OrderUpdate, orderFilters, orderSorts } from "./Order.ts"
import { findByExternalId, refusingWrites } from "./Purchases.ts"

const decodeOrders = decodeRows(Order)
const decodeSubscriptions = decodeRows(Schema.Struct({ product_id: Schema.String }))

const notFound = (id: string) => refuseUnknownId("order", id)

type OrderFilter = FilteredBy<typeof orderFilters>

const editable = Struct.keys(OrderUpdate.fields)

type WriteRefusal = Refusal<
  "NOT_FOUND" | "CONFLICT" | "DUPLICATE_EXTERNAL_ID" | "LINKAGE_MISMATCH" | "VALIDATION_ERROR"
>

export class Orders extends Context.Service<
  Orders,
  {
    list(productId: string, filter: OrderFilter): Effect.Effect<Page<Order>, Refusal<"NOT_FOUND">>
    /** The newest orders with this id, of all external systems and all products of the token. */
    byExternalId(externalId: string, limit: number): Effect.Effect<ReadonlyArray<Order>>
    get(id: string): Effect.Effect<Order, Refusal<"NOT_FOUND">>
    create(productId: string, input: typeof OrderCreate.Type): Effect.Effect<Order, WriteRefusal>
    update(id: string, input: typeof OrderUpdate.Type): Effect.Effect<Order, WriteRefusal>
  }
>()("licensing/vendor/commerce/Orders") {
  static readonly layer = Layer.effect(
    Orders,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const ids = yield* Identifiers
      const events = yield* EventLog
      const products = yield* Products
      const columns = sql.literal(`id, product_id, ${editable.join(", ")}, created_at, updated_at`)
      const inTransaction = transaction(sql)
      const append = eventsOf(events, "order")
      const edit = editOf(events, "order", OrderUpdate)

      const source = { columns, table: "orders", sorts: orderSorts, decode: decodeOrders, notFound }
      const records = recordsIn(sql, source)
      const list = Effect.fn("Orders.list")(listOfProduct(sql, products.get, source, orderFilters))

      const byExternalId = Effect.fn("Orders.byExternalId")(findByExternalId(sql, "order", source))

      const get = Effect.fn("Orders.get")(records.get)

      /** A subscription is never deleted and never changes its product, so it needs no lock. */
      const checkSubscription = Effect.fnUntraced(function* ({ product_id, subscription_id }: Order) {
        if (subscription_id === undefined) return
        const [subscription] = yield* decodeSubscriptions(sql`
          SELECT product_id FROM subscriptions WHERE id = ${subscription_id}`)
        if (subscription === undefined) {
          return yield* refuseUnknownId("subscription", subscription_id, "subscription_id")
        }
        if (subscription.product_id !== product_id) {
          return yield* refuse(
            "LINKAGE_MISMATCH",
            "The subscription belongs to another product than the order: link one of the order's product.",
            "subscription_id"
          )
        }
      })

      const create = Effect.fn("Orders.create")(function* (productId: string, input: typeof OrderCreate.Type) {
        const fault = periodFault(input)
        // An unknown product in the path is reported before faults in the body.
        if (fault !== undefined) return yield* Effect.andThen(products.get(productId), fault)
        const now = yield* Clock.currentTimeMillis
        const id = yield* ids.make("order")
        const order: Order = { id, product_id: productId, metadata: {}, ...input, created_at: now, updated_at: now }
        yield* Effect.tapError(checkSubscription(order), () => products.get(productId))
        const row = { ...rowOf(order), id, product_id: productId, created_at: instant(now) }
        yield* sql`INSERT INTO orders ${sql.insert(row)}`.pipe(refusingWrites("order", order))
        const { external_system, external_id, status } = order
        yield* append("order.created", id, { product_id: productId, external_system, external_id, status })
        return order
      }, inTransaction)

      const update = Effect.fn("Orders.update")(function* (id: string, input: typeof OrderUpdate.Type) {
        const before = yield* records.locked(id)
        yield* checkUnchanged(OrderUpdate, before)
        const fault = periodFault(input)
        if (fault !== undefined) return yield* fault
        const now = yield* Clock.currentTimeMillis
        const order: Order = { ...patched<Order>(before, input), updated_at: now }
        return yield* edit(before, order, function* () {
          yield* checkSubscription(order)
          yield* sql`UPDATE orders SET ${sql.update(rowOf(order))} WHERE id = ${id}`.pipe(
            refusingWrites("order", order)
          )
        })
      }, inTransaction)

      return Orders.of({ list, byExternalId, get, create, update })
    })
  )
}

/** A request gives both ends of a period, or none (docs/API.md, "Orders and subscriptions"). */
const periodFault = ({ period_start, period_end }: typeof OrderUpdate.Type) => {
  if (changeOf(period_start) === changeOf(period_end)) return undefined
  const isEndMissing = period_end === undefined || (period_end === null && period_start !== undefined)
  const missing = isEndMissing ? "period_end" : "period_start"
  return refuse("VALIDATION_ERROR", "Give period_start and period_end together, or leave both out.", missing)
}

const changeOf = (end: number | null | undefined) => (end === undefined ? "absent" : end === null ? "cleared" : "set")

const rowOf = (order: Order) => ({
  ...Object.fromEntries(editable.map((field) => [field, order[field] ?? null])),
  period_start: instant(order.period_start ?? null),
  period_end: instant(order.period_end ?? null),
  metadata: json(order.metadata),
  updated_at: instant(order.updated_at)
})
