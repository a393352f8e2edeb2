/** A runtime request is decided each time: an Idempotency-Key has no effect on it. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { RuntimePaths, runtimePaths } from "../../support/http/FastPath.ts"
import { assertAnswered, assertRefused } from "../../support/http/Http.ts"
import { issue } from "../../support/http/IssuedLicenses.ts"

layer(RuntimePaths.layerWith(), { timeout: 60_000 })("A runtime request with an Idempotency-Key", (it) => {
  for (const path of runtimePaths) {
    it.effect(`is refused after the revocation of a license that it was served for before: ${path}`, () =>
      Effect.gen(function* () {
        const { asked, remember } = yield* RuntimePaths
        const license = yield* issue()
        yield* remember(license)
        yield* license.runtime.activate({ payload: { fingerprint: "m" } })
        const key = { "idempotency-key": "one key" }
        for (const operation of ["validate", "check"]) {
          const first = yield* asked(path, license.license_key, operation, { fingerprint: "m" }, key)
          assert.strictEqual((assertAnswered(first, 200) as { status: string }).status, "active")
          const again = yield* asked(path, license.license_key, operation, { fingerprint: "m" }, key)
          assertAnswered(again, 200)
          assert.notProperty(again.headers, "idempotency-replayed")
        }
        assertAnswered(yield* license.post("revoke"), 200)
        for (const operation of ["validate", "check"]) {
          const refused = yield* asked(path, license.license_key, operation, { fingerprint: "m" }, key)
          assertRefused(refused, 403, "LICENSE_REVOKED")
        }
      })
    )

    it.effect(`may have any key, and none is compared with another request's body: ${path}`, () =>
      Effect.gen(function* () {
        const { asked, remember } = yield* RuntimePaths
        const license = yield* issue({ max_activations: 0 })
        yield* remember(license)
        for (const [index, key] of ["", "k", "k", "k".repeat(300)].entries()) {
          const body = { fingerprint: `m${index}` }
          assertAnswered(yield* asked(path, license.license_key, "activate", body, { "idempotency-key": key }), 200)
        }
      })
    )
  }
})
