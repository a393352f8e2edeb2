import { assert, layer } from "@effect/vitest"
import { Cause, Effect, Layer, Logger, Redacted } from "effect"
import { SqlClient } from "effect/sql"
import { inject } from "vitest"
import { openSession } from "../../../src/platform/postgres/driver/Postgres.ts"
import { Database, DatabaseProxy } from "../../support/database/Database.ts"
import { assertAnswered, assertRefused } from "../../support/http/Http.ts"
import { issue } from "../../support/http/IssuedLicenses.ts"
import { TestServer } from "../../support/http/TestServer.ts"
import { poll } from "../../support/rules/Poll.ts"

const records: Array<{ level: string; text: string; cause: string }> = []
const capturing = Logger.layer([
  Logger.make(({ logLevel, message, cause }) => {
    records.push({ level: logLevel, text: JSON.stringify(message), cause: Cause.pretty(cause) })
  })
])

layer(TestServer.layer.pipe(Layer.provide(capturing)))("A defect", (it) => {
  it.effect("is INTERNAL_ERROR, tells nothing, and is logged once with its cause", () =>
    Effect.gen(function* () {
      const server = yield* TestServer
      const sql = yield* SqlClient.SqlClient
      yield* sql`ALTER TABLE products RENAME TO products_gone`
      records.length = 0
      const answer = yield* server.send({ path: "/api/v1/products?code=s3cret" })
      yield* sql`ALTER TABLE products_gone RENAME TO products`
      assertRefused(answer, 500, "INTERNAL_ERROR")
      for (const leak of ["products", "relation", "SELECT", "Sql", "at "]) assert.notInclude(answer.text, leak)
      const errors = records.filter(({ level }) => level === "Error")
      assert.strictEqual(errors.length, 1)
      assert.include(errors[0]?.cause, "products")
      assert.include(errors[0]?.text, '"route":"/api/v1/products"')
      assert.notInclude(JSON.stringify(records), "s3cret")
      assertAnswered(yield* server.send({ path: "/api/v1/products" }), 200)
    })
  )

  it.effect("of a database without room is NOT_READY, for it passes, and is logged with its cause", () =>
    Effect.gen(function* () {
      const { client, send } = yield* TestServer
      const sql = yield* SqlClient.SqlClient
      yield* sql`CREATE FUNCTION is_full() RETURNS trigger LANGUAGE plpgsql AS
        $$BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = 'disk_full'; END$$`
      yield* sql`CREATE TRIGGER is_full BEFORE INSERT ON products FOR EACH ROW EXECUTE FUNCTION is_full()`
      records.length = 0
      const body = { name: "P", code: "while-full" }
      const answer = yield* send({ method: "POST", path: "/api/v1/products", body })
      yield* sql`DROP TRIGGER is_full ON products`
      assertRefused(answer, 503, "NOT_READY")
      assert.strictEqual(answer.headers["retry-after"], "1")
      assert.notInclude(answer.text, "extend")
      const [error, ...others] = records.filter(({ level }) => level === "Error")
      assert.include(error?.cause, "could not extend file")
      assert.deepStrictEqual(others, [])
      yield* client.products.create({ payload: body })
    })
  )

  it.effect("of a database that others keep busy or that takes no changes is NOT_READY, and tells nothing of it", () =>
    Effect.gen(function* () {
      const { send } = yield* TestServer
      const sql = yield* SqlClient.SqlClient
      yield* sql`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
        $$BEGIN RAISE EXCEPTION 'refused' USING ERRCODE = NEW.metadata->>'state'; END$$`
      yield* sql`CREATE TRIGGER refuse BEFORE INSERT ON products FOR EACH ROW EXECUTE FUNCTION refuse()`
      for (const state of ["55P03", "57014", "25006", "25P03", "25P04", "53300", "57P01", "57P05", "40001", "40P01"]) {
        const body = { name: "P", code: state.toLowerCase(), metadata: { state } }
        const answer = yield* send({ method: "POST", path: "/api/v1/products", body })
        assertRefused(answer, 503, "NOT_READY")
        assert.strictEqual(answer.headers["retry-after"], "1")
        assert.notInclude(answer.text, "refused")
      }
      yield* sql`DROP TRIGGER refuse ON products`
    })
  )

  it.effect("of a database that is lost during the commit tells that the change may be stored", () =>
    Effect.gen(function* () {
      const { client, send } = yield* TestServer
      const sql = yield* SqlClient.SqlClient
      yield* sql`CREATE FUNCTION leave() RETURNS trigger LANGUAGE plpgsql AS
        $$BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END$$`
      yield* sql`CREATE CONSTRAINT TRIGGER leave AFTER INSERT ON products DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW EXECUTE FUNCTION leave()`
      const body = { name: "P", code: "lost" }
      const answer = yield* send({ method: "POST", path: "/api/v1/products", body })
      yield* sql`DROP TRIGGER leave ON products`
      assertRefused(answer, 503, "NOT_READY")
      assert.include(answer.text, "may be stored or not")
      yield* client.products.create({ payload: body })
    })
  )

  it.effect("requests are told with method, route and status, and with nothing that they carry", () =>
    Effect.gen(function* () {
      const server = yield* TestServer
      records.length = 0
      yield* server.send({ path: "/api/v1/products/prod_1/features?code=s3cret", headers: { "x-secret": "s3cret" } })
      const [record] = records
      assert.strictEqual(records.length, 1)
      assert.strictEqual(record?.level, "Info")
      assert.include(record?.text, '"method":"GET","route":"/api/v1/products/:id/features","status":404')
      for (const secret of ["s3cret", "prod_1", server.adminToken]) assert.notInclude(record?.text, secret)
    })
  )
})

