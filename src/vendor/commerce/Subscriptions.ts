/**
 * Subscriptions: records of another system, stored as provided. What must stay true after every update: a period ends after it
 * starts, only a subscription with the status canceled has `canceled_at`, and older facts do not overwrite newer ones.
 */
import { Clock, Context, Effect, Layer, Struct } from "effect"
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
import { findByExternalId, refusingWrites } from "./Purchases.ts"
import { movePeriods } from "./QuotaPeriods.ts"
import {
  Subscription,
  type SubscriptionCreate,
  SubscriptionUpdate,
  subscriptionFilters,
  subscriptionSorts
} from "./Subscription.ts"

const decodeSubscriptions = decodeRows(Subscription)

const notFound = (id: string) => refuseUnknownId("subscription", id)

type SubscriptionFilter = FilteredBy<typeof subscriptionFilters>

const editable = Struct.keys(SubscriptionUpdate.fields)

type WriteRefusal = Refusal<"NOT_FOUND" | "CONFLICT" | "DUPLICATE_EXTERNAL_ID" | "VALIDATION_ERROR">

export class Subscriptions extends Context.Service<
  Subscriptions,
  {
    list(productId: string, filter: SubscriptionFilter): Effect.Effect<Page<Subscription>, Refusal<"NOT_FOUND">>
    /** The newest subscriptions with this id, of all external systems and all products of the token. */
    byExternalId(externalId: string, limit: number): Effect.Effect<ReadonlyArray<Subscription>>
    get(id: string): Effect.Effect<Subscription, Refusal<"NOT_FOUND">>
    create(productId: string, input: typeof SubscriptionCreate.Type): Effect.Effect<Subscription, WriteRefusal>
    update(id: string, input: typeof SubscriptionUpdate.Type): Effect.Effect<Subscription, WriteRefusal>
  }
>()("licensing/vendor/commerce/Subscriptions") {
  static readonly layer = Layer.effect(
    Subscriptions,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const ids = yield* Identifiers
      const events = yield* EventLog
      const products = yield* Products
      const columns = sql.literal(`id, product_id, ${editable.join(", ")}, created_at, updated_at`)
      const inTransaction = transaction(sql)
      const append = eventsOf(events, "subscription")
      const edit = editOf(events, "subscription", SubscriptionUpdate)

      const source = {
        columns,
        table: "subscriptions",
        sorts: subscriptionSorts,
        decode: decodeSubscriptions,
        notFound
      }
      const records = recordsIn(sql, source)
      const list = Effect.fn("Subscriptions.list")(listOfProduct(sql, products.get, source, subscriptionFilters))

      const byExternalId = Effect.fn("Subscriptions.byExternalId")(findByExternalId(sql, "subscription", source))

      const get = Effect.fn("Subscriptions.get")(records.get)

      const create = Effect.fn("Subscriptions.create")(function* (
        productId: string,
        input: typeof SubscriptionCreate.Type
      ) {
        const now = yield* Clock.currentTimeMillis
        const id = yield* ids.make("subscription")
        const subscription: Subscription = {
          id,
          product_id: productId,
          cancel_at_period_end: false,
          metadata: {},
          ...(input.status === "canceled" ? { canceled_at: now } : undefined),
          ...input,
          created_at: now,
          updated_at: now
        }
        const fault = faultOf(subscription)
        // An unknown product in the path is reported before faults in the body.
        if (fault !== undefined) return yield* Effect.andThen(products.get(productId), fault)
        const row = { ...rowOf(subscription), id, product_id: productId, created_at: instant(now) }
        yield* sql`INSERT INTO subscriptions ${sql.insert(row)}`.pipe(refusingWrites("subscription", subscription))
        const { external_system, external_id, status } = subscription
        yield* append("subscription.created", id, { product_id: productId, external_system, external_id, status })
        return subscription
      }, inTransaction)

      const update = Effect.fn("Subscriptions.update")(function* (id: string, input: typeof SubscriptionUpdate.Type) {
        const before = yield* records.locked(id)
        yield* checkUnchanged(SubscriptionUpdate, before)
        if (isOlder(input, before)) return before
        const now = yield* Clock.currentTimeMillis
        const canceled_at = canceledAt(before, input, now)
        const subscription: Subscription = {
          ...patched<Subscription>(before, { ...input, canceled_at }),
          updated_at: now
        }
        const fault = faultOf(subscription)
        if (fault !== undefined) return yield* fault
        return yield* edit(before, subscription, function* () {
          yield* sql`UPDATE subscriptions SET ${sql.update(rowOf(subscription))} WHERE id = ${id}`.pipe(
            refusingWrites("subscription", subscription)
          )
          if (hasMoved(before, subscription)) yield* movePeriods(sql, subscription, now)
        })
      }, inTransaction)

      return Subscriptions.of({ list, byExternalId, get, create, update })
    })
  )
}

const hasMoved = (before: Subscription, after: Subscription): boolean =>
  before.current_period_start !== after.current_period_start || before.current_period_end !== after.current_period_end

const isOlder = ({ observed_at }: typeof SubscriptionUpdate.Type, before: Subscription): boolean =>
  observed_at != null && before.observed_at !== undefined && observed_at < before.observed_at

/** `canceled_at` after an update that does not name it: a change to canceled stores now, a change from canceled clears it. */
const canceledAt = (before: Subscription, input: typeof SubscriptionUpdate.Type, now: number): number | null => {
  const status = input.status ?? before.status
  if (status !== before.status) return input.canceled_at ?? (status === "canceled" ? now : null)
  return input.canceled_at === undefined ? (before.canceled_at ?? null) : input.canceled_at
}

const faultOf = ({ status, current_period_start, current_period_end, canceled_at }: Subscription) => {
  if (current_period_end <= current_period_start) {
    return refuse(
      "VALIDATION_ERROR",
      "The period is empty: choose a current_period_end after current_period_start.",
      "current_period_end"
    )
  }
  return canceled_at !== undefined && status !== "canceled"
    ? refuse(
        "VALIDATION_ERROR",
        "Only a canceled subscription has canceled_at: leave it out, or give the status canceled.",
        "canceled_at"
      )
    : undefined
}

const rowOf = (subscription: Subscription) => ({
  ...Object.fromEntries(editable.map((field) => [field, subscription[field] ?? null])),
  current_period_start: instant(subscription.current_period_start),
  current_period_end: instant(subscription.current_period_end),
  canceled_at: instant(subscription.canceled_at ?? null),
  observed_at: instant(subscription.observed_at ?? null),
  metadata: json(subscription.metadata),
  updated_at: instant(subscription.updated_at)
})
