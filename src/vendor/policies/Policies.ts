/**
 * Policies. Every edit raises `revision`, which license commits compare. An edit of a field in the signed payloads also raises
 * `entitlement_counter`, the policy's part of its licenses' entitlement_version. So an edit costs the same for one license as
 * for a million.
 */
import { Clock, Context, Effect, Layer, Struct } from "effect"
import { SqlClient } from "effect/sql"
import { checkUnchanged } from "../../access/preconditions/RecordTag.ts"
import { type Refusal, refuse, refuseUnknownId } from "../../contract/api/Failure.ts"
import { Identifiers } from "../../contract/api/Identifier.ts"
import type { Page } from "../../contract/api/Paging.ts"
import { EventLog } from "../../ledger/events/EventLog.ts"
import { columns as arrays, instant, int8, json } from "../../platform/postgres/driver/Parameters.ts"
import { nextRevision } from "../../platform/postgres/queries/Revision.ts"
import {
  constraints,
  decodeRows,
  patched,
  refuseIfReferenced,
  transaction
} from "../../platform/postgres/queries/Sql.ts"
import { Products, productNotFound } from "../products/Products.ts"
import { editOf, eventsOf, type FilteredBy, listOfProduct, recordsIn } from "../Records.ts"
import {
  heartbeatDueAt,
  Policy,
  type PolicyCreate,
  PolicyUpdate,
  payloadFields,
  policyDefaults,
  policyFilters,
  policySorts
} from "./Policy.ts"

const decodePolicies = decodeRows(Policy)

const notFound = (id: string) => refuseUnknownId("policy", id)
const duplicateCode = (code: string) =>
  refuse("DUPLICATE_CODE", `Another policy of the product has the code ${code}: choose a different one.`, "code")

type PolicyFilter = FilteredBy<typeof policyFilters>

const editable = Struct.keys(PolicyUpdate.fields)

export class Policies extends Context.Service<
  Policies,
  {
    list(productId: string, filter: PolicyFilter): Effect.Effect<Page<Policy>, Refusal<"NOT_FOUND">>
    /** The policies with these ids, in any order. */
    many(ids: ReadonlyArray<string>): Effect.Effect<ReadonlyArray<Policy>>
    get(id: string): Effect.Effect<Policy, Refusal<"NOT_FOUND">>
    create(
      productId: string,
      input: typeof PolicyCreate.Type
    ): Effect.Effect<Policy, Refusal<"NOT_FOUND" | "DUPLICATE_CODE" | "VALIDATION_ERROR">>
    update(
      id: string,
      input: typeof PolicyUpdate.Type
    ): Effect.Effect<
      Policy,
      Refusal<"NOT_FOUND" | "DUPLICATE_CODE" | "RESOURCE_IN_USE" | "VALIDATION_ERROR" | "CONFLICT">
    >
    delete(id: string): Effect.Effect<void, Refusal<"NOT_FOUND" | "RESOURCE_IN_USE">>
  }
