import { createPublicKey, verify } from "node:crypto"
import { assert, layer } from "@effect/vitest"
import { Context, Effect, Exit, Layer, Logger, Redacted, type Scope } from "effect"
import { SecureRandom } from "effect/crypto"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import { KeyRing } from "../../../src/platform/signing/KeyRing.ts"
import { MasterKey } from "../../../src/platform/signing/MasterKey.ts"
import { Signer } from "../../../src/platform/signing/Signer.ts"
import { kidOf } from "../../../src/platform/signing/SigningKey.ts"
import { Database } from "../../support/database/Database.ts"

const masterKey = (byte: number) =>
  MasterKey.layerFromKey(Redacted.make(Buffer.alloc(32, byte).toString("base64"))).pipe(
    Layer.provide(SecureRandom.layerWebCrypto)
  )

interface Node {
  readonly keyRing: KeyRing["Service"]
  readonly signer: Signer["Service"]
}

const nodeWith = (key: ReturnType<typeof masterKey>) =>
  Signer.layer.pipe(Layer.provideMerge(KeyRing.layer), Layer.provide([key, SecureRandom.layerWebCrypto]))

/** Starts a node on the test's database, with its own memory. */
const startNode = Effect.fnUntraced(function* (key = masterKey(1)) {
  const services = yield* Layer.build(Layer.fresh(nodeWith(key)))
  const node: Node = { keyRing: Context.get(services, KeyRing), signer: Context.get(services, Signer) }
  return node
})

const currentKid = (node: Node) => Effect.sync(() => node.keyRing.current().kid)

/** Signs, and verifies as a client does: with the published key that the signature's kid names. */
const answerIsVerifiable = Effect.fnUntraced(function* (node: Node) {
  const { bytes, signature } = yield* node.signer.sign({ status: "active" })
  const published = (yield* node.keyRing.published).find((key) => key.kid === signature.kid)
  assert.isDefined(published)
  const key = createPublicKey({
    key: { kty: "OKP", crv: "Ed25519", x: Buffer.from(published.public_key, "base64").toString("base64url") },
    format: "jwk"
  })
  assert.isTrue(verify(null, Buffer.from(bytes), key, Buffer.from(signature.value, "base64")))
  return signature.kid
})

/** Polls the database until the state is reached; the test's own time limit is the bound. */
const until = <E, R>(state: Effect.Effect<boolean, E, R>) =>
  Effect.repeat(Effect.tap(state, Effect.yieldNow), { until: (reached) => reached })

