/** Requests that wait in vain for the database: each has a record that names what it waited for, and for how long. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer, Logger } from "effect"
import { openSession } from "../../../src/platform/postgres/driver/Postgres.ts"
import { Database } from "../../support/database/Database.ts"
import { contentTypes, type RuntimePath } from "../../support/http/FastPath.ts"
import { type Answer, assertRefused } from "../../support/http/Http.ts"
import { makeMetered } from "../../support/http/IssuedLicenses.ts"
import { TestServer } from "../../support/http/TestServer.ts"

type Facts = Readonly<Record<string, unknown>>

const records: Array<readonly [level: string, message: unknown, facts: Facts]> = []
const capturing = Logger.layer([
  Logger.make(({ logLevel, message }) => {
    const [text, facts] = message as readonly [string, Facts]
    if (text === "A request was turned away.") records.push([logLevel, text, facts])
  })
])

/** Sends requests that all get 503 while another session holds locks. Returns the records, by route. */
const turnedAway = Effect.fnUntraced(function* <R>(
  locks: ReadonlyArray<string>,
  requests: ReadonlyArray<Effect.Effect<Answer, never, R>>
) {
  records.length = 0
  const holder = yield* openSession((yield* Database).url)
  yield* holder.values("BEGIN")
  for (const lock of locks) yield* holder.values(lock)
  const answers = yield* Effect.all(requests, { concurrency: "unbounded" })
  yield* holder.values("ROLLBACK")
  for (const answer of answers) assertRefused(answer, 503, "NOT_READY")
  for (const [level, , { waited_ms }] of records) {
    assert.strictEqual(level, "Warn")
    assert.isAbove(waited_ms as number, 0)
  }
  return records.map(([, , { license, route, waited_for }]) => [route, waited_for, license].join(" ").trim()).sort()
}, Effect.scoped)

layer(TestServer.layer.pipe(Layer.provide(capturing)), { excludeTestServices: true, timeout: 60_000 })(
  "A request that is turned away",
  (it) => {
    const post = (path: string, body: unknown, headers: Readonly<Record<string, string>> = {}) =>
      Effect.flatMap(TestServer, ({ send }) => send({ method: "POST", path: `/api/v1/${path}`, body, headers }))
    const consume = (license_key: string, way: RuntimePath) =>
      post(
        "license/consume",
        { fingerprint: "a machine", feature_code: "exports", event_id: way },
        { authorization: `License ${license_key}`, "content-type": contentTypes[way] }
      )

    it.effect("has a record of the row that it waited for, on both paths", () =>
      Effect.gen(function* () {
        const { client, send } = yield* TestServer
        const { license, license_key } = yield* makeMetered
        const product = yield* client.products.create({ payload: { name: "P", code: "held" } })
        const held = [
          `SELECT FROM licenses WHERE id = '${license.id}' FOR UPDATE`,
          `SELECT FROM products WHERE id = '${product.id}' FOR UPDATE`
        ]
        const told = yield* turnedAway(held, [
          consume(license_key, "fast"),
          consume(license_key, "framework"),
          post(`licenses/${license.id}/suspend`, {}),
          send({ method: "PATCH", path: `/api/v1/products/${product.id}`, body: { name: "Q" } })
        ])
        const runtime = `/api/v1/license/consume row of the license ${license.id}`
        assert.deepStrictEqual(told, [
          runtime,
          runtime,
          `/api/v1/licenses/:id/suspend row of the license ${license.id}`,
          "/api/v1/products/:id row of products"
        ])
        assert.notInclude(JSON.stringify(records), license_key)
      })
    )

    it.effect("has a record of the event counter, or of the statement that took too long", () =>
      Effect.gen(function* () {
        const { license_key } = yield* makeMetered
        const late = yield* openSession((yield* Database).url)
        yield* late.values(`CREATE FUNCTION late() RETURNS trigger LANGUAGE plpgsql AS
          $$BEGIN RAISE EXCEPTION 'late' USING ERRCODE = '57014'; END$$`)
        yield* late.values("CREATE TRIGGER late BEFORE INSERT ON customers FOR EACH ROW EXECUTE FUNCTION late()")
        const told = yield* turnedAway(
          ["SELECT FROM event_sequence FOR UPDATE"],
          [
            consume(license_key, "fast"),
            post("products", { name: "P", code: "late" }),
            post("customers", { name: "C", code: "late" })
          ]
        )
        yield* late.values("DROP TRIGGER late ON customers")
        assert.deepStrictEqual(told, [
          "/api/v1/customers statement",
          "/api/v1/license/consume event counter",
          "/api/v1/products event counter"
        ])
      }).pipe(Effect.scoped)
    )
  }
)
