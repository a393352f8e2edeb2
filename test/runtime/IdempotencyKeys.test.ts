/** A runtime request is decided each time: an Idempotency-Key has no effect on it. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { BothWays, ways } from "../support/BothWays.ts"
import { assertAnswered, assertRefused } from "../support/Envelopes.ts"
import { issue } from "../support/Issued.ts"

layer(BothWays.layerWith(), { timeout: 60_000 })("A runtime request with an Idempotency-Key", (it) => {
  for (const way of ways) {
    it.effect(`is refused after the revocation of a license that it was served for before: ${way}`, () =>
      Effect.gen(function* () {
        const { asked, remember } = yield* BothWays
        const license = yield* issue()
        yield* remember(license)
        yield* license.runtime.activate({ payload: { fingerprint: "m" } })
        const key = { "idempotency-key": "one key" }
        for (const operation of ["validate", "check"]) {
          const first = yield* asked(way, license.license_key, operation, { fingerprint: "m" }, key)
          assert.strictEqual((assertAnswered(first, 200) as { status: string }).status, "active")
          const again = yield* asked(way, license.license_key, operation, { fingerprint: "m" }, key)
          assertAnswered(again, 200)
          assert.notProperty(again.headers, "idempotency-replayed")
        }
        assertAnswered(yield* license.post("revoke"), 200)
        for (const operation of ["validate", "check"]) {
          const refused = yield* asked(way, license.license_key, operation, { fingerprint: "m" }, key)
          assertRefused(refused, 403, "LICENSE_REVOKED")
        }
      })
    )

    it.effect(`may have any key, and none is compared with another request's body: ${way}`, () =>
      Effect.gen(function* () {
        const { asked, remember } = yield* BothWays
        const license = yield* issue({ max_activations: 0 })
        yield* remember(license)
        for (const [index, key] of ["", "k", "k", "k".repeat(300)].entries()) {
          const body = { fingerprint: `m${index}` }
          assertAnswered(yield* asked(way, license.license_key, "activate", body, { "idempotency-key": key }), 200)
        }
      })
    )
  }
})
