/** Many licenses in one request. */
import { assert, layer } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { SqlClient } from "effect/sql"
import { vi } from "vitest"
import { holdLock, patientMillis, recordSetting } from "../../support/database/Database.ts"
import { type Answer, assertAnswered, assertRefused } from "../../support/http/Http.ts"
import { TestServer } from "../../support/http/TestServer.ts"
import { poll } from "../../support/rules/Poll.ts"

const path = "/api/v1/licenses/batch"
const expires_at = "2999-01-01T00:00:00Z"

let made = 0

/** A product with a policy that brings a feature, and another product with the same. */
const makeCatalog = Effect.gen(function* () {
  const { client } = yield* TestServer
  const make = Effect.gen(function* () {
    const code = `batch-${++made}`
    const product = yield* client.products.create({ payload: { name: "P", code } })
    const params = { id: product.id }
    const policy = yield* client.policies.create({ params, payload: { name: "P", code, license_type: "subscription" } })
    const feature = yield* client.features.create({ params, payload: { name: "F", code: "api" } })
    const extra = yield* client.features.create({ params, payload: { name: "G", code: "extra" } })
    yield* client.policies.setFeature({
      params: { id: policy.id, feature_id: feature.id },
      payload: { max_consumptions: 10 }
    })
    return { product_id: product.id, policy_id: policy.id, feature_id: extra.id }
  })
  return { own: yield* make, foreign: yield* make }
})

const post = Effect.fnUntraced(function* (
  licenses: ReadonlyArray<unknown>,
  headers: { readonly [name: string]: string } = {}
) {
  return yield* (yield* TestServer).send({ method: "POST", path, body: { licenses }, headers })
})

interface Issued {
  readonly license: { readonly id: string; readonly customer_name?: string }
  readonly license_key: string
}

const issuedBy = ({ json }: Answer) =>
  (json as { readonly data: { readonly licenses: ReadonlyArray<Issued> } }).data.licenses

/** How many licenses and events there are, and the last sequence number. */
const stored = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<{ licenses: number; features: number; events: number; last: number }>`
    SELECT (SELECT count(*) FROM licenses)::int AS licenses, (SELECT count(*) FROM license_features)::int AS features,
      (SELECT count(*) FROM events)::int AS events, (SELECT last FROM event_sequence) AS last`
  return row!
})

