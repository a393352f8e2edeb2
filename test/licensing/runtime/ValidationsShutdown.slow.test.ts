/** A process that stops leaves every validation and refusal in the database. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { Database } from "../../support/database/Database.ts"
import { type Answer, assertAnswered, assertRefused } from "../../support/http/Http.ts"
import { startService } from "../../support/processes/Processes.ts"

const hour = 3_600_000
const machine = { fingerprint: "m" }

const counts = (licenseId: string) =>
  Effect.flatMap(
    SqlClient.SqlClient,
    (sql) => sql<{ readonly hour: number; readonly validations: number; readonly refused: number }>`
      SELECT hour, validations, refused FROM license_validations WHERE license_id = ${licenseId} ORDER BY hour`
  )

layer(Database.layer, { excludeTestServices: true, timeout: 60_000 })("A process that is asked to stop", (it) => {
  it.effect("leaves every validation and every refusal behind, and no trace of having written them", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { call, manage, stop } = yield* startService({ LICENSING_CLOCK_OFFSET_SECONDS: "86400" })
      const made = <A>(answer: Answer) => assertAnswered(answer, 201) as A
      const product = made<{ id: string }>(yield* manage("POST", "/products", { name: "P", code: "p" }))
      const policy = made<{ id: string }>(
        yield* manage("POST", `/products/${product.id}/policies`, { name: "P", code: "p", license_type: "perpetual" })
      )
      const { license, license_key } = made<{ license: { id: string }; license_key: string }>(
        yield* manage("POST", "/licenses", { product_id: product.id, policy_id: policy.id })
      )
      const activated = assertAnswered(yield* call(license_key, "activate", machine), 200) as { issued_at: string }
      for (let times = 0; times < 30; times++) {
        assertAnswered(yield* call(license_key, "validate", machine), 200)
        if (times % 3 === 0) assertRefused(yield* call(license_key, "consume", machine), 422, "VALIDATION_ERROR")
      }
      yield* stop
      const issued = Date.parse(activated.issued_at)
      const [count] = yield* counts(license.id)
      assert.isAtLeast(count!.hour, issued - (issued % hour), "by the service's clock")
      assert.strictEqual(
        (yield* counts(license.id)).reduce((sum, { validations }) => sum + validations, 0),
        30
      )
      assert.strictEqual((yield* sql`SELECT FROM refusals WHERE license_id = ${license.id}`).length, 10)
      assert.isEmpty(yield* sql`SELECT FROM handovers`)
    })
  )
})
