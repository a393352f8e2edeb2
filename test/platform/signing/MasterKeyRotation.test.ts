import { assert, layer } from "@effect/vitest"
import { Context, Effect, Exit, Fiber, Layer, Option, Redacted, References } from "effect"
import { SecureRandom } from "effect/crypto"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import { Identifiers } from "../../../src/contract/api/Identifier.ts"
import { EventLog } from "../../../src/ledger/events/EventLog.ts"
import { KeyRing } from "../../../src/platform/signing/KeyRing.ts"
import { keyIdOf, MasterKey } from "../../../src/platform/signing/MasterKey.ts"
import { rotateMasterKey } from "../../../src/platform/signing/MasterKeyRotation.ts"
import { sealedColumns } from "../../../src/platform/signing/SealedColumns.ts"
import { ApiKeyCache } from "../../../src/vendor/apiKeys/ApiKeyCache.ts"
import { ApiKeys } from "../../../src/vendor/apiKeys/ApiKeys.ts"
import { Database } from "../../support/database/Database.ts"
import { assertAnswered } from "../../support/http/Http.ts"
import { startServer } from "../../support/http/TestServer.ts"
import { poll } from "../../support/rules/Poll.ts"

const key = (byte: number) => Redacted.make(Buffer.alloc(32, byte).toString("base64"))
const [oldKey, nextKey] = [key(1), key(2)]

const masterKeyOf = Effect.fnUntraced(function* (...keys: Parameters<typeof MasterKey.layerFromKey>) {
  const masterKeyLayer = MasterKey.layerFromKey(...keys).pipe(Layer.provide(SecureRandom.layerWebCrypto))
  return Context.get(yield* Layer.build(Layer.fresh(masterKeyLayer)), MasterKey)
})

/** The ids of the master keys under which any value is sealed. */
const keyIds = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const sealedValues = yield* Effect.forEach(
    sealedColumns,
    ({ column, table, where }) =>
      sql<{ sealed: Uint8Array }>`
      SELECT ${sql(column)} AS sealed FROM ${sql(table)}
      WHERE length(${sql(column)}) > 0 AND ${where === undefined ? sql`TRUE` : sql(where)}`
  )
  return new Set(sealedValues.flat().map(({ sealed }) => Option.getOrThrow(keyIdOf(sealed))))
})

const idOf = (masterKey: MasterKey["Service"]) =>
  Effect.map(masterKey.seal(new Uint8Array(), ""), (sealed) => Option.getOrThrow(keyIdOf(sealed)))

layer(Database.layer)("The list of sealed columns", (it) => {
  it.effect("names every column of the schema that is sealed", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const rows = yield* sql<{ table: string; column: string }>`
        SELECT table_name AS table, column_name AS column FROM information_schema.columns
        WHERE table_schema = 'public' AND data_type = 'bytea' AND column_name LIKE '%sealed%'
        UNION
        SELECT table_name, 'body' FROM information_schema.columns WHERE table_schema = 'public' AND column_name = 'sealed'
        ORDER BY 1, 2`
      const listed = sealedColumns.map(({ column, table }) => `${table}.${column}`).sort()
      assert.deepStrictEqual(listed, rows.map(({ column, table }) => `${table}.${column}`).sort())
    })
  )
})

layer(Database.layer, { excludeTestServices: true })("A first admin token that is not used yet", (it) => {
  it.effect("is shown under the next key as it was under the old one", () =>
    Effect.gen(function* () {
      const shownUnder = Effect.fnUntraced(function* (masterKey: MasterKey["Service"]) {
        const keys = ApiKeys.layer.pipe(
          Layer.provide([ApiKeyCache.layer, EventLog.layer]),
          Layer.provide(Identifiers.layer),
          Layer.provide(SecureRandom.layerWebCrypto),
          Layer.provide(Layer.succeed(MasterKey, masterKey))
        )
        const token = yield* Context.get(yield* Layer.build(Layer.fresh(keys)), ApiKeys).bootstrap()
        return Redacted.value(Option.getOrThrow(token))
      })
      const [from, to] = [yield* masterKeyOf(oldKey), yield* masterKeyOf(nextKey)]
      const token = yield* shownUnder(from)
      const { moved } = yield* rotateMasterKey(from, to)
      assert.strictEqual(moved.find(({ table }) => table === "api_keys")?.values, 1)
      assert.strictEqual(yield* shownUnder(to), token)
    })
  )
})

