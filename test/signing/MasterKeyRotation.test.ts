import { assert, layer } from "@effect/vitest"
import { Context, Effect, Exit, Fiber, Layer, Option, Redacted, References } from "effect"
import { SecureRandom } from "effect/crypto"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import { KeyRing } from "../../src/signing/KeyRing.ts"
import { keyIdOf, MasterKey } from "../../src/signing/MasterKey.ts"
import { rotateMasterKey } from "../../src/signing/MasterKeyRotation.ts"
import { sealedColumns } from "../../src/signing/SealedColumns.ts"
import { Database } from "../support/Database.ts"
import { assertAnswered } from "../support/Envelopes.ts"
import { startServer } from "../support/Servers.ts"

/** Beside others on a busy machine. */
const minute = 60_000

const key = (byte: number) => Redacted.make(Buffer.alloc(32, byte).toString("base64"))
const [old, next] = [key(1), key(2)]

const masterKeyOf = Effect.fnUntraced(function* (...keys: Parameters<typeof MasterKey.layerFromKey>) {
  const made = MasterKey.layerFromKey(...keys).pipe(Layer.provide(SecureRandom.layerWebCrypto))
  return Context.get(yield* Layer.build(Layer.fresh(made)), MasterKey)
})

/** The ids of the master keys that anything lies under. */
const keyIds = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const found = yield* Effect.forEach(
    sealedColumns,
    ({ column, table, where }) =>
      sql<{ sealed: Uint8Array }>`
      SELECT ${sql(column)} AS sealed FROM ${sql(table)}
      WHERE length(${sql(column)}) > 0 AND ${where === undefined ? sql`TRUE` : sql(where)}`
  )
  return new Set(found.flat().map(({ sealed }) => Option.getOrThrow(keyIdOf(sealed))))
})

const idOf = (masterKey: MasterKey["Service"]) =>
  Effect.map(masterKey.seal(new Uint8Array(), ""), (sealed) => Option.getOrThrow(keyIdOf(sealed)))

layer(Database.layer)("The list of sealed columns", (it) => {
  it.effect(
    "names every column of the schema that is sealed",
    () =>
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
      }),
    minute
  )
})

const Quiet = Layer.merge(Database.layer, Layer.succeed(References.MinimumLogLevel, "None"))

layer(Quiet, { excludeTestServices: true, timeout: 60_000 })("While two instances serve", (it) => {
  it.effect(
    "everything comes under the next key, nobody notices, and instances with that key alone go on",
    () =>
      Effect.gen(function* () {
        const both = { masterKey: old, masterKeyNext: next, webhookAllowLocal: true }
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

        let moving = true
        const calling = yield* Effect.forkChild(
          Effect.forEach(
            [0, 1, 2, 3],
            (caller) =>
              Effect.gen(function* () {
                for (let index = 0; moving; index++) {
                  const [server, another] = index % 2 === 0 ? [one, other] : [other, one]
                  const answer = yield* create(server, `${caller}-${index}`)
                  assertAnswered(answer, 201)
                  assert.strictEqual((yield* create(another, `${caller}-${index}`)).text, answer.text)
                }
              }),
            { concurrency: "unbounded" }
          )
        )
        const { keyId, moved } = yield* rotateMasterKey(yield* masterKeyOf(old, next), yield* masterKeyOf(next))
        moving = false
        yield* Fiber.join(calling)

        assert.deepStrictEqual(yield* keyIds, new Set([keyId]))
        assert.strictEqual(keyId, yield* idOf(yield* masterKeyOf(next)))
        const movedOf = (table: string) => moved.find((each) => each.table === table)?.values ?? 0
        assert.isAbove(movedOf("idempotent_answers"), 0)
        assert.deepStrictEqual([movedOf("signing_keys"), movedOf("webhook_endpoints")], [1, 1])

        const later = yield* startServer({ masterKey: next })
        assert.strictEqual((yield* create(later, "first")).text, first.text)
        assertAnswered(yield* create(later, "later"), 201)
        const sql = yield* SqlClient.SqlClient
        const [row] = yield* sql<{ sealed: Uint8Array }>`
        SELECT secret_sealed AS sealed FROM webhook_endpoints WHERE id = ${webhook.id}`
        const opened = yield* (yield* masterKeyOf(next)).open(row!.sealed, `webhook_endpoints/${webhook.id}`)
        assert.strictEqual(Buffer.from(opened).toString(), secret)
        const refused = yield* Effect.exit(startServer({ masterKey: old }))
        assert.isTrue(Exit.isFailure(refused))
      }).pipe(Effect.scoped),
    minute
  )
})

const KeyRingOf = (...keys: Parameters<typeof MasterKey.layerFromKey>) =>
  KeyRing.layer.pipe(Layer.provideMerge(MasterKey.layerFromKey(...keys)), Layer.provide(SecureRandom.layerWebCrypto))

