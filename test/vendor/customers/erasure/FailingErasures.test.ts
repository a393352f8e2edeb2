/** Erasures whose steps fail. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { Erasures } from "../../../../src/vendor/customers/erasure/Erasures.ts"
import { assertGone, type ErasureBody, layerErasures, withCustomer } from "../../../support/database/Erasures.ts"
import { freshKey, issue } from "../../../support/http/IssuedLicenses.ts"
import { TestServer } from "../../../support/http/TestServer.ts"

layer(layerErasures, { timeout: 60_000 })("An erasure that fails", (it) => {
  it.effect("lets others go on, tells of it, and is tried again after pauses that grow", () =>
    Effect.gen(function* () {
      const { send } = yield* TestServer
      const sql = yield* SqlClient.SqlClient
      const { pass, step } = yield* Erasures
      const [failing, other] = [yield* withCustomer, yield* withCustomer]
      const license = yield* issue({}, { customer_id: failing.id, customer_name: failing.name })
      yield* sql`
        CREATE FUNCTION fail_on_erasure() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN RAISE EXCEPTION 'the test lets it fail'; END $$`
      yield* sql`CREATE TRIGGER fail_on_erasure BEFORE UPDATE OF customer_name ON licenses FOR EACH ROW
        WHEN (OLD.customer_name IS NOT NULL AND NEW.customer_name IS NULL) EXECUTE FUNCTION fail_on_erasure()`
      yield* failing.request(freshKey())
      yield* other.request(freshKey())
      yield* pass
      yield* assertGone([other.name, other.email])

      const row = Effect.map(
        sql<{ readonly attempts: number; readonly pause: number | null }>`
          SELECT attempts, extract(epoch FROM retry_at - requested_at)::float8 AS pause FROM erasures`,
        ([row]) => row!
      )
      const first = yield* row
      assert.strictEqual(first.attempts, 1)
      const metrics = (yield* send({ path: "/metrics" })).text
      const waiting = Number(/licensing_oldest_waiting_seconds\{queue="erasures"\} (\S+)/.exec(metrics)?.[1])
      assert.isAtLeast(waiting, 0)
      assert.isFalse(yield* step(), "waits for its next attempt")

      yield* sql`UPDATE erasures SET retry_at = '1960-01-01Z'`
      assert.isTrue(yield* step())
      const second = yield* row
      assert.strictEqual(second.attempts, 2)
      assert.isAbove(second.pause!, first.pause!)
      const told = (yield* failing.request()).json as {
        data: ErasureBody["data"] & { failed_attempts?: number; retry_at?: string }
      }
      assert.deepInclude(told.data, { customer_id: failing.id, status: "erasing", failed_attempts: 3 })
      assert.isDefined(told.data.retry_at)

      yield* sql`DROP TRIGGER fail_on_erasure ON licenses`
      yield* failing.request()
      while (yield* step(failing.id));
      const { data } = (yield* failing.request()).json as ErasureBody
      assert.hasAllKeys(data, ["customer_id", "status", "erased_at"])
      yield* assertGone([failing.name, failing.email])
      assert.strictEqual((yield* send({ path: license.path })).status, 200)
    })
  )

  it.effect("a refusal meanwhile is not repeated afterwards to a request with the same Idempotency-Key", () =>
    Effect.gen(function* () {
      const { client, send } = yield* TestServer
      const { erase, id, request } = yield* withCustomer
      const product = yield* client.products.create({ payload: { name: "Editor", code: "asked-again" } })
      const order = (headers: object) =>
        send({
          method: "POST",
          path: `/api/v1/products/${product.id}/orders`,
          headers: { ...headers },
          body: { external_system: "shop", external_id: "4711", status: "paid", customer_id: id }
        })
      const key = freshKey()
      // With a key the request only begins the erasure.
      yield* request(freshKey())
      const refused = yield* order(key)
      assert.strictEqual(refused.status, 409, refused.text)
      assert.strictEqual(refused.error.detail, "customer_id")
      yield* erase
      assert.strictEqual((yield* order(key)).status, 201)
    })
  )
})
