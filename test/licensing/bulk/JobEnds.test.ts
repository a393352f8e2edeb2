/** The end of a bulk job, which several nodes may reach. */
import { assert, layer } from "@effect/vitest"
import { Effect, Fiber, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { isLockTimeout } from "../../../src/platform/postgres/queries/Sql.ts"
import { makeBulkWorker } from "../../support/database/BulkWorkers.ts"
import { Database, holdLock, untilBlocked, untilBlockedOn } from "../../support/database/Database.ts"
import { at } from "../../support/database/Exports.ts"
import { makeLicense, makeProduct } from "../../support/http/ProductTokens.ts"
import { TestServer } from "../../support/http/TestServer.ts"

layer(TestServer.layer.pipe(Layer.provideMerge(Database.layer)))("A bulk job", (it) => {
  it.effect("is recorded as completed once, also if a node that stood still ends it after another one", () =>
    Effect.gen(function* () {
      const { client } = yield* TestServer
      const { id } = yield* client.bulkJobs.create({
        payload: { action: "suspend", filter: { product_id: "prod_none" } }
      })
      const passOf = Effect.flatMap(makeBulkWorker, ({ pass }) => Effect.orDie(pass))
      // Both nodes have the job when they go on, the second one because the lease of the first has ended.
      const { release } = yield* holdLock((sql) => sql`LOCK TABLE bulk_job_parts IN ACCESS EXCLUSIVE MODE`)
      const first = yield* Effect.forkChild(passOf, { startImmediately: true })
      const pid = yield* untilBlocked
      const second = yield* Effect.forkChild(at(60)(passOf), { startImmediately: true })
      yield* untilBlockedOn(`pid <> ${pid}`)
      yield* release
      yield* Fiber.joinAll([first, second])
      const { items } = yield* client.events.list({ query: { resource_id: id } })
      assert.deepStrictEqual(
        items.map(({ event_type }) => event_type),
        ["bulk_job.completed", "bulk_job.created"]
      )
    })
  )

  it.effect("does not fail because of locks of other transactions, however long these last", () =>
    Effect.gen(function* () {
      const { client } = yield* TestServer
      const sql = yield* SqlClient.SqlClient
      const license = yield* makeLicense(yield* makeProduct)
      const { id } = yield* client.bulkJobs.create({ payload: { action: "suspend", license_ids: [license.id] } })
      const passOf = Effect.flatMap(makeBulkWorker, ({ pass }) => pass)
      // The last attempt.
      yield* sql`UPDATE bulk_jobs SET attempts = 9 WHERE id = ${id}`
      const { release } = yield* holdLock((holder) => holder`SELECT FROM licenses WHERE id = ${license.id} FOR UPDATE`)
      for (const minute of [1, 2, 3]) assert.isTrue(isLockTimeout(yield* Effect.flip(at(minute * 60)(passOf))))
      yield* release
      yield* at(300)(passOf)
      assert.deepInclude(yield* client.bulkJobs.get({ params: { id } }), { status: "completed", changed: 1 })
    })
  )
})