/** An instance as far as master keys go, its clock the test's. */
const startNode = Effect.fnUntraced(function* (...keys: Parameters<typeof MasterKey.layerFromKey>) {
  const node = yield* Layer.build(Layer.fresh(KeyRingOf(...keys)))
  return Context.get(node, MasterKey)
})

/** A kept answer, sealed as an instance seals it at this moment. */
const keep = Effect.fnUntraced(function* (masterKey: MasterKey["Service"], name: string) {
  const sql = yield* SqlClient.SqlClient
  const scope = Buffer.from(name)
  const body = yield* masterKey.seal(Buffer.from(`secret of ${name}`), `idempotent_answers/${scope.toString("hex")}`)
  yield* sql`
    INSERT INTO idempotent_answers (scope, body_hash, status, body, sealed, created_at)
    VALUES (${scope}, ${scope}, 200, ${body}, true, now())`
})

/** Lets time pass until the rotation is over. */
const running = Effect.fnUntraced(function* <A, E>(rotation: Effect.Effect<A, E, SqlClient.SqlClient>) {
  const fiber = yield* Effect.forkChild(Effect.exit(rotation))
  const sql = yield* SqlClient.SqlClient
  yield* Effect.andThen(TestClock.adjust("1 second"), sql`SELECT 1`).pipe(
    Effect.repeat({ until: () => fiber.pollUnsafe() !== undefined })
  )
  return yield* Fiber.join(fiber)
})

layer(Database.layer)("A rotation of the master key", (it) => {
  it.effect(
    "moves more than one statement's worth, and is taken up again where it broke off",
    () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const node = yield* startNode(old, next)
        const names = Array.from({ length: 450 }, (_, index) => `answer-${index}`)
        yield* Effect.forEach(names, (name) => keep(node, name))
        yield* sql`
        CREATE FUNCTION break_off() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
          IF (SELECT count(*) FROM idempotent_answers WHERE substr(body, 2, 4) = substr(NEW.body, 2, 4)) >= 200 THEN
            RAISE EXCEPTION 'broken off'; END IF;
          RETURN NEW; END $$`
        yield* sql`CREATE TRIGGER breaking BEFORE UPDATE ON idempotent_answers FOR EACH ROW EXECUTE FUNCTION break_off()`
        const rotation = rotateMasterKey(yield* masterKeyOf(old, next), yield* masterKeyOf(next))
        assert.isTrue(Exit.isFailure(yield* running(rotation)))
        assert.strictEqual((yield* keyIds).size, 2)
        yield* sql`DROP TRIGGER breaking ON idempotent_answers`
        const { keyId } = yield* yield* running(rotation)
        assert.deepStrictEqual(yield* keyIds, new Set([keyId]))
        const masterKey = yield* masterKeyOf(next)
        for (const name of names) {
          const [row] = yield* sql<{
            body: Uint8Array
          }>`SELECT body FROM idempotent_answers WHERE scope = ${Buffer.from(name)}`
          const place = `idempotent_answers/${Buffer.from(name).toString("hex")}`
          assert.strictEqual(Buffer.from(yield* masterKey.open(row!.body, place)).toString(), `secret of ${name}`)
        }
      }).pipe(Effect.scoped),
    minute
  )
})

layer(Database.layer)("A rotation of the master key", (it) => {
  it.effect(
    "is followed by every instance within a second, whichever of the two keys is its first",
    () =>
      Effect.gen(function* () {
        const nodes = [yield* startNode(next, key(3)), yield* startNode(key(3), next)]
        for (const node of nodes) assert.strictEqual(yield* idOf(node), yield* idOf(yield* masterKeyOf(next)))
        yield* yield* running(rotateMasterKey(yield* masterKeyOf(next, key(3)), yield* masterKeyOf(key(3))))
        yield* TestClock.adjust("1 second")
        const after = yield* idOf(yield* masterKeyOf(key(3)))
        for (const node of nodes) {
          yield* idOf(node).pipe(Effect.repeat({ until: (id) => id === after }))
        }
      }).pipe(Effect.scoped),
    minute
  )
})

layer(Database.layer)("A rotation of the master key", (it) => {
  it.effect(
    "says so where an instance goes on with the old key",
    () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        yield* keep(yield* masterKeyOf(key(3)), "stubborn")
        yield* sql`
        CREATE FUNCTION put_back() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
          IF OLD.scope = 'stubborn'::bytea THEN RETURN OLD; END IF;
          RETURN NEW; END $$`
        yield* sql`CREATE TRIGGER putting_back BEFORE UPDATE ON idempotent_answers FOR EACH ROW EXECUTE FUNCTION put_back()`
        const exit = yield* running(rotateMasterKey(yield* masterKeyOf(key(3), key(4)), yield* masterKeyOf(key(4))))
        assert.isTrue(Exit.isFailure(exit))
        assert.include(String(exit), "set LICENSING_MASTER_KEY_NEXT on every node")
      }).pipe(Effect.scoped),
    minute
  )
})
