/** The event counter, held by a commit elsewhere that takes long: changes wait for it in their groups, and no license counts as locked. */
import { assert, layer } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { SqlClient } from "effect/sql"
import { columns } from "../../../src/platform/postgres/driver/Parameters.ts"
import { openSession, type ServerSession } from "../../../src/platform/postgres/driver/Postgres.ts"
import { Database, untilBlocked } from "../../support/database/Database.ts"
import { assertAnswered, assertRefused } from "../../support/http/Http.ts"
import { makeMetered } from "../../support/http/IssuedLicenses.ts"
import { TestServer } from "../../support/http/TestServer.ts"
import { poll } from "../../support/rules/Poll.ts"

/** Several times what a commit waits for a license, and less than it waits for the counter. */
const holdSeconds = 1.2
const counter = "SELECT FROM event_sequence FOR UPDATE"
const lockedMessage = "The license is locked by another change: send the request again in a moment."
const busyMessage =
  "The event log is busy, because other changes take long to commit: send the request again in a moment."

/** Holds locks in an open transaction until `test` has ended. */
const whileLocked = Effect.fnUntraced(function* <A, E, R>(
  locks: ReadonlyArray<string>,
  test: (holder: ServerSession) => Effect.Effect<A, E, R>
) {
  const session = yield* openSession((yield* Database).url)
  yield* session.values("BEGIN")
  for (const lock of locks) yield* session.values(lock)
  const result = yield* test(session)
  yield* session.values("ROLLBACK")
  return result
}, Effect.scoped)

/** Of changes that wait from here on for as long as a slow commit takes. */
const holdLong = (holder: ServerSession) =>
  Effect.andThen(holder.values(`SELECT pg_sleep(${holdSeconds})`), holder.values("ROLLBACK"))

layer(TestServer.layer, { excludeTestServices: true, timeout: 120_000 })(
  "An event counter that is held for long",
  (it) => {
    const consume = Effect.fnUntraced(function* (licenseKey: string, event_id: string) {
      const { send } = yield* TestServer
      return yield* send({
        method: "POST",
        path: "/api/v1/license/consume",
        headers: { authorization: `License ${licenseKey}` },
        body: { fingerprint: "a machine", feature_code: "exports", event_id }
      })
    })
    const post = Effect.fnUntraced(function* (path: string, body?: unknown) {
      const { send } = yield* TestServer
      return yield* send({ method: "POST", path: `/api/v1/${path}`, ...(body === undefined ? {} : { body }) })
    })
    const revisions = Effect.fnUntraced(function* (ids: ReadonlyArray<string>) {
      const sql = yield* SqlClient.SqlClient
      return (yield* sql`SELECT DISTINCT revision FROM licenses WHERE id = ANY(${columns.text(ids)})`).length
    })

    it.effect("delays changes of several licenses, which are committed as one group", () =>
      Effect.gen(function* () {
        const [first, ...others] = yield* Effect.replicateEffect(makeMetered, 9)
        yield* whileLocked([counter], (holder) =>
          Effect.gen(function* () {
            const begun = yield* Effect.forkChild(consume(first!.license_key, "first"))
            yield* untilBlocked
            const changes = others.map(({ license, license_key }, index) =>
              index % 2 === 0 ? consume(license_key, "other") : post(`licenses/${license.id}/suspend`)
            )
            const waiting = yield* Effect.forkChild(
              Effect.all([...changes, post("products", { name: "P", code: "beside-a-slow-commit" })], {
                concurrency: "unbounded"
              })
            )
            yield* holdLong(holder)
            const answers = [yield* Fiber.join(begun), ...(yield* Fiber.join(waiting))]
            for (const { status, text } of answers) assert.isBelow(status, 300, text)
          })
        )
        assert.strictEqual(yield* revisions(others.map(({ license }) => license.id)), 1)
      })
    )

    it.effect("leaves a license that an operator holds the only one that is refused as locked", () =>
      Effect.gen(function* () {
        const [held, ...others] = yield* Effect.replicateEffect(makeMetered, 4)
        const [operator, slow] = [`SELECT FROM licenses WHERE id = '${held!.license.id}' FOR UPDATE`, counter]
        yield* whileLocked([operator], () =>
          whileLocked([slow], (holder) =>
            Effect.gen(function* () {
              const asked = yield* Effect.forkChild(
                Effect.all(
                  [held!, ...others].map(({ license_key }) => consume(license_key, "beside")),
                  { concurrency: "unbounded" }
                )
              )
              yield* untilBlocked
              yield* holdLong(holder)
              const [refused, ...answers] = yield* Fiber.join(asked)
              for (const { status, text } of answers) assert.strictEqual(status, 200, text)
              assertRefused(refused!, 503, "NOT_READY")
              assert.strictEqual(refused!.error.message, lockedMessage)
            })
          )
        )
      })
    )

    it.effect("makes the node not ready once changes were refused, and ready again when it is free", () =>
      Effect.gen(function* () {
        const { send } = yield* TestServer
        const { license_key } = yield* makeMetered
        const readyz = send({ path: "/readyz" })
        const until = (status: number) => poll(readyz, (answer) => answer.status === status)
        yield* whileLocked([counter], () =>
          Effect.gen(function* () {
            assertAnswered(yield* readyz, 200)
            assertRefused(yield* consume(license_key, "readiness"), 503, "NOT_READY")
            assertRefused(yield* until(503), 503, "NOT_READY", "event_counter")
            assertAnswered(
              yield* send({
                method: "POST",
                path: "/api/v1/license/check",
                headers: { authorization: `License ${license_key}` },
                body: { fingerprint: "a machine" }
              }),
              200
            )
          })
        )
        // Nothing is written meanwhile.
        assertAnswered(yield* until(200), 200)
        assert.strictEqual((yield* consume(license_key, "readiness")).status, 200)
      })
    )

    it.effect("beyond the limit refuses changes, says why, and leaves nothing of them", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const metered = yield* Effect.replicateEffect(makeMetered, 3)
        const ids = metered.map(({ license }) => license.id)
        const state = sql`
        SELECT id, status, total_consumptions, revision, (SELECT count(*) FROM usage_ledger WHERE license_id = id) AS rows,
          (SELECT last FROM event_sequence) AS events, (SELECT count(*) FROM webhook_endpoints) AS endpoints
        FROM licenses WHERE id = ANY(${columns.text(ids)}) ORDER BY id`
        const before = yield* state
        yield* whileLocked([counter], () =>
          Effect.gen(function* () {
            const answers = yield* Effect.all(
              [
                consume(metered[0]!.license_key, "refused"),
                consume(metered[1]!.license_key, "refused"),
                post(`licenses/${ids[2]}/suspend`),
                post("products", { name: "P", code: "refused" }),
                post("webhooks", { name: "W", url: "https://example.com/", event_types: ["license.created"] })
              ],
              { concurrency: "unbounded" }
            )
            for (const answer of answers) {
              assertRefused(answer, 503, "NOT_READY")
              assert.strictEqual(answer.error.message, busyMessage)
            }
          })
        )
        assert.deepStrictEqual(yield* state, before)
        assert.strictEqual((yield* consume(metered[0]!.license_key, "refused")).status, 200)
      })
    )
  }
)
