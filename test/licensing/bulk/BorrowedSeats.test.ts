/** Bulk jobs that reset devices of licenses with borrowed seats. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { makeBulkWorker } from "../../support/database/BulkWorkers.ts"
import { Database } from "../../support/database/Database.ts"
import { TestServer } from "../../support/http/TestServer.ts"

layer(TestServer.layer.pipe(Layer.provideMerge(Database.layer)), { timeout: 60_000 })("A bulk job", (it) => {
  it.effect("that resets devices frees borrowed seats only if it says so", () =>
    Effect.gen(function* () {
      const { client, connect } = yield* TestServer
      const product = yield* client.products.create({ payload: { name: "Editor", code: "editor" } })
      const policy = yield* client.policies.create({
        params: { id: product.id },
        payload: { name: "Team", code: "team", license_type: "perpetual", max_floating_users: 1, borrow_days_max: 30 }
      })
      const { license, license_key } = yield* client.licenses.create({
        payload: { product_id: product.id, policy_id: policy.id }
      })
      const { runtime } = yield* connect({ licenseKey: license_key })
      const until = license.created_at + 9 * 86_400_000
      yield* runtime.checkout({ payload: { fingerprint: "lost laptop", until } })
      const worker = yield* makeBulkWorker
      const reset = Effect.fnUntraced(function* (release_borrowed: boolean) {
        const { id } = yield* client.bulkJobs.create({
          payload: { action: "reset_devices", license_ids: [license.id], parameters: { release_borrowed } }
        })
        yield* Effect.orDie(worker.pass)
        const { changed } = yield* client.bulkJobs.get({ params: { id } })
        const { items } = yield* client.licenses.listLeases({ params: { id: license.id }, query: {} })
        return { changed, borrowed: items.map(({ borrowed_until }) => borrowed_until) }
      })
      assert.deepStrictEqual(yield* reset(false), { changed: 1, borrowed: [until] })
      assert.deepStrictEqual(yield* reset(true), { changed: 1, borrowed: [] })
      const seat = yield* runtime.checkout({ payload: { fingerprint: "new laptop" } })
      assert.strictEqual(seat.data.status, "active")
    })
  )
})
