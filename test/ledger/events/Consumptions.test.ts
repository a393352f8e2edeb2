/** A consumption's ledger row is also its event: every reader gets the same event, byte for byte and permanently. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { IpNetwork } from "effect/net"
import { SqlClient } from "effect/sql"
import { assertAnswered } from "../../support/http/Http.ts"
import { makeMetered } from "../../support/http/IssuedLicenses.ts"
import { TestServer } from "../../support/http/TestServer.ts"
import { layerService, makeReceiver } from "../../support/http/Webhooks.ts"

interface Wire {
  readonly sequence: number
  readonly event_type: string
  readonly actor_type: string
  readonly actor_id: string
  readonly ip_address?: string
  readonly resource_type: string
  readonly resource_id?: string
  readonly created_at: string
  readonly metadata: { readonly [member: string]: unknown }
}

/** The rows of a page as they are sent. */
const read = Effect.fnUntraced(function* (path: string) {
  const { send } = yield* TestServer
  const answer = yield* send({ path: `/api/v1/${path}` })
  return assertAnswered(answer, 200) as never
})

const listed = (query: string): Effect.Effect<ReadonlyArray<Wire>, never, TestServer> => read(`events?${query}`)

/** All rows that match a filter, read in small pages. */
const walked = Effect.fnUntraced(function* (query: string) {
  const rows: Array<Wire> = []
  while (true) {
    const cursor = rows.length === 0 ? "" : `&cursor=${rows.at(-1)!.sequence}`
    const page = yield* listed(`limit=3${query}${cursor}`)
    if (page.length === 0) return rows
    rows.push(...page)
  }
})

const consumed = Effect.fnUntraced(function* (licenseKey: string, request: string, body: object, from?: string) {
  const { send } = yield* TestServer
  const headers = {
    authorization: `License ${licenseKey}`,
    "x-request-id": request,
    ...(from === undefined ? undefined : { "x-forwarded-for": from })
  }
  const payload = { fingerprint: "a machine", ...body }
  assertAnswered(yield* send({ method: "POST", path: "/api/v1/license/consume", headers, body: payload }), 200)
})

/** A consumption as early versions wrote it: a ledger row, and a separate event. */
const consumedBefore = Effect.fnUntraced(function* (license: string, eventId: string, metadata: object) {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<{ readonly sequence: number; readonly queued: number }>`
    WITH counter AS (
      UPDATE event_sequence SET last = last + 1, ledger_last = ledger_last + 1
      RETURNING last - 1 AS base, ledger_last - 1 AS ledger_base, webhooks_revision
    ), usage AS (
      INSERT INTO usage_ledger (sequence, license_id, feature_id, action, event_id, amount, balance_after, max_after, device_id,
        actor_type, actor_id, request_id, occurred_at)
      SELECT ledger_base + 1, ${license}, 'feat_before', 'consume', ${eventId}, 1, 1, NULL, 'dev_before', 'license', ${license},
        'req_before', now() FROM counter
    ), event AS (
      INSERT INTO event_log
        (sequence, event_type, actor_type, actor_id, resource_type, resource_id, ip_address, metadata, created_at)
      SELECT counter.base + generate_series(1, 1), unnest(ARRAY['usage.consumed']), unnest(ARRAY['license']),
        unnest(ARRAY[${license}]), unnest(ARRAY['license']), unnest(ARRAY[${license}]), unnest(ARRAY[NULL]),
        unnest(ARRAY[${JSON.stringify(metadata)}::jsonb]), unnest(ARRAY[now()])
      FROM counter RETURNING sequence, event_type, created_at
    ), delivery AS (
      INSERT INTO webhook_deliveries (endpoint_id, sequence, due_at, created_at)
      SELECT endpoint.id, event.sequence, event.created_at, event.created_at
      FROM event JOIN webhook_endpoints endpoint ON endpoint.is_active RETURNING sequence
    )
    SELECT base + 1 AS sequence, (SELECT count(*) FROM delivery) AS queued FROM counter`
  return rows[0]!
})

