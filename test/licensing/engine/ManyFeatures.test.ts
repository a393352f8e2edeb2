/**
 * The text of many features is cached as long as no assignment changes. This must not be visible: after every command,
 * a node that has cached the license for long responds like one that has just loaded it.
 */
import { assert, layer } from "@effect/vitest"
import { Clock, Effect } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import * as fc from "fast-check"
import { canonicalize, type Json } from "../../../src/contract/api/CanonicalJson.ts"
import { isRefusal, type Refusal } from "../../../src/contract/api/Failure.ts"
import { assign, unassign } from "../../../src/licensing/changes/Assignments.ts"
import { resetUsage } from "../../../src/licensing/changes/UsageReset.ts"
import { activate, check } from "../../../src/licensing/rules/Activation.ts"
import { consume } from "../../../src/licensing/rules/Consumption.ts"
import { Database } from "../../support/database/Database.ts"
import { makeNode } from "../../support/database/LicenseNodes.ts"
import { makeLicense, requestOf } from "../../support/database/StoredLicenses.ts"

const count = 48
const minute = 60_000

const featureChange = fc.record({
  does: fc.constantFrom("assign", "unassign", "consume", "consume", "consume", "reset usage", "nothing"),
  feature: fc.integer({ min: 1, max: count }),
  enabled: fc.boolean(),
  max_consumptions: fc.constantFrom(null, 3, 50),
  expiresIn: fc.constantFrom(null, null, -1, 2, 5)
})

/** Concurrent commands to one node form one batch. */
const step = fc.record({
  changes: fc.array(featureChange, { minLength: 1, maxLength: 4 }),
  minutes: fc.constantFrom(0, 0, 0, 1),
  node: fc.constantFrom(0, 0, 0, 1)
})

type Node = Effect.Success<typeof makeNode>

layer(Database.layer, { timeout: 60_000 })("a license with many features", (it) => {
  it.effect("shows them correctly, however long it has been cached", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const nodes = [yield* makeNode, yield* makeNode] as const
      const license = yield* makeLicense()
      const features = Array.from({ length: count }, (_, index) => ({
        id: `feat_many_${index + 1}`,
        product_id: license.product,
        name: `Many ${index + 1}`,
        code: `many-${String(index + 1).padStart(2, "0")}`,
        metadata: "{}",
        created_at: "2026-01-01T00:00:00Z"
      }))
      for (const feature of features) yield* sql`INSERT INTO features ${sql.insert(feature)}`
      yield* nodes[0].ask(license.license, activate, requestOf(license, "m"))
      for (const { id } of features) yield* nodes[0].ask(license.license, assign, { feature_id: id })
      const steps = fc.sample(fc.array(step, { minLength: 60, maxLength: 60 }), { numRuns: 1, seed: 16 })[0]!
      const seen = new Set<number>()
      let uses = 0
      /** Uses a feature, and checks that the response equals the ledger at that moment. */
      const used = Effect.fnUntraced(function* ({ ask }: Node, feature_code: string) {
        const event_id = `event-${++uses}`
        const { features } = yield* ask(license.license, consume, {
          ...requestOf(license, "m"),
          feature_code,
          event_id,
          amount: 1
        })
        const [row] = yield* sql<{ balance_after: number; max_after: number | null }>`
          SELECT balance_after, max_after FROM usage_ledger WHERE license_id = ${license.license} AND event_id = ${event_id}`
        const presented = features.find(({ code }) => code === feature_code)
        assert.deepStrictEqual(
          [presented?.consumed, presented?.quota],
          row!.max_after === null ? [undefined, undefined] : [row!.balance_after, row!.max_after]
        )
      })
      for (const [number, { changes, minutes, node }] of steps.entries()) {
        yield* TestClock.adjust(`${minutes} minutes`)
        const now = yield* Clock.currentTimeMillis
        const { ask } = nodes[node]
        const all = changes.map(({ does, enabled, expiresIn, feature, max_consumptions }) => {
          const { code, id: feature_id } = features[feature - 1]!
          const expires_at = expiresIn === null ? null : now + expiresIn * minute
          return {
            assign: () => ask(license.license, assign, { feature_id, enabled, max_consumptions, expires_at }),
            unassign: () => ask(license.license, unassign, { feature_id }),
            consume: () => used(nodes[node], code),
            "reset usage": () => ask(license.license, resetUsage, { feature_id, reset_consumed: true }),
            nothing: () => Effect.void
          }[does]()
        })
        // Refused or not, the presented features must be equal.
        yield* Effect.forEach(
          all,
          (featureChange) =>
            Effect.catchIf(featureChange as Effect.Effect<unknown, Refusal>, isRefusal, () => Effect.void),
          {
            concurrency: "unbounded"
          }
        )
        const presented = [nodes[0], nodes[1], yield* makeNode].map(({ ask }) =>
          Effect.map(ask(license.license, check, requestOf(license, "m")), ({ features, ...rest }) => ({
            text: canonicalize({ ...rest, features } as Json),
            count: features.length
          }))
        )
        const [first, second, fromNewNode] = yield* Effect.all(presented)
        assert.strictEqual(first!.text, fromNewNode!.text, `step ${number}`)
        assert.strictEqual(second!.text, fromNewNode!.text, `step ${number}`)
        seen.add(first!.count)
      }
      assert.isAbove(uses, 30)
      assert.isAbove(seen.size, 5)
      assert.isAbove(Math.min(...seen), 15)
    })
  )
})