layer(Database.layer, { excludeTestServices: true, timeout: 60_000 })("KeyRing", (it) => {
  const scenario = <A, E>(body: Effect.Effect<A, E, SqlClient.SqlClient | Scope.Scope>) =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      yield* sql`TRUNCATE signing_keys`
      return yield* body
    }).pipe(Effect.scoped, Effect.provide(TestClock.layer()))

  it.effect("creates the first key at the first start and loads it at the next", () =>
    scenario(
      Effect.gen(function* () {
        yield* TestClock.setTime(1_900_000_000_123)
        const first = yield* startNode()
        const published = yield* first.keyRing.published
        const key = first.keyRing.current()
        assert.deepStrictEqual(published, [
          {
            kid: key.kid,
            algorithm: "Ed25519",
            public_key: Buffer.from(key.publicKey).toString("base64"),
            status: "active",
            created_at: 1_900_000_000_123
          }
        ])
        assert.strictEqual(key.kid, kidOf(key.publicKey))
        const second = yield* startNode()
        assert.strictEqual(yield* currentKid(second), key.kid)
        assert.deepStrictEqual(yield* second.keyRing.published, published)
      })
    )
  )

  it.effect("creates one key when many nodes start together", () =>
    scenario(
      Effect.gen(function* () {
        const nodes = yield* Effect.all(
          Array.from({ length: 6 }, () => startNode()),
          { concurrency: "unbounded" }
        )
        const kids = yield* Effect.forEach(nodes, currentKid)
        assert.strictEqual(new Set(kids).size, 1)
        assert.lengthOf(yield* (nodes[0] as Node).keyRing.published, 1)
      })
    )
  )

  it.effect("rotates: the new key signs immediately, both stay published, other nodes follow within a second", () =>
    scenario(
      Effect.gen(function* () {
        const firstKids = yield* startNode()
        const secondKids = yield* startNode()
        const old = yield* currentKid(firstKids)
        yield* TestClock.adjust("1 hour")
        const rotated = yield* firstKids.keyRing.rotate

        assert.strictEqual(yield* currentKid(firstKids), rotated.kid)
        assert.notStrictEqual(rotated.kid, old)
        const published = yield* firstKids.keyRing.published
        assert.deepStrictEqual(published[0], rotated)
        assert.deepStrictEqual(
          published.map(({ kid, status }) => ({ kid, status })),
          [
            { kid: rotated.kid, status: "active" },
            { kid: old, status: "retired" }
          ]
        )
        assert.strictEqual(yield* answerIsVerifiable(firstKids), rotated.kid)
        yield* answerIsVerifiable(secondKids)
        yield* TestClock.adjust("1 second")
        yield* until(Effect.map(currentKid(secondKids), (kid) => kid === rotated.kid))
        assert.strictEqual(yield* answerIsVerifiable(secondKids), rotated.kid)
      })
    )
  )

  it.effect("keeps every response verifiable while rotations on several nodes overlap", () =>
    scenario(
      Effect.gen(function* () {
        const nodes = yield* Effect.all([startNode(), startNode(), startNode()])
        const signing = Effect.forEach(nodes, (node) => Effect.replicateEffect(answerIsVerifiable(node), 30), {
          concurrency: "unbounded"
        })
        const rotating = Effect.forEach([...nodes, ...nodes], (node) => node.keyRing.rotate, {
          concurrency: "unbounded"
        })
        const [, rotated] = yield* Effect.all([signing, rotating], { concurrency: "unbounded" })
        const published = yield* nodes[0].keyRing.published
        assert.lengthOf(published, 1 + rotated.length)
        assert.lengthOf(
          published.filter((key) => key.status === "active"),
          1
        )
        yield* TestClock.adjust("1 second")
        yield* until(
          Effect.map(Effect.forEach(nodes, currentKid), (kids) => kids.every((kid) => kid === published[0]?.kid))
        )
      })
    )
  )

  it.effect("deletes the private half of a retired key", () =>
    scenario(
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const node = yield* startNode()
        yield* node.keyRing.rotate
        const rows = yield* sql<{ status: string; size: number; retired: boolean }>`
          SELECT status, length(private_key_sealed) AS size, retired_at IS NOT NULL AS retired
          FROM signing_keys ORDER BY status`
        assert.deepStrictEqual(rows, [
          { status: "active", size: 65, retired: false },
          { status: "retired", size: 0, retired: true }
        ])
      })
    )
  )

  it.effect("rotates with the caller's transaction: not before its commit, and not after its rollback", () =>
    scenario(
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const node = yield* startNode()
        const old = yield* currentKid(node)
        const undone = yield* node.keyRing.rotate.pipe(
          Effect.andThen(Effect.fail("undone")),
          sql.withTransaction,
          Effect.exit
        )
        assert.isTrue(Exit.isFailure(undone))
        assert.strictEqual(yield* currentKid(node), old)
        assert.lengthOf(yield* node.keyRing.published, 1)

        const rotated = yield* node.keyRing.rotate.pipe(
          Effect.tap(
            Effect.gen(function* () {
              assert.strictEqual(yield* currentKid(node), old)
            })
          ),
          sql.withTransaction
        )
        assert.strictEqual(yield* currentKid(node), rotated.kid)
      })
    )
  )

  it.effect("stops the start when the master key differs, and reports it", () =>
    scenario(
      Effect.gen(function* () {
        const node = yield* startNode()
        const mismatch = yield* Effect.flip(startNode(masterKey(2)))
        assert.strictEqual(mismatch._tag, "MasterKeyMismatch")
        assert.include(mismatch.message, "but the configured master key is")
        assert.lengthOf(yield* node.keyRing.published, 1)
      })
    )
  )

  it.effect("stops the start when the public half was replaced", () =>
    scenario(
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        yield* startNode()
        yield* sql`UPDATE signing_keys SET public_key = ${new Uint8Array(32)}`
        const defect = yield* startNode().pipe(Effect.catchDefect(Effect.succeed))
        assert.instanceOf(defect, Error)
        assert.include((defect as Error).message, "was altered in the database")
      })
    )
  )

  it.effect(
    "keeps the current key while the table cannot be read, logs it once, and follows rotations again afterwards",
    () => {
      const messages: Array<string> = []
      const logger = Logger.make(({ logLevel, message }) => messages.push(`${logLevel} ${[message].flat()[0]}`))
      return scenario(
        Effect.gen(function* () {
          const sql = yield* SqlClient.SqlClient
          const node = yield* startNode()
          const old = yield* currentKid(node)
          const unreadable = Effect.gen(function* () {
            yield* until(Effect.map(TestClock.adjust("500 millis"), () => messages.length > 0))
            for (let pass = 0; pass < 5; pass++) {
              yield* TestClock.adjust("500 millis")
              assert.isTrue(Exit.isFailure(yield* Effect.exit(node.keyRing.published)))
            }
            assert.strictEqual(yield* currentKid(node), old)
          })
          yield* Effect.acquireUseRelease(
            sql`ALTER TABLE signing_keys RENAME TO signing_keys_away`,
            () => unreadable,
            () => sql`ALTER TABLE signing_keys_away RENAME TO signing_keys`
          )
          const rotated = yield* (yield* startNode()).keyRing.rotate
          yield* until(
            Effect.andThen(
              TestClock.adjust("500 millis"),
              Effect.map(currentKid(node), (kid) => kid === rotated.kid)
            )
          )
          assert.deepStrictEqual(messages, [
            "Error The signing keys cannot be read; keeping the current key.",
            "Info The signing keys can be read again."
          ])
        })
      ).pipe(Effect.provide(Logger.layer([logger])))
    }
  )

  it.effect("stops using a key that is no longer published", () =>
    scenario(
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const node = yield* startNode()
        const old = yield* currentKid(node)
        yield* sql`DELETE FROM signing_keys`
        yield* TestClock.adjust("1 second")
        yield* until(Effect.map(currentKid(node), (kid) => kid !== old))
        yield* answerIsVerifiable(node)
      })
    )
  )
})