>()("licensing/vendor/policies/Policies") {
  static readonly layer = Layer.effect(
    Policies,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const ids = yield* Identifiers
      const events = yield* EventLog
      const products = yield* Products
      const columns = sql.literal(`id, product_id, ${editable.join(", ")}, created_at, updated_at`)
      const inTransaction = transaction(sql)
      const append = eventsOf(events, "policy")
      const edit = editOf(events, "policy", PolicyUpdate)

      const source = { columns, table: "policies", sorts: policySorts, decode: decodePolicies, notFound }
      const records = recordsIn(sql, source)
      const list = Effect.fn("Policies.list")(
        listOfProduct(sql, products.get, source, policyFilters, ({ feature_id }) => ({
          feature_id:
            feature_id === undefined
              ? undefined
              : sql`id IN (SELECT policy_id FROM policy_features WHERE feature_id = ${feature_id})`
        }))
      )

      const many = Effect.fn("Policies.many")(function* (ids: ReadonlyArray<string>) {
        return yield* decodePolicies(sql`SELECT ${columns} FROM policies WHERE id = ANY(${arrays.text(ids)})`)
      }, Effect.orDie)

      const get = Effect.fn("Policies.get")(records.get)

      const create = Effect.fn("Policies.create")(function* (productId: string, input: typeof PolicyCreate.Type) {
        const now = yield* Clock.currentTimeMillis
        const id = yield* ids.make("policy")
        const policy: Policy = {
          id,
          product_id: productId,
          ...policyDefaults,
          metadata: {},
          ...input,
          created_at: now,
          updated_at: now
        }
        // An unknown product in the path is reported before faults in the body.
        yield* Effect.tapError(refuseUnfit(policy), () => products.get(productId))
        yield* sql`INSERT INTO policies ${sql.insert({ ...rowOf(policy), id, product_id: productId, created_at: instant(now) })}`.pipe(
          constraints({
            policies_code_key: () => duplicateCode(policy.code),
            policies_product_id_fkey: () => productNotFound(productId)
          })
        )
        yield* append("policy.created", id, {
          product_id: productId,
          name: policy.name,
          code: policy.code,
          license_type: policy.license_type
        })
        return policy
      }, inTransaction)

      // The policy's lock serializes this with the creation of licenses.
      const refuseWhileUsed = Effect.fnUntraced(function* (id: string) {
        const used = yield* sql`SELECT 1 FROM licenses WHERE policy_id = ${id} LIMIT 1`
        if (used.length === 0) return
        return yield* refuse(
          "RESOURCE_IN_USE",
          "The type cannot change while licenses use the policy: create another policy.",
          "license_type"
        )
      })

      const update = Effect.fn("Policies.update")(function* (id: string, input: typeof PolicyUpdate.Type) {
        const before = yield* records.locked(id)
        yield* checkUnchanged(PolicyUpdate, before)
        const now = yield* Clock.currentTimeMillis
        const policy: Policy = { ...patched<Policy>(before, input), updated_at: now }
        return yield* edit(before, policy, function* (changes) {
          if ("license_type" in changes) yield* refuseWhileUsed(id)
          yield* refuseUnfit(policy)
          const payloadChanges = payloadFields.some((field) => field in changes) ? 1 : 0
          yield* sql`
            UPDATE policies SET ${sql.update(rowOf(policy))},
              revision = ${int8(yield* nextRevision)}, entitlement_counter = entitlement_counter + ${payloadChanges},
              not_due_before = greatest(not_due_before, ${instant(heartbeatsFrom(before, policy, now))})
            WHERE id = ${id}`.pipe(constraints({ policies_code_key: () => duplicateCode(policy.code) }))
        })
      }, inTransaction)

      const remove = Effect.fn("Policies.delete")(function* (id: string) {
        const policy = yield* records.locked(id)
        yield* sql`DELETE FROM policies WHERE id = ${id}`.pipe(
          refuseIfReferenced(() =>
            refuse(
              "RESOURCE_IN_USE",
              "Licenses use the policy, so it cannot be deleted: keep it, and create licenses with another one.",
              "id"
            )
          )
        )
        yield* append("policy.deleted", id, { product_id: policy.product_id, name: policy.name, code: policy.code })
      }, inTransaction)

      return Policies.of({ list, many, get, create, update, delete: remove })
    })
  )
}

const refuseUnfit = (policy: Policy) => Effect.andThen(refuseUselessTerm(policy), refuseUnfitTrial(policy))

/** A term would end a perpetual license, and only such a license has maintenance. */
const refuseUselessTerm = ({ duration_days, license_type, maintenance_days }: Policy) => {
  if (license_type === "perpetual" && duration_days !== undefined)
    return refuse("VALIDATION_ERROR", "A perpetual license does not expire: leave out duration_days.", "duration_days")
  return license_type !== "perpetual" && maintenance_days !== undefined
    ? refuse(
        "VALIDATION_ERROR",
        "Only a perpetual license has maintenance: leave out maintenance_days.",
        "maintenance_days"
      )
    : Effect.void
}

const refuseUnfitTrial = ({ duration_days, license_type, public_trial }: Policy) => {
  if (!public_trial) return Effect.void
  if (license_type !== "trial") {
    return refuse(
      "VALIDATION_ERROR",
      "Only a policy of the type trial has public trials: leave out public_trial.",
      "public_trial"
    )
  }
  return duration_days === undefined
    ? refuse(
        "VALIDATION_ERROR",
        "A public trial ends after the policy's duration_days: add duration_days.",
        "duration_days"
      )
    : Effect.void
}

/**
 * An edit that turns heartbeats on, or that restores expired licenses with a longer grace period, gives devices
 * a new interval: none is due before this instant.
 */
const heartbeatsFrom = (before: Policy, after: Policy, now: number): number | null => {
  if (after.require_heartbeat && !before.require_heartbeat) return heartbeatDueAt(after, now)
  if (after.grace_period_days <= before.grace_period_days) return null
  return Math.max(heartbeatDueAt(before, now), heartbeatDueAt(after, now))
}

const rowOf = (policy: Policy) => ({
  ...Object.fromEntries(editable.map((field) => [field, policy[field] ?? null])),
  reminder_days: arrays.int4(policy.reminder_days),
  show_metadata: arrays.text(policy.show_metadata),
  metadata: json(policy.metadata),
  updated_at: instant(policy.updated_at)
})
