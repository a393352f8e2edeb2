import { assert, layer } from "@effect/vitest"
import { Clock, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import { Policies } from "../../../src/vendor/policies/Policies.ts"
import type { PolicyUpdate } from "../../../src/vendor/policies/Policy.ts"
import { Products } from "../../../src/vendor/products/Products.ts"
import {
  Foundations,
  insertLicense,
  makePolicy,
  makeProduct,
  recorded,
  refusalOf,
  walk
} from "../../support/database/Services.ts"

const Subject = Policies.layer.pipe(Layer.provideMerge(Products.layer), Layer.provideMerge(Foundations))

const counters = Effect.fnUntraced(function* (id: string) {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<{ revision: number; entitlement_counter: number }>`
    SELECT revision, entitlement_counter FROM policies WHERE id = ${id}`
  return [row?.revision, row?.entitlement_counter]
})

layer(Subject)("Policies", (it) => {
  it.effect("creates a policy with the contract's defaults", () =>
    Effect.gen(function* () {
      const policies = yield* Policies
      const { id: product_id } = yield* makeProduct
      const now = yield* Clock.currentTimeMillis
      const { answer, events } = yield* recorded(
        policies.create(product_id, { name: "Pro", code: "pro", license_type: "subscription" })
      )
      assert.deepStrictEqual(answer, {
        id: answer.id,
        product_id,
        name: "Pro",
        code: "pro",
        license_type: "subscription",
        max_activations: 1,
        floating_timeout_minutes: 30,
        grace_period_days: 0,
        validation_interval_minutes: 1440,
        require_heartbeat: false,
        allow_offline_activation: true,
        offline_grace_days: 7,
        allow_vm: true,
        allow_container: true,
        max_transfers: 0,
        allow_transfer: true,
        self_deactivations_per_month: 3,
        hold_offline_slots: false,
        show_licensee: false,
        show_metadata: [],
        duration_starts: "creation",
        reminder_days: [7, 3, 1],
        mail_reminders: false,
        public_trial: false,
        metadata: {},
        created_at: now,
        updated_at: now
      })
      assert.deepStrictEqual(yield* policies.get(answer.id), answer)
      assert.deepStrictEqual(events, [
        {
          event_type: "policy.created",
          resource_type: "policy",
          metadata: { product_id, name: "Pro", code: "pro", license_type: "subscription" }
        }
      ])
    })
  )

  it.effect("keeps every field as given", () =>
    Effect.gen(function* () {
      const policies = yield* Policies
      const { id: product_id } = yield* makeProduct
      const input = {
        name: "All",
        code: "all",
        license_type: "trial",
        max_activations: 0,
        max_floating_users: 5,
        max_container_instances: 0,
        floating_timeout_minutes: 1,
        grace_period_days: 3,
        validation_interval_minutes: 60,
        require_heartbeat: true,
        allow_offline_activation: false,
        offline_grace_days: 0,
        allow_vm: false,
        allow_container: false,
        max_transfers: 2,
        allow_transfer: false,
        borrow_days_max: 14,
        self_deactivations_per_month: 0,
        hold_offline_slots: true,
        show_licensee: true,
        show_metadata: ["tier", 'a, "b"'],
        duration_days: 14,
        duration_starts: "first_activation",
        reminder_days: [30, 365, 1, 8],
        mail_reminders: true,
        public_trial: true,
        metadata: { tier: "gold", seats: [1, 2] }
      } as const
      const { id } = yield* policies.create(product_id, input)
      const { created_at: _, updated_at: __, ...stored } = yield* policies.get(id)
      assert.deepStrictEqual(stored, { id, product_id, ...input })
    })
  )

  it.effect("refuses an unknown product, and a code that the product already has", () =>
    Effect.gen(function* () {
      const policies = yield* Policies
      const taken = yield* makePolicy()
      const again = { name: "Again", code: taken.code, license_type: "perpetual" } as const
      for (const input of [again, { ...again, duration_days: 30 }, { ...again, public_trial: true }])
        assert.deepStrictEqual(yield* refusalOf(policies.create("prod_none", input)), ["NOT_FOUND", "id"])
      assert.deepStrictEqual(yield* refusalOf(policies.list("prod_none", {})), ["NOT_FOUND", "id"])
      assert.deepStrictEqual(yield* refusalOf(policies.create(taken.product_id, again)), ["DUPLICATE_CODE", "code"])
      const inOtherProduct = yield* policies.create((yield* makeProduct).id, again)
      assert.strictEqual(inOtherProduct.code, taken.code)
      const other = yield* makePolicy(taken.product_id)
      assert.deepStrictEqual(yield* refusalOf(policies.update(other.id, { code: taken.code })), [
        "DUPLICATE_CODE",
        "code"
      ])
    })
  )

  it.effect("answers NOT_FOUND for an unknown id", () =>
    Effect.gen(function* () {
      const policies = yield* Policies
      for (const attempt of [policies.get("none"), policies.update("none", { name: "x" }), policies.delete("none")]) {
        assert.deepStrictEqual(yield* refusalOf(attempt), ["NOT_FOUND", "id"])
      }
    })
  )

  it.effect(
    "gives every edit a new revision, and increments the entitlement counter with edits of fields in payloads",
    () =>
      Effect.gen(function* () {
        const policies = yield* Policies
        const { id } = yield* makePolicy()
        const edits: ReadonlyArray<readonly [typeof PolicyUpdate.Type, number]> = [
          [{ name: "Renamed", max_activations: 9, allow_vm: false }, 0],
          [{ grace_period_days: 5 }, 1],
          [{ validation_interval_minutes: 10, max_transfers: 1 }, 2],
          [{ license_type: "trial" }, 3],
          [{ require_heartbeat: true }, 4]
        ]
        const revisions = new Set([1])
        assert.deepStrictEqual(yield* counters(id), [1, 0])
        for (const [input, expected] of edits) {
          yield* policies.update(id, input)
          const [revision, counter] = yield* counters(id)
          assert.strictEqual(counter, expected)
          assert.notInclude(Array.from(revisions), revision)
          revisions.add(revision!)
        }
        const before = yield* counters(id)
        yield* policies.update(id, { license_type: "trial", grace_period_days: 5 })
        assert.deepStrictEqual(yield* counters(id), before)
      })
  )

  it.effect("updates the given fields, records the changes, and clears optional limits with null", () =>
    Effect.gen(function* () {
      const policies = yield* Policies
      const created = yield* makePolicy()
      yield* policies.update(created.id, { max_floating_users: 3, max_container_instances: 4 })
      yield* TestClock.adjust(5)
      const { answer, events } = yield* recorded(
        policies.update(created.id, { max_floating_users: null, max_container_instances: 0, name: "Team" })
      )
      const now = yield* Clock.currentTimeMillis
      assert.deepStrictEqual(answer, { ...created, name: "Team", max_container_instances: 0, updated_at: now })
      assert.deepStrictEqual(yield* policies.get(created.id), answer)
      assert.deepStrictEqual(events, [
        {
          event_type: "policy.updated",
          resource_type: "policy",
          metadata: {
            changes: {
              name: { old: "A policy", new: "Team" },
              max_floating_users: { old: 3, new: null },
              max_container_instances: { old: 4, new: 0 }
            }
          }
        }
      ])
    })
  )

  it.effect("writes and records nothing when nothing changes, for any order of metadata members", () =>
    Effect.gen(function* () {
      const policies = yield* Policies
      const { id } = yield* makePolicy()
      const created = yield* policies.update(id, { metadata: { beta: 1, a: { z: 1, y: 2 } } })
      const before = yield* counters(id)
      yield* TestClock.adjust(5)
      for (const input of [
        {},
        { name: created.name, max_floating_users: null },
        { metadata: { beta: 1, a: { z: 1, y: 2 } } }
      ]) {
        const { answer, events } = yield* recorded(policies.update(id, input))
        assert.deepStrictEqual([answer, events], [created, []])
      }
      assert.deepStrictEqual(yield* counters(id), before)
    })
  )

  it.effect("refuses to change the license type or delete the policy while licenses use it", () =>
    Effect.gen(function* () {
      const policies = yield* Policies
      const { id, product_id } = yield* makePolicy()
      yield* insertLicense({ product_id, policy_id: id })
      assert.deepStrictEqual(yield* refusalOf(policies.update(id, { license_type: "trial", name: "x" })), [
        "RESOURCE_IN_USE",
        "license_type"
      ])
      assert.strictEqual((yield* policies.update(id, { license_type: "perpetual", name: "x" })).name, "x")
      assert.deepStrictEqual(yield* refusalOf(policies.delete(id)), ["RESOURCE_IN_USE", "id"])
      assert.strictEqual((yield* policies.get(id)).license_type, "perpetual")
    })
  )

  it.effect("deletes a policy that no license uses", () =>
    Effect.gen(function* () {
      const policies = yield* Policies
      const { code, id, name, product_id } = yield* makePolicy()
      const products = yield* Products
      assert.deepStrictEqual(yield* refusalOf(products.delete(product_id)), ["RESOURCE_IN_USE", "id"])
      const { events } = yield* recorded(policies.delete(id))
      assert.deepStrictEqual(events, [
        { event_type: "policy.deleted", resource_type: "policy", metadata: { product_id, name, code } }
      ])
      assert.deepStrictEqual(yield* refusalOf(policies.get(id)), ["NOT_FOUND", "id"])
      yield* products.delete(product_id)
    })
  )

  it.effect("lists a product's policies, the newest first, filtered, each once while more are created", () =>
    Effect.gen(function* () {
      const policies = yield* Policies
      const { id: product_id } = yield* makeProduct
      const make = Effect.andThen(TestClock.adjust(1), makePolicy(product_id))
      const created = yield* Effect.replicateEffect(make, 5)
      // Two created at the same instant: the id decides the order.
      created.push(yield* makePolicy(product_id), yield* makePolicy(product_id))
      const walked = yield* walk((page) => policies.list(product_id, page), 2, make)
      assert.deepStrictEqual(
        walked.map(({ id }) => id),
        created.toSorted((a, b) => b.created_at - a.created_at || (a.id < b.id ? 1 : -1)).map(({ id }) => id)
      )
      const [first] = created
      yield* policies.update(first?.id ?? "", { license_type: "trial" })
      const trials = yield* policies.list(product_id, { license_type: "trial" })
      const coded = yield* policies.list(product_id, { code: first?.code ?? "" })
      assert.deepStrictEqual(
        [trials.items, coded.items].map((items) => items.map(({ id }) => id)),
        [[first?.id], [first?.id]]
      )
      assert.deepStrictEqual(yield* policies.list((yield* makeProduct).id, {}), { items: [] })
    })
  )
})