/** A license consumed twice, from two addresses, with a limit and without, and the expected content of its events. */
const consumedTwice = Effect.gen(function* () {
  const { client } = yield* TestServer
  const { license, license_key, product } = yield* makeMetered
  const params = { id: license.id }
  const payload = { name: "E", code: "endless" }
  const { id: endless } = yield* client.features.create({ params: { id: product.id }, payload })
  yield* client.licenses.assignFeature({ params, payload: { feature_id: endless } })
  const { items } = yield* client.features.list({ params: { id: product.id }, query: {} })
  const limited = items.find(({ code }) => code === "exports")!.id
  yield* consumed(license_key, "req-with-a-limit", { feature_code: "exports", amount: 5, event_id: 'e "1"' })
  yield* consumed(license_key, "req-without-one", { feature_code: "endless", event_id: "é2" }, "203.0.113.9")
  const [device] = (yield* client.devices.list({ params, query: {} })).items
  const common = {
    event_type: "usage.consumed",
    actor_type: "license",
    actor_id: license.id,
    resource_type: "license",
    resource_id: license.id
  }
  const first = {
    amount: 5,
    event_id: 'e "1"',
    device_id: device!.id,
    max_after: 1_000,
    feature_id: limited,
    request_id: "req-with-a-limit",
    feature_code: "exports",
    balance_after: 5
  }
  const second = {
    amount: 1,
    event_id: "é2",
    device_id: device!.id,
    feature_id: endless,
    request_id: "req-without-one",
    feature_code: "endless",
    balance_after: 1
  }
  const expectedEvents = [
    { ...common, ip_address: "203.0.113.9", metadata: second },
    { ...common, ip_address: "127.0.0.1", metadata: first }
  ]
  return { license, limited, endless, told: expectedEvents }
})

const loopback = IpNetwork.fromStringUnsafe("127.0.0.0/8")