layer(TestServer.layerWith({ rateFailures: 2 }).pipe(Layer.provide(capturing)))("What concerns security", (it) => {
  it.effect("is told: who asked, why it was refused, and who guesses, once", () =>
    Effect.gen(function* () {
      const { client, send } = yield* TestServer
      const { api_key, token } = yield* client["api-keys"].create({ payload: { name: "K", scopes: ["event:read"] } })
      records.length = 0
      yield* send({ path: "/api/v1/products", headers: { authorization: `Bearer ${token}` } })
      assert.include(records[0]?.text, `"code":"TOKEN_SCOPE_DENIED","actor":"${api_key.id}"`)
      records.length = 0
      for (let index = 0; index < 5; index++) {
        yield* send({ path: "/api/v1/products", headers: { authorization: "Bearer wrong" } })
      }
      const told = records.map(({ level, text }) => `${level} ${/"code":"(\w+)"/.exec(text)?.[1] ?? text}`)
      assert.deepStrictEqual(told, [
        "Info TOKEN_MALFORMED",
        'Warn ["Many credentials from one address failed.",{"address":"127.0.0.1"}]',
        "Info TOKEN_MALFORMED"
      ])
      assert.notInclude(JSON.stringify(records), "wrong")
    })
  )
})

layer(TestServer.layerOver().pipe(Layer.provideMerge(DatabaseProxy.layer)))("Without its database", (it) => {
  it.effect("the service is alive, not ready, and answers 503 until the database is back", () =>
    Effect.gen(function* () {
      const server = yield* TestServer
      const wire = yield* DatabaseProxy
      assertAnswered(yield* server.send({ path: "/readyz" }), 200)

      yield* wire.disconnect
      assertAnswered(yield* server.send({ path: "/health" }), 200)
      assertAnswered(yield* server.send({ path: "/healthz" }), 200)
      const readiness = server.send({ path: "/readyz" })
      const ready = yield* poll(readiness, ({ status }) => status === 503)
      assertRefused(ready, 503, "NOT_READY", "database, migrations, signing_key")
      assert.strictEqual(ready.headers["retry-after"], "1")
      assertRefused(yield* server.send({ path: "/api/v1/products" }), 503, "NOT_READY")

      yield* wire.reconnect
      const back = poll(readiness, ({ status }) => status === 200)
      assertAnswered(yield* back, 200)
      assertAnswered(yield* server.send({ path: "/api/v1/products" }), 200)
    })
  )
})

layer(TestServer.layer, { excludeTestServices: true })("While its database takes no changes", (it) => {
  it.effect("the service is not ready, refuses changes with 503, continues to read, and recovers", () =>
    Effect.gen(function* () {
      const { send } = yield* TestServer
      const { id, license_key } = yield* issue()
      const activate = send({
        method: "POST",
        path: "/api/v1/license/activate",
        headers: { authorization: `License ${license_key}` },
        body: { fingerprint: "m" }
      })
      const setReadOnly = Effect.fnUntraced(function* (value: string) {
        const admin = yield* openSession(Redacted.make(inject("database").url))
        const name = new URL(Redacted.value((yield* Database).url)).pathname.slice(1)
        yield* admin.values(`ALTER DATABASE ${name} SET default_transaction_read_only = ${value}`)
        // The setting holds for new connections.
        yield* admin.values("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1", [name])
      })
      yield* setReadOnly("on")
      const until = (status: number) => poll(send({ path: "/readyz" }), (answer) => answer.status === status)
      assertRefused(yield* until(503), 503, "NOT_READY", "database")
      const body = { name: "P", code: "read-only" }
      for (const answer of [yield* send({ method: "POST", path: "/api/v1/products", body }), yield* activate]) {
        assertRefused(answer, 503, "NOT_READY")
        assert.strictEqual(answer.headers["retry-after"], "1")
      }
      assertAnswered(yield* send({ path: `/api/v1/licenses/${id}` }), 200)
      yield* setReadOnly("off")
      assertAnswered(yield* until(200), 200)
      assertAnswered(yield* activate, 200)
    })
  )
})
