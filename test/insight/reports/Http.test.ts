import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { assertAnswered, assertRefused } from "../../support/http/Http.ts"
import { makeMetered } from "../../support/http/IssuedLicenses.ts"
import { TestServer } from "../../support/http/TestServer.ts"

const ask = (path: string) => Effect.flatMap(TestServer, ({ send }) => send({ path: `/api/v1/reports/${path}` }))

layer(TestServer.layer)("Reports over HTTP", (it) => {
  it.effect("refuse missing parameters, contradictory ones, and those of another report", () =>
    Effect.gen(function* () {
      const { customer, license, subscription } = yield* makeMetered
      const refused = [
        ["license-audit", "license_id"],
        ["customer-summary", "customer_id"],
        ["subscription-settlement", "subscription_id"],
        ["usage-summary?from=2030-01-02T00:00:00Z&to=2030-01-01T00:00:00Z", "to"],
        ["usage-ledger?from=2030-01-02T00:00:00Z&to=2030-01-02T00:00:00Z", "to"],
        ["usage-summary?from=yesterday", "from"],
        ["usage-summary?bucket=2h", "bucket"],
        ["usage-summary?group_by=colour", "group_by"],
        ["usage-summary?group_by=license_id,license_id", "group_by"],
        ["usage-summary?tz=%2B02:00", "tz"],
        ["usage-summary?tz=Mars/Olympus&bucket=1d", "tz"],
        ...["UTC%2B3", "CEST", "Mars/Olympus5"].flatMap((tz) => [
          [`usage-summary?tz=${tz}`, "tz"] as const,
          [`overview?tz=${tz}`, "tz"] as const
        ]),
        ["usage-summary?action=consume", "action"],
        ["usage-summary?result_class=success", "result_class"],
        ["usage-ledger?bucket=1h", "bucket"],
        ["usage-summary?colour=red", "colour"],
        [`license-audit?license_id=${license.id}&colour=red`, "colour"],
        ["usage-ledger?action=refund", "action"],
        ["usage-ledger?cursor=0", "cursor"],
        [`license-audit?license_id=${license.id}&feature_code=exports`, "feature_code"],
        [`customer-summary?customer_id=${customer.id}&license_id=${license.id}`, "license_id"],
        [`subscription-settlement?subscription_id=${subscription.id}&group_by=license_id`, "group_by"]
      ] as const
      for (const [path, detail] of refused) assertRefused(yield* ask(path), 400, "INVALID_QUERY", detail)
    })
  )

  it.effect("answer NOT_FOUND for an unknown record", () =>
    Effect.gen(function* () {
      for (const [path, detail] of [
        ["usage-summary?product_id=none", "product_id"],
        ["usage-ledger?order_id=none", "order_id"],
        ["license-audit?license_id=none", "license_id"],
        ["customer-summary?customer_id=none", "customer_id"],
        ["subscription-settlement?subscription_id=none", "subscription_id"]
      ] as const) {
        assertRefused(yield* ask(path), 404, "NOT_FOUND", detail)
      }
    })
  )

  it.effect("group sums by any fields, in days of any time zone", () =>
    Effect.gen(function* () {
      const { advance, client } = yield* TestServer
      const sql = yield* SqlClient.SqlClient
      const { consume, customer, license, product, subscription } = yield* makeMetered
      for (const [index, at] of ["2026-03-28T22:30:00Z", "2026-03-28T23:30:00Z", "2026-03-29T21:59:59Z"].entries()) {
        yield* consume("exports", 10 ** index, `event-${index}`)
        yield* sql`
          UPDATE usage_ledger SET occurred_at = ${at} WHERE license_id = ${license.id} AND event_id = ${`event-${index}`}`
      }
      const { rows, totals } = yield* client.reports.usageSummary({
        query: {
          product_id: product.id,
          from: Date.UTC(2026, 2, 1),
          bucket: "1d",
          tz: "Europe/Zurich",
          group_by: ["customer_id", "subscription_id", "feature_code"]
        }
      })
      const key = { customer_id: customer.id, subscription_id: subscription.id, feature_code: "exports" }
      const none = { reversed: 0, reset: 0, topped_up: 0, credits_used: 0, overage: 0 }
      const usage = { ...none, licenses: 1 }
      // The clocks of this zone go forward on the 29th: that day begins one hour, and ends two hours, before UTC's.
      assert.deepStrictEqual(rows, [
        { bucket_start: Date.UTC(2026, 2, 27, 23), ...key, consumed: 1, consumptions: 1, ...usage },
        { bucket_start: Date.UTC(2026, 2, 28, 23), ...key, consumed: 110, consumptions: 2, ...usage }
      ])
      assert.deepStrictEqual(totals, { consumed: 111, consumptions: 3, ...none })
      yield* advance(1)
    })
  )

  it.effect("refuse a sum that a number cannot represent exactly", () =>
    Effect.gen(function* () {
      const { product } = yield* Effect.tap(makeMetered, ({ consume, license }) =>
        Effect.gen(function* () {
          const sql = yield* SqlClient.SqlClient
          yield* consume("exports", 1, "one")
          yield* consume("exports", 1, "two")
          yield* sql`
            UPDATE usage_ledger SET amount = 9007199254740991, balance_after = 9007199254740991
            WHERE license_id = ${license.id} AND event_id = 'one'`
        })
      )
      assertRefused(yield* ask(`usage-summary?product_id=${product.id}`), 400, "INVALID_QUERY")
      assertAnswered(yield* ask(`usage-ledger?product_id=${product.id}`), 200)
    })
  )

  it.effect("settle an order for its own period, together with its subscription or without it", () =>
    Effect.gen(function* () {
      const { client } = yield* TestServer
      const { product, subscription } = yield* makeMetered
      const other = yield* makeMetered
      const order = (external_id: string, more: object) =>
        client.commerce.createOrder({
          params: { id: product.id },
          payload: { external_system: "shop", external_id, status: "paid", ...more }
        })
      const [start, end] = [Date.UTC(2030, 0, 1), Date.UTC(2030, 1, 1)]
      const own = yield* order("own", { subscription_id: subscription.id, period_start: start, period_end: end })
      const linked = yield* order("linked", { subscription_id: subscription.id })
      const alone = yield* order("alone", {})
      const settle = (query: object) => client.reports.settlement({ query })
      assert.deepStrictEqual((yield* settle({ order_id: own.id })).period, { from: start, to: end })
      const current = { from: subscription.current_period_start, to: subscription.current_period_end }
      const both = yield* settle({ order_id: linked.id, subscription_id: subscription.id })
      assert.deepStrictEqual(both.period, current)
      assert.strictEqual(both.subscription?.id, subscription.id)
      assert.deepStrictEqual((yield* settle({ subscription_id: subscription.id })).period, current)
      assertRefused(yield* ask(`subscription-settlement?order_id=${alone.id}`), 400, "INVALID_QUERY", "from")
      for (const period_end of [start, start - 1]) {
        yield* client.commerce.updateOrder({ params: { id: own.id }, payload: { period_start: start, period_end } })
        const empty = yield* ask(`subscription-settlement?order_id=${own.id}`)
        assertRefused(empty, 400, "INVALID_QUERY", "order_id")
        assert.include(empty.error.message, "period_end")
      }
      assert.deepStrictEqual((yield* settle({ order_id: own.id, from: start, to: end })).period, {
        from: start,
        to: end
      })
      assertRefused(
        yield* ask(`subscription-settlement?order_id=${own.id}&subscription_id=${other.subscription.id}`),
        400,
        "INVALID_QUERY",
        "order_id"
      )
    })
  )

  it.effect("show a customer, an order and a subscription as these are read elsewhere", () =>
    Effect.gen(function* () {
      const { client } = yield* TestServer
      const sql = yield* SqlClient.SqlClient
      const { customer, product, subscription } = yield* makeMetered
      yield* sql`UPDATE customers SET erased_at = now() WHERE id = ${customer.id}`
      const summary = yield* client.reports.customerSummary({ query: { customer_id: customer.id } })
      assert.isDefined(summary.customer.erased_at)
      assert.deepStrictEqual(summary.customer, yield* client.customers.get({ params: { id: customer.id } }))
      const observed_at = Date.UTC(2026, 0, 1)
      const params = { id: subscription.id }
      const observed = yield* client.commerce.updateSubscription({ params, payload: { observed_at } })
      assert.strictEqual(observed.observed_at, observed_at)
      const order = yield* client.commerce.createOrder({
        params: { id: product.id },
        payload: { external_system: "shop", external_id: "1", status: "paid", subscription_id: subscription.id }
      })
      const settled = yield* client.reports.settlement({ query: { order_id: order.id } })
      assert.deepStrictEqual([settled.order, settled.subscription], [order, observed])
    })
  )

  it.effect("summarize a customer by the clock", () =>
    Effect.gen(function* () {
      const { client } = yield* TestServer
      const sql = yield* SqlClient.SqlClient
      const { consume, customer, license, policy, product } = yield* makeMetered
      yield* consume("renders", 5, "one")
      const second = yield* client.licenses.create({
        payload: { product_id: product.id, policy_id: policy.id, customer_id: customer.id }
      })
      yield* sql`UPDATE licenses SET expires_at = '2020-01-01T00:00:00Z' WHERE id = ${second.license.id}`
      const summary = yield* client.reports.customerSummary({ query: { customer_id: customer.id } })
      assert.deepStrictEqual(summary.licenses, { total: 2, by_status: { active: 1, expired: 1 } })
      assert.deepStrictEqual([summary.active_devices, summary.subscriptions.total], [1, 1])
      assert.deepStrictEqual(
        summary.usage.map(({ consumed, feature_code, product_id }) => [product_id, feature_code, consumed]),
        [[product.id, "renders", 5]]
      )
      const audit = yield* client.reports.licenseAudit({ query: { license_id: license.id, limit: 2 } })
      assert.strictEqual(audit.events.length, 2)
      const next = yield* client.reports.licenseAudit({
        query: { license_id: license.id, cursor: audit.next_cursor! }
      })
      assert.isTrue(next.events.every(({ sequence }) => sequence < audit.next_cursor!))
    })
  )

  it.effect("require report:read", () =>
    Effect.gen(function* () {
      const { client, send } = yield* TestServer
      const { token } = yield* client["api-keys"].create({ payload: { name: "events", scopes: ["event:read"] } })
      const headers = { authorization: `Bearer ${token}` }
      assertRefused(yield* send({ path: "/api/v1/reports/usage-summary", headers }), 403, "TOKEN_SCOPE_DENIED")
    })
  )
})
