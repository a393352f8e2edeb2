import { assert, layer } from "@effect/vitest"
import { Effect, Layer, Metric, Redacted } from "effect"
import { SqlClient } from "effect/sql"
import { assertRefused } from "../../support/http/Http.ts"
import { TestServer } from "../../support/http/TestServer.ts"

/** Each server has its own counters: by default those of one process share them. */
const Counting = (settings: Parameters<typeof TestServer.layerWith>[0]) =>
  TestServer.layerWith(settings).pipe(Layer.provide(Layer.sync(Metric.MetricRegistry, () => new Map())))

const scrape = Effect.flatMap(TestServer, ({ send }) => send({ path: "/metrics", anonymous: true }))

/** The samples of a text: name and labels, and the value. */
const samplesOf = (text: string): ReadonlyMap<string, number> =>
  new Map(
    text
      .split("\n")
      .filter((line) => line !== "" && !line.startsWith("#"))
      .map((line) => [line.slice(0, line.lastIndexOf(" ")), Number(line.slice(line.lastIndexOf(" ") + 1))] as const)
  )

layer(Counting({}))("/metrics", (it) => {
  it.effect("counts requests by route template and status, for every client", () =>
    Effect.gen(function* () {
      const { client, send } = yield* TestServer
      const product = yield* client.products.create({ payload: { name: "P", code: "counted" } })
      yield* client.products.get({ params: { id: product.id } })
      yield* send({ path: "/api/v1/products/none-such" })
      yield* send({ path: "/api/v1/nowhere" })
      const { headers, text } = yield* scrape
      assert.strictEqual(headers["content-type"], "text/plain; version=0.0.4; charset=utf-8")
      const samples = samplesOf(text)
      const requests = (method: string, route: string, status: number) =>
        samples.get(`licensing_http_requests_total{method="${method}",route="${route}",status="${status}"}`)
      assert.strictEqual(requests("POST", "/api/v1/products", 201), 1)
      assert.strictEqual(requests("GET", "/api/v1/products/:id", 200), 1)
      assert.strictEqual(requests("GET", "/api/v1/products/:id", 404), 1)
      assert.strictEqual(requests("GET", "none", 404), 1)
      assert.strictEqual(samples.get('licensing_refusals_total{code="NOT_FOUND"}'), 2)
      const duration = 'method="GET",route="/api/v1/products/:id"'
      assert.strictEqual(samples.get(`licensing_http_request_duration_seconds_count{${duration}}`), 2)
      assert.strictEqual(samples.get(`licensing_http_request_duration_seconds_bucket{${duration},le="+Inf"}`), 2)
    })
  )

  it.effect("exposes from the start, with 0, what only failures and other nodes count", () =>
    Effect.gen(function* () {
      const samples = samplesOf((yield* scrape).text)
      for (const name of [
        "licensing_activity_refusals_dropped_total",
        "licensing_validations_uncounted_total",
        "licensing_cluster_taken_over_total",
        'licensing_cluster_handed_over_total{outcome="lost"}',
        'licensing_cluster_peers{state="connected"}',
        'licensing_telemetry_failures_total{signal="logs"}'
      ])
        assert.strictEqual(samples.get(name), 0, name)
    })
  )

  it.effect("tells how long committed events have been without a number", () =>
    Effect.gen(function* () {
      const { advance, client } = yield* TestServer
      const sql = yield* SqlClient.SqlClient
      const { created_at } = yield* client.products.create({ payload: { name: "P", code: "before" } })
      yield* sql`
        INSERT INTO waiting_entries (event_type, resource_type, metadata, actor_type, actor_id, occurred_at)
        VALUES ('license.activated', 'license', '{}', 'system', 'system', to_timestamp(${created_at / 1000 - 40}))`
      const waiting = Effect.gen(function* () {
        yield* advance(2)
        return samplesOf((yield* scrape).text).get('licensing_oldest_waiting_seconds{queue="event-numbers"}')
      })
      assert.closeTo((yield* waiting) ?? 0, 42, 5)
      // Whoever locks the counter next numbers them.
      yield* client.products.create({ payload: { name: "P", code: "numbering" } })
      assert.strictEqual(yield* waiting, 0)
    })
  )

  it.effect("exposes internal measurements and no id", () =>
    Effect.gen(function* () {
      const { advance, client } = yield* TestServer
      const product = yield* client.products.create({ payload: { name: "P", code: "inside" } })
      const policy = yield* client.policies.create({
        params: { id: product.id },
        payload: { name: "P", code: "p", license_type: "perpetual" }
      })
      const license = yield* client.licenses.create({ payload: { product_id: product.id, policy_id: policy.id } })
      yield* client.licenses.suspend({ params: { id: license.license.id } })
      // The database is queried once a second at most. Its rows are counted once in 3 minutes if no worker counts them.
      yield* advance(180)
      const { text } = yield* scrape
      const samples = samplesOf(text)
      assert.strictEqual(samples.get("licensing_database_up"), 1)
      assert.strictEqual(samples.get('licensing_licenses{status="suspended"}'), 1)
      assert.strictEqual(samples.get('licensing_licenses{status="revoked"}'), 0)
      assert.isAtLeast(samples.get("licensing_event_sequence") ?? 0, 1)
      assert.isAtLeast(samples.get("licensing_license_actors") ?? 0, 1)
      assert.isAtLeast(samples.get("licensing_event_counter_wait_seconds") ?? -1, 0)
      assert.isAtLeast(samples.get("licensing_journal_group_size_count") ?? 0, 1)
      assert.isAtLeast(samples.get("licensing_journal_commit_duration_seconds_sum") ?? 0, 0.000_001)
      assert.isAbove(samples.get('licensing_process_memory_bytes{kind="rss"}') ?? 0, 1e6)
      assert.isAtLeast(samples.get('licensing_event_loop_delay_seconds{stat="max"}') ?? -1, 0)
      assert.isAbove(samples.get('licensing_database_connections{pool="commits",state="max"}') ?? 0, 0)
      assert.strictEqual(samples.get('licensing_database_connections{pool="statements",state="waiting"}'), 0)
      assert.notMatch(text, /\b(prod|pol|lic|key|req|dev)_[0-9A-HJKMNP-TV-Z]{26}\b/)
    })
  )
})

const token = "a-token-for-metrics-only"

layer(Counting({ metricsToken: Redacted.make(token) }))("/metrics with a token", (it) => {
  it.effect("is returned only to requests with the token", () =>
    Effect.gen(function* () {
      const { send } = yield* TestServer
      const as = (authorization: string) => send({ path: "/metrics", headers: { authorization } })
      assertRefused(yield* scrape, 401, "TOKEN_MISSING")
      assertRefused(yield* as("Bearer"), 401, "TOKEN_MISSING")
      assertRefused(yield* as(`Basic ${token}`), 401, "TOKEN_MALFORMED")
      assertRefused(yield* as(`Bearer ${token}x`), 401, "TOKEN_INVALID")
      // An API token, even an admin's, is a different credential.
      assertRefused(yield* send({ path: "/metrics" }), 401, "TOKEN_INVALID")
      const { status, text } = yield* as(`Bearer ${token}`)
      assert.strictEqual(status, 200)
      assert.include(text, "# TYPE licensing_refusals_total counter")
    })
  )
})
