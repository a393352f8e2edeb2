/** Locks that another transaction holds, as an operator's: they disturb only what needs the locked row, and that is refused soon. */
import { assert, layer } from "@effect/vitest"
import { Duration, Effect, Fiber } from "effect"
import { openSession } from "../../../src/postgres/Postgres.ts"
import { Database } from "../../support/Database.ts"
import { assertRefused } from "../../support/Http.ts"
import { makeMetered } from "../../support/IssuedLicenses.ts"
import { TestServer } from "../../support/TestServer.ts"

/** A refusal comes within 5 seconds. The rest is for a busy machine; a statement that only its own limit ends takes 30. */
const refusedMillisMax = 20_000
/** Other licenses wait for one lock timeout of a commit, not for that of other statements, which is 4 seconds. */
const otherMillisMax = 3_500

/** What most waits were like, on a machine that stands still from time to time. */
const median = (values: ReadonlyArray<number>): number => values.toSorted((a, b) => a - b)[values.length >> 1]!

layer(TestServer.layer, { excludeTestServices: true, timeout: 120_000 })(
  "A lock that another transaction holds",
  (it) => {
    const consume = Effect.fnUntraced(function* (licenseKey: string, event_id: string) {
      const { send } = yield* TestServer
      return yield* Effect.timed(
        send({
          method: "POST",
          path: "/api/v1/license/consume",
          headers: { authorization: `License ${licenseKey}` },
          body: { fingerprint: "a machine", feature_code: "exports", event_id }
        })
      )
    })
    /** Holds the lock in an open transaction until `test` has ended. */
    const whileLocked = Effect.fnUntraced(function* <A, E, R>(lock: string, test: Effect.Effect<A, E, R>) {
      const session = yield* openSession((yield* Database).url)
      yield* session.values("BEGIN")
      yield* session.values(lock)
      const result = yield* test
      yield* session.values("ROLLBACK")
      return result
    }, Effect.scoped)

    it.effect("on a license refuses changes of that license with 503, and no other license waits for it", () =>
      Effect.gen(function* () {
        const { send } = yield* TestServer
        const [locked, ...others] = [yield* makeMetered, yield* makeMetered, yield* makeMetered, yield* makeMetered]
        const waits: Array<number> = []
        yield* whileLocked(
          `SELECT FROM licenses WHERE id = '${locked.license.id}' FOR UPDATE`,
          Effect.gen(function* () {
            const refused = yield* Effect.forkChild(
              Effect.all(
                [0, 1, 2].map((index) => consume(locked.license_key, `locked-${index}`)),
                { concurrency: 3 }
              )
            )
            for (let index = 0; index < 40; index++) {
              const answers = yield* Effect.forEach(others, (other) => consume(other.license_key, `other-${index}`), {
                concurrency: 3
              })
              for (const [took, { status, text }] of answers) {
                assert.strictEqual(status, 200, text)
                waits.push(Duration.toMillis(took))
              }
            }
            for (const [took, answer] of yield* Fiber.join(refused)) {
              assertRefused(answer, 503, "NOT_READY")
              assert.strictEqual(answer.headers["retry-after"], "1")
              assert.isBelow(Duration.toMillis(took), refusedMillisMax)
            }
            const path = `/api/v1/licenses/${locked.license.id}`
            const [took, suspended] = yield* Effect.timed(send({ method: "POST", path: `${path}/suspend` }))
            assertRefused(suspended, 503, "NOT_READY")
            assert.isBelow(Duration.toMillis(took), refusedMillisMax)
            assert.strictEqual((yield* send({ path })).status, 200)
          })
        )
        assert.isBelow(median(waits), otherMillisMax)
        const [, { status, json }] = yield* consume(locked.license_key, "locked-0")
        assert.strictEqual(status, 200)
        // None of the refused consumptions was counted.
        const { features } = (json as { data: { features: Array<{ code: string; consumed: number }> } }).data
        assert.strictEqual(features.find(({ code }) => code === "exports")?.consumed, 1)
      })
    )

    it.effect("on one device of a license refuses that license only", () =>
      Effect.gen(function* () {
        const [locked, other] = [yield* makeMetered, yield* makeMetered]
        const { send } = yield* TestServer
        yield* whileLocked(
          `SELECT FROM devices WHERE license_id = '${locked.license.id}' FOR UPDATE`,
          Effect.gen(function* () {
            const deactivate = send({
              method: "POST",
              path: "/api/v1/license/deactivate",
              headers: { authorization: `License ${locked.license_key}` },
              body: { fingerprint: "a machine" }
            })
            const [refused, [took, consumed]] = yield* Effect.all(
              [Effect.timed(deactivate), consume(other.license_key, "first")],
              { concurrency: 2 }
            )
            assertRefused(refused[1], 503, "NOT_READY")
            assert.isBelow(Duration.toMillis(refused[0]), refusedMillisMax)
            assert.strictEqual(consumed.status, 200)
            assert.isBelow(Duration.toMillis(took), otherMillisMax)
          })
        )
      })
    )

    it.effect("on one device delays no validation for long, of its license or of another", () =>
      Effect.gen(function* () {
        const [locked, other] = [yield* makeMetered, yield* makeMetered]
        const { send } = yield* TestServer
        const validate = ({ license_key }: typeof locked) =>
          Effect.timed(
            send({
              method: "POST",
              path: "/api/v1/license/validate",
              headers: { authorization: `License ${license_key}` },
              body: { fingerprint: "a machine" }
            })
          )
        yield* whileLocked(
          `SELECT FROM devices WHERE license_id = '${locked.license.id}' FOR UPDATE`,
          Effect.gen(function* () {
            const answers = yield* Effect.all([validate(locked), validate(other)], { concurrency: 2 })
            for (const [took, { status, text }] of answers) {
              assert.strictEqual(status, 200, text)
              assert.isBelow(Duration.toMillis(took), otherMillisMax)
            }
          })
        )
        const { json } = yield* send({ path: `/api/v1/licenses/${other.license.id}/devices` })
        const [device] = (json as { data: ReadonlyArray<{ last_validated_at?: string }> }).data
        assert.isDefined(device?.last_validated_at)
      })
    )

    it.effect("on the event counter refuses every change with 503 until it ends", () =>
      Effect.gen(function* () {
        const { client, send } = yield* TestServer
        const { license_key } = yield* makeMetered
        const rename = send({ method: "POST", path: "/api/v1/products", body: { name: "P", code: "counter-locked" } })
        yield* whileLocked(
          "SELECT FROM event_sequence FOR UPDATE",
          Effect.gen(function* () {
            const answers = yield* Effect.all([consume(license_key, "first"), Effect.timed(rename)], { concurrency: 2 })
            for (const [took, answer] of answers) {
              assertRefused(answer, 503, "NOT_READY")
              assert.isBelow(Duration.toMillis(took), refusedMillisMax)
            }
          })
        )
        assert.strictEqual((yield* consume(license_key, "first"))[1].status, 200)
        yield* client.products.create({ payload: { name: "P", code: "counter-locked" } })
      })
    )
  }
)