const layerQuiet = Layer.merge(Database.layer, Layer.succeed(References.MinimumLogLevel, "None"))

layer(layerQuiet, { excludeTestServices: true, timeout: 60_000 })("While two instances serve requests", (it) => {
  it.effect(
    "every secret is resealed under the next key without failed requests, and instances with only that key continue",
    () =>
      Effect.gen(function* () {
        const both = { masterKey: oldKey, masterKeyNext: nextKey, webhookAllowLocal: true }
        const servers = [yield* startServer(both), yield* startServer(both)] as const
        const [one, other] = servers
        const { secret, webhook } = yield* one.client.webhooks.create({
          payload: { name: "W", url: "http://127.0.0.1:9/none", is_active: false }
        })
        const create = (server: typeof one, name: string) =>
          server.send({
            method: "POST",
            path: "/api/v1/customers",
            headers: { "idempotency-key": name },
            body: { name, code: name }
          })
        const first = yield* create(one, "first")
        assertAnswered(first, 201)

        let isRotating = true
        const callersFiber = yield* Effect.forkChild(
          Effect.forEach(
            [0, 1, 2, 3],
            (caller) =>
              Effect.gen(function* () {
                for (let index = 0; isRotating; index++) {
                  const [server, another] = index % 2 === 0 ? [one, other] : [other, one]
                  const answer = yield* create(server, `${caller}-${index}`)
                  assertAnswered(answer, 201)
                  assert.strictEqual((yield* create(another, `${caller}-${index}`)).text, answer.text)
                }
              }),
            { concurrency: "unbounded" }
          )
        )
        const { keyId, moved } = yield* rotateMasterKey(
          yield* masterKeyOf(oldKey, nextKey),
          yield* masterKeyOf(nextKey)
        )
        isRotating = false
        yield* Fiber.join(callersFiber)

        assert.deepStrictEqual(yield* keyIds, new Set([keyId]))
        assert.strictEqual(keyId, yield* idOf(yield* masterKeyOf(nextKey)))
        const movedValuesOf = (table: string) => moved.find((each) => each.table === table)?.values ?? 0
        assert.isAbove(movedValuesOf("idempotent_answers"), 0)
        assert.deepStrictEqual([movedValuesOf("signing_keys"), movedValuesOf("webhook_endpoints")], [1, 1])

        const later = yield* startServer({ masterKey: nextKey })
        assert.strictEqual((yield* create(later, "first")).text, first.text)
        assertAnswered(yield* create(later, "later"), 201)
        const sql = yield* SqlClient.SqlClient
        const [row] = yield* sql<{ sealed: Uint8Array }>`
        SELECT secret_sealed AS sealed FROM webhook_endpoints WHERE id = ${webhook.id}`
        const opened = yield* (yield* masterKeyOf(nextKey)).open(row!.sealed, `webhook_endpoints/${webhook.id}`)
        assert.strictEqual(Buffer.from(opened).toString(), secret)
        const refused = yield* Effect.exit(startServer({ masterKey: oldKey }))
        assert.isTrue(Exit.isFailure(refused))
      }).pipe(Effect.scoped)
  )
})

const layerKeyRing = (...keys: Parameters<typeof MasterKey.layerFromKey>) =>
  KeyRing.layer.pipe(Layer.provideMerge(MasterKey.layerFromKey(...keys)), Layer.provide(SecureRandom.layerWebCrypto))

/** The parts of an instance that use master keys, with a test clock. */
const startNode = Effect.fnUntraced(function* (...keys: Parameters<typeof MasterKey.layerFromKey>) {
  const node = yield* Layer.build(Layer.fresh(layerKeyRing(...keys)))
  return Context.get(node, MasterKey)
})

/** A stored response, sealed as an instance seals it now. */
const storeResponse = Effect.fnUntraced(function* (masterKey: MasterKey["Service"], name: string) {
  const sql = yield* SqlClient.SqlClient
  const scope = Buffer.from(name)
  const body = yield* masterKey.seal(Buffer.from(`secret of ${name}`), `idempotent_answers/${scope.toString("hex")}`)
  yield* sql`
    INSERT INTO idempotent_answers (scope, body_hash, status, body, sealed, created_at)
    VALUES (${scope}, ${scope}, 200, ${body}, true, now())`
})