layer(TestServer.layer, { timeout: 120_000 })("A batch", (it) => {
  it.effect("with an Idempotency-Key stores its response before it waits for the event counter", () =>
    Effect.gen(function* () {
      const { own } = yield* makeCatalog
      const sql = yield* SqlClient.SqlClient
      const { release } = yield* holdLock((sql) => sql`SELECT FROM event_sequence FOR UPDATE`)
      const { feature_id: _, ...link } = own
      const posted = yield* Effect.forkChild(
        post(
          Array.from({ length: 3 }, () => ({ ...link, expires_at })),
          { "idempotency-key": "stored-first" }
        )
      )
      // Everything that is made of the licenses is done when the request waits.
      const waiting = sql<{ readonly stores: boolean }>`
        SELECT EXISTS (SELECT FROM pg_locks stored WHERE stored.pid = waits.pid AND stored.granted
          AND stored.relation = 'idempotent_answers'::regclass AND stored.mode = 'RowExclusiveLock') AS stores
        FROM pg_locks waits JOIN pg_stat_activity activity USING (pid)
        WHERE NOT waits.granted AND activity.datname = current_database() AND activity.query LIKE '%UPDATE event_sequence%'`
      const [found] = yield* poll(waiting, (rows) => rows.length > 0)
      assert.deepStrictEqual(found, { stores: true })
      yield* release
      const first = yield* Fiber.join(posted)
      assertAnswered(first, 201)
      assert.lengthOf(issuedBy(first), 3)
      const again = yield* post(
        Array.from({ length: 3 }, () => ({ ...link, expires_at })),
        { "idempotency-key": "stored-first" }
      )
      assert.deepStrictEqual([again.status, again.text], [first.status, first.text])
      const other = yield* post([{ ...link, expires_at }])
      const names = ({ headers }: Answer) => Object.keys(headers).toSorted()
      assert.deepStrictEqual(names(other), names(first))
    })
  )

  it.effect("with an Idempotency-Key is encoded once, not again while all nodes wait for the event counter", () =>
    Effect.gen(function* () {
      const { own } = yield* makeCatalog
      const { feature_id: _, ...named } = own
      const encodings = vi.spyOn(JSON, "stringify")
      const texts = Effect.sync(() => encodings.mock.results.map(({ value }) => String(value)))
      const [answer, made] = yield* Effect.all([
        post([{ ...named, expires_at }], { "idempotency-key": "encoded-once" }),
        texts
      ]).pipe(Effect.ensuring(Effect.sync(() => encodings.mockRestore())))
      assertAnswered(answer, 201)
      const [issued] = issuedBy(answer)
      assert.lengthOf(
        made.filter((text) => text.includes(issued!.license_key)),
        1
      )
    })
  )

  it.effect(
    "issues a thousand licenses in the order of the request, with an event and the policy's features each",
    () =>
      Effect.gen(function* () {
        const { own } = yield* makeCatalog
        const { connect } = yield* TestServer
        const sql = yield* SqlClient.SqlClient
        const before = yield* stored
        const { feature_id, ...named } = own
        const bodies = Array.from({ length: 1_000 }, (_, index) => ({
          ...named,
          expires_at,
          customer_name: `Customer ${index}`,
          ...(index % 2 === 0 ? { features: [{ feature_id }] } : undefined),
          ...(index % 10 === 0 ? { license_key: `vendor-key-${made}-${index}` } : undefined)
        }))
        const answer = yield* post(bodies)
        assertAnswered(answer, 201)
        const issued = issuedBy(answer)
        assert.deepStrictEqual(
          issued.map(({ license }) => license.customer_name),
          bodies.map(({ customer_name }) => customer_name)
        )
        for (const [index, { license_key }] of issued.entries()) {
          if (index % 10 === 0) assert.strictEqual(license_key, bodies[index]?.license_key)
          else assert.match(license_key, /^LK-/)
        }
        const after = yield* stored
        assert.deepStrictEqual(after, {
          licenses: before.licenses + 1_000,
          features: before.features + 1_500,
          events: before.events + 1_000,
          last: before.last + 1_000
        })
        const events = yield* sql<{ resource_id: string }>`
        SELECT resource_id FROM events WHERE sequence > ${before.last} AND event_type = 'license.created' ORDER BY sequence`
        assert.deepStrictEqual(
          events.map(({ resource_id }) => resource_id),
          issued.map(({ license }) => license.id)
        )
        for (const { license, license_key } of [issued[0]!, issued[999]!]) {
          const { runtime } = yield* connect({ licenseKey: license_key })
          const { data } = yield* runtime.activate({ payload: { fingerprint: "machine" } })
          assert.strictEqual(data.license_id, license.id)
        }
      })
  )

  it.effect("may be computed for ten seconds until it locks the event counter", () =>
    Effect.gen(function* () {
      const { own } = yield* makeCatalog
      const { feature_id: _, ...named } = own
      const idle = "idle_in_transaction_session_timeout"
      const [whileComputing, afterwards] = [
        yield* recordSetting(idle, "INSERT ON licenses"),
        yield* recordSetting(idle, "UPDATE ON event_sequence")
      ]
      assertAnswered(yield* post(Array(2).fill({ ...named, expires_at })), 201)
      assert.deepStrictEqual([yield* whileComputing, yield* afterwards], [["10s"], [`${patientMillis / 1_000}s`]])
    })
  )

  it.effect("is refused whole, with the index and the field of the first license that is refused", () =>
    Effect.gen(function* () {
      const { foreign, own } = yield* makeCatalog
      const { feature_id, ...named } = own
      const right = { ...named, expires_at }
      const [taken] = issuedBy(yield* post([{ ...right, license_key: `taken-key-${made}` }]))
      const before = yield* stored
      const refusals: ReadonlyArray<readonly [object, number, string, string]> = [
        [{ ...right, policy_id: foreign.policy_id }, 422, "LINKAGE_MISMATCH", "policy_id"],
        [{ ...right, policy_id: "none" }, 404, "NOT_FOUND", "policy_id"],
        [{ ...right, product_id: "none" }, 404, "NOT_FOUND", "product_id"],
        [{ ...right, customer_id: "none" }, 404, "NOT_FOUND", "customer_id"],
        [{ ...right, order_id: "none" }, 404, "NOT_FOUND", "order_id"],
        [
          { ...right, features: [{ feature_id: foreign.feature_id }] },
          422,
          "LINKAGE_MISMATCH",
          "features[0].feature_id"
        ],
        [{ ...right, features: [{ feature_id }, { feature_id }] }, 422, "VALIDATION_ERROR", "features[1].feature_id"],
        [{ ...right, expires_at: "2001-01-01T00:00:00Z" }, 422, "EXPIRY_NOT_IN_FUTURE", "expires_at"],
        [{ ...named }, 422, "VALIDATION_ERROR", "expires_at"],
        [{ ...right, license_key: taken!.license_key }, 409, "DUPLICATE_LICENSE_KEY", "license_key"],
        [{ ...right, license_key: "chosen-twice" }, 409, "DUPLICATE_LICENSE_KEY", "license_key"],
        [{ ...right, license_key: "short" }, 422, "VALIDATION_ERROR", "license_key"],
        [{ ...right, license_key: `LK-${"00000-".repeat(5)}00000` }, 422, "VALIDATION_ERROR", "license_key"],
        [{ ...right, unknown: true }, 400, "INVALID_JSON", "unknown"],
        [{ ...right, customer_name: 5 }, 400, "INVALID_JSON", "customer_name"]
      ]
      for (const [wrong, status, code, field] of refusals) {
        const bodies: Array<object> = Array.from({ length: 1_000 }, (_, index) => ({
          ...right,
          ...(index === 0 ? { license_key: "chosen-twice" } : undefined)
        }))
        bodies[700] = wrong
        assertRefused(yield* post(bodies), status, code, `licenses[700].${field}`)
      }
      assert.deepStrictEqual(yield* stored, before)
    })
  )

  it.effect("has 1 to 1,000 licenses", () =>
    Effect.gen(function* () {
      const { own } = yield* makeCatalog
      const { feature_id: _, ...named } = own
      const right = { ...named, expires_at }
      const before = yield* stored
      assertRefused(yield* post([]), 422, "VALIDATION_ERROR", "licenses")
      assertRefused(yield* post(Array(1_001).fill(right)), 422, "VALIDATION_ERROR", "licenses")
      assertRefused(
        yield* (yield* TestServer).send({ method: "POST", path, body: {} }),
        422,
        "VALIDATION_ERROR",
        "licenses"
      )
      assert.deepStrictEqual(yield* stored, before)
    })
  )

  it.effect("may have a body of 4 MiB, where other operations take 256 KiB", () =>
    Effect.gen(function* () {
      const { own } = yield* makeCatalog
      const { send } = yield* TestServer
      const { feature_id: _, ...named } = own
      const license = { ...named, expires_at, metadata: { note: "n".repeat(3_000) } }
      const body = JSON.stringify({ licenses: Array(1_000).fill(license) }).padEnd(4_194_304)
      const issued = yield* send({ method: "POST", path, body })
      assert.strictEqual(issued.status, 201)
      assert.strictEqual(issuedBy(issued).length, 1_000)
      assertRefused(yield* send({ method: "POST", path, body: `${body} ` }), 413, "PAYLOAD_TOO_LARGE", "4194304")
      const chunks = [`${body} `.slice(0, 100_000), `${body} `.slice(100_000)]
      assertRefused(yield* send({ method: "POST", path, chunks }), 413, "PAYLOAD_TOO_LARGE", "4194304")
    })
  )

  it.effect("is issued once for all requests with one Idempotency-Key, whose stored response is encrypted", () =>
    Effect.gen(function* () {
      const { own } = yield* makeCatalog
      const sql = yield* SqlClient.SqlClient
      const { feature_id: _, ...named } = own
      const bodies = Array(100).fill({ ...named, expires_at })
      const headers = { "idempotency-key": `batch-${made}` }
      const first = yield* post(bodies, headers)
      assertAnswered(first, 201)
      const after = yield* stored
      const again = yield* post(bodies, headers)
      assert.deepStrictEqual([again.status, again.text], [201, first.text])
      assert.strictEqual(again.headers["idempotency-replayed"], "true")
      assert.deepStrictEqual(yield* stored, after)
      const answers = yield* sql<{ text: string }>`SELECT encode(body, 'escape') AS text FROM idempotent_answers`
      for (const { license_key } of issuedBy(first))
        assert.notInclude(answers.map(({ text }) => text).join(), license_key)
    })
  )

  it.effect("gets its keys or is refused if another one has the same keys in any order", () =>
    Effect.gen(function* () {
      const { own } = yield* makeCatalog
      const { feature_id: _, ...named } = own
      const bodies = Array.from({ length: 200 }, (_, index) => ({
        ...named,
        expires_at,
        license_key: `raced-${made}-${index}`
      }))
      const before = yield* stored
      const answers = yield* Effect.all([post(bodies), post(bodies.toReversed())], { concurrency: 2 })
      const [won, lost] = answers.toSorted((a, b) => a.status - b.status)
      assertAnswered(won!, 201)
      assertRefused(lost!, 409, "DUPLICATE_LICENSE_KEY", "licenses[0].license_key")
      assert.strictEqual((yield* stored).licenses, before.licenses + 200)
    })
  )
})