layer(layerService({ trustedProxies: [loopback] }), { timeout: 60_000 })("The event of a consumption", (it) => {
  it.effect("has the same content in the feed, webhooks, audits and activities", () =>
    Effect.gen(function* () {
      const { send } = yield* TestServer
      const receiver = yield* makeReceiver
      const body = { name: "live", url: receiver.url, event_types: ["usage.consumed"] }
      assertAnswered(yield* send({ method: "POST", path: "/api/v1/webhooks", body }), 201)
      const { license, told: expectedEvents } = yield* consumedTwice
      const events = yield* listed(`resource_id=${license.id}&event_type=usage.consumed`)
      assert.deepStrictEqual(
        events.map(({ created_at: _, sequence: __, ...event }) => event),
        expectedEvents
      )
      // The order of members too: a webhook's receiver hashes it.
      const metadataOf = (rows: ReadonlyArray<Pick<Wire, "metadata">>) => rows.map(({ metadata }) => metadata)
      assert.strictEqual(JSON.stringify(metadataOf(events)), JSON.stringify(metadataOf(expectedEvents)))

      const bodies = [(yield* receiver.next).body.toString(), (yield* receiver.next).body.toString()]
      const bodyOf = ({ created_at, sequence, event_type: type, ...event }: Wire) => {
        const { actor_type, actor_id, resource_type, resource_id, metadata } = event
        const data = { actor_type, actor_id, resource_type, resource_id, metadata }
        return JSON.stringify({ id: `evt_${sequence}`, type, sequence, created_at, data })
      }
      assert.sameMembers(bodies, events.map(bodyOf))

      const audit: { readonly events: ReadonlyArray<Wire> } = yield* read(
        `reports/license-audit?license_id=${license.id}`
      )
      assert.deepStrictEqual(
        audit.events.filter(({ event_type }) => event_type === "usage.consumed"),
        events
      )
      const activities: ReadonlyArray<object> = yield* read(`activities?license_id=${license.id}&action=usage.consume`)
      for (const [index, { created_at: occurred_at, metadata, actor_id, ip_address }] of events.entries()) {
        const { request_id, feature_code, device_id } = metadata
        const activity = { request_id, feature_code, device_id, ip_address, occurred_at, actor_id }
        assert.deepInclude(activities[index], { ...activity, action: "usage.consume", license_id: license.id })
      }
    })
  )

  it.effect("is unchanged when the feature gets another code, and when the feature is deleted", () =>
    Effect.gen(function* () {
      const { client } = yield* TestServer
      const { license, limited, endless } = yield* consumedTwice
      const query = `resource_id=${license.id}`
      const before = yield* listed(query)
      yield* client.features.update({ params: { id: limited }, payload: { code: "renamed" } })
      yield* client.licenses.removeFeature({ params: { id: license.id, feature_id: endless } })
      yield* client.features.delete({ params: { id: endless } })
      assert.deepStrictEqual((yield* listed(query)).slice(-before.length), before)
    })
  )

  it.effect("precedes the event of the limit that it reaches, and resets have their own events", () =>
    Effect.gen(function* () {
      const { client } = yield* TestServer
      const { consume, license } = yield* makeMetered
      yield* consume("exports", 799, "a")
      yield* client.licenses.resetUsage({
        params: { id: license.id },
        payload: { feature_code: "exports", add_credits: 1, total_consumptions: 700 }
      })
      yield* consume("exports", 301, "b")
      const events = (yield* listed(`resource_id=${license.id}&limit=5`)).toReversed()
      assert.deepStrictEqual(
        events.map(({ event_type }) => event_type),
        ["usage.consumed", "license.usage_reset", "usage.consumed", "usage.threshold_reached", "usage.exhausted"]
      )
      const [first] = events
      assert.deepStrictEqual(
        events.map(({ sequence }) => sequence - first!.sequence),
        [0, 1, 2, 3, 4]
      )
      assert.deepStrictEqual(events[2]!.metadata, events[4]!.metadata)
    })
  )

  it.effect("appears once in every list, also if an early version wrote it", () =>
    Effect.gen(function* () {
      const receiver = yield* makeReceiver
      const { send } = yield* TestServer
      const { consume, license } = yield* makeMetered
      const body = { name: "beside", url: receiver.url, event_types: ["usage.*"] }
      assertAnswered(yield* send({ method: "POST", path: "/api/v1/webhooks", body }), 201)
      yield* consume("exports", 1, "new one")
      const metadata = { event_id: "old one", feature_code: "exports", note: "as it was written" }
      const old = yield* consumedBefore(license.id, "old one", metadata)
      assert.isAtLeast(old.queued, 1)
      yield* consume("exports", 1, "new two")

      const of = yield* walked(`&resource_id=${license.id}&event_type=usage.consumed`)
      assert.deepStrictEqual(
        of.map((event) => event.metadata["event_id"]),
        ["new two", "old one", "new one"]
      )
      assert.deepStrictEqual([of[1]!.sequence, of[1]!.metadata], [old.sequence, metadata])
      const bodies: Array<string> = []
      while (bodies.length < 3) bodies.push((yield* receiver.next).body.toString())
      assert.sameMembers(
        bodies.map((body) => (JSON.parse(body) as { data: Wire }).data.metadata["event_id"]),
        ["new one", "old one", "new two"]
      )

      const all = yield* walked("")
      assert.deepStrictEqual(
        all.map(({ sequence }) => sequence),
        Array.from({ length: all.length }, (_, index) => all.length - index)
      )
      const types = ["usage.consumed", "license.feature_assigned"]
      for (const event_type of [undefined, ...types]) {
        for (const actor_type of [undefined, "license", "api_key"]) {
          for (const resource_type of [undefined, "license", "product"]) {
            for (const resource_id of [undefined, license.id]) {
              const filter = Object.entries({ event_type, actor_type, resource_type, resource_id }).filter(
                ([, value]) => value !== undefined
              )
              const query = filter.map(([name, value]) => `&${name}=${value}`).join("")
              assert.deepStrictEqual(
                yield* walked(query),
                all.filter((event) => filter.every(([name, value]) => event[name as keyof Wire] === value)),
                query
              )
            }
          }
        }
      }
    })
  )
})