/** Advances the clock until the rotation is complete. */
const running = Effect.fnUntraced(function* <A, E>(rotation: Effect.Effect<A, E, SqlClient.SqlClient>) {
  const fiber = yield* Effect.forkChild(Effect.exit(rotation))
  const sql = yield* SqlClient.SqlClient
  yield* Effect.andThen(TestClock.adjust("1 second"), sql`SELECT 1`).pipe(
    Effect.repeat({ until: () => fiber.pollUnsafe() !== undefined })
  )
  return yield* Fiber.join(fiber)
})

layer(Database.layer)("A rotation of the master key", (it) => {
  it.effect("reseals more rows than one statement can, and resumes after an interruption", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const node = yield* startNode(oldKey, nextKey)
      const names = Array.from({ length: 450 }, (_, index) => `answer-${index}`)
      yield* Effect.forEach(names, (name) => storeResponse(node, name))
      yield* sql`
        CREATE FUNCTION break_off() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
          IF (SELECT count(*) FROM idempotent_answers WHERE substr(body, 2, 4) = substr(NEW.body, 2, 4)) >= 200 THEN
            RAISE EXCEPTION 'broken off'; END IF;
          RETURN NEW; END $$`
      yield* sql`CREATE TRIGGER breaking BEFORE UPDATE ON idempotent_answers FOR EACH ROW EXECUTE FUNCTION break_off()`
      const rotation = rotateMasterKey(yield* masterKeyOf(oldKey, nextKey), yield* masterKeyOf(nextKey))
      assert.isTrue(Exit.isFailure(yield* running(rotation)))
      assert.strictEqual((yield* keyIds).size, 2)
      yield* sql`DROP TRIGGER breaking ON idempotent_answers`
      const { keyId } = yield* yield* running(rotation)
      assert.deepStrictEqual(yield* keyIds, new Set([keyId]))
      const masterKey = yield* masterKeyOf(nextKey)
      for (const name of names) {
        const [row] = yield* sql<{
          body: Uint8Array
        }>`SELECT body FROM idempotent_answers WHERE scope = ${Buffer.from(name)}`
        const context = `idempotent_answers/${Buffer.from(name).toString("hex")}`
        assert.strictEqual(Buffer.from(yield* masterKey.open(row!.body, context)).toString(), `secret of ${name}`)
      }
    }).pipe(Effect.scoped)
  )
})

layer(Database.layer)("A rotation of the master key", (it) => {
  it.effect("is followed by every instance within a second, whichever of the two keys is its first", () =>
    Effect.gen(function* () {
      const nodes = [yield* startNode(nextKey, key(3)), yield* startNode(key(3), nextKey)]
      for (const node of nodes) assert.strictEqual(yield* idOf(node), yield* idOf(yield* masterKeyOf(nextKey)))
      yield* yield* running(rotateMasterKey(yield* masterKeyOf(nextKey, key(3)), yield* masterKeyOf(key(3))))
      yield* TestClock.adjust("1 second")
      const after = yield* idOf(yield* masterKeyOf(key(3)))
      for (const node of nodes) {
        yield* poll(idOf(node), (id) => id === after)
      }
    }).pipe(Effect.scoped)
  )
})

layer(Database.layer)("A rotation of the master key", (it) => {
  it.effect("fails with the reason when an instance still uses the old key", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      yield* storeResponse(yield* masterKeyOf(key(3)), "stubborn")
      yield* sql`
        CREATE FUNCTION put_back() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
          IF OLD.scope = 'stubborn'::bytea THEN RETURN OLD; END IF;
          RETURN NEW; END $$`
      yield* sql`CREATE TRIGGER putting_back BEFORE UPDATE ON idempotent_answers FOR EACH ROW EXECUTE FUNCTION put_back()`
      const exit = yield* running(rotateMasterKey(yield* masterKeyOf(key(3), key(4)), yield* masterKeyOf(key(4))))
      assert.isTrue(Exit.isFailure(exit))
      assert.include(String(exit), "set LICENSING_MASTER_KEY_NEXT on every node")
    }).pipe(Effect.scoped)
  )
})
