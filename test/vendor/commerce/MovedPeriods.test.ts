/** A subscription whose period is edited while its licenses consume: no period is lost, or closed twice. */
import { assert, layer } from "@effect/vitest"
import { Effect, Fiber, Result } from "effect"
import { holdLock, untilBlocked } from "../../support/database/Database.ts"
import { makeMetered } from "../../support/http/IssuedLicenses.ts"
import { TestServer } from "../../support/http/TestServer.ts"

const day = 86_400_000
const rounds = 12

layer(TestServer.layer, { timeout: 60_000 })("The period of a subscription", (it) => {
  it.effect("moves while its license consumes", () =>
    Effect.gen(function* () {
      const { advance, client } = yield* TestServer
      const { consume, license, subscription } = yield* makeMetered
      const params = { id: license.id }
      const { items } = yield* client.licenses.listFeatures({ params, query: {} })
      const { feature_id } = items.find(({ feature_code }) => feature_code === "exports")!
      yield* client.licenses.assignFeature({
        params,
        payload: { feature_id, max_consumptions: 1000, reset_period: "subscription", overage_max: -1 }
      })
      let [start, end] = [subscription.current_period_start, subscription.current_period_end]
      let consumed = 0
      for (let round = 0; round < rounds; round++) {
        // Every second period is announced when the recorded one has ended, the others begin before its end.
        yield* advance(((round % 2 === 0 ? 31 : 10) * day) / 1000)
        start = round % 2 === 0 ? end : start + 10 * day
        end = start + 30 * day
        const move = client.commerce.updateSubscription({
          params: { id: subscription.id },
          payload: { current_period_start: start, current_period_end: end }
        })
        const uses = Array.from({ length: 8 }, (_, use) =>
          Effect.result(consume("exports", 1 + use, `e${round}-${use}`))
        )
        const [answers] = yield* Effect.all([Effect.all(uses, { concurrency: "unbounded" }), move], {
          concurrency: "unbounded"
        })
        assert.isTrue(answers.every(Result.isSuccess))
        consumed += 36
      }
      yield* consume("exports", 1, "last")
      const { items: after } = yield* client.licenses.listFeatures({ params, query: {} })
      const left = after.find(({ feature_code }) => feature_code === "exports")!
      const query = { event_type: "usage.period_closed", resource_id: license.id, limit: 200 } as const
      const { items: events } = yield* client.events.list({ query })
      const { items: ledger } = yield* client.reports.usageLedger({ query: { license_id: license.id, limit: 200 } })
      const ends = events.map(({ metadata }) => String(metadata["period_end"]))
      assert.strictEqual(new Set(ends).size, ends.length)
      // Two that have ended when the next consumption comes are closed in one step.
      const periods = events.reduce((sum, { metadata }) => sum + Number(metadata["periods"]), 0)
      assert.strictEqual(periods, rounds)
      assert.strictEqual(ledger.filter(({ action }) => action === "period_reset").length, ends.length)
      const closed = events.reduce((sum, { metadata }) => sum + Number(metadata["consumed"]), 0)
      assert.strictEqual(closed + left.total_consumptions, consumed + 1)
      assert.strictEqual(left.resets_at, end)
    })
  )

  it.effect("is read after a change of it that is being committed", () =>
    Effect.gen(function* () {
      const { client } = yield* TestServer
      const { license, subscription } = yield* makeMetered
      const params = { id: license.id }
      const { items } = yield* client.licenses.listFeatures({ params, query: {} })
      const { feature_id } = items[0]!
      const { release } = yield* holdLock((sql) =>
        sql`SELECT FROM subscriptions WHERE id = ${subscription.id} FOR UPDATE`.pipe(
          Effect.andThen(
            sql`UPDATE subscriptions SET current_period_end = current_period_end + interval '1 day' WHERE id = ${subscription.id}`
          )
        )
      )
      const follows = client.licenses.assignFeature({ params, payload: { feature_id, reset_period: "subscription" } })
      const assigning = yield* Effect.forkChild(follows, { startImmediately: true })
      yield* untilBlocked
      yield* release
      assert.strictEqual((yield* Fiber.join(assigning)).resets_at, subscription.current_period_end + day)
    })
  )
})
