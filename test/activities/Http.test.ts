/** The activities feed over HTTP: what stands in it, by each filter. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { Refusals } from "../../src/activities/Refusals.ts"
import { layerActive, walk } from "../support/Activity.ts"
import { issue } from "../support/Issued.ts"

layer(layerActive(), { timeout: 60_000 })("Activities", (it) => {
  it.effect("probe", () =>
    Effect.gen(function* () {
      const { pass } = yield* Refusals
      const license = yield* issue({ max_activations: 1 })
      const binding = { fingerprint: "machine-1" }
      yield* license.runtime.activate({ payload: binding })
      yield* Effect.exit(license.runtime.activate({ payload: { fingerprint: "machine-2" } }))
      yield* Effect.exit(license.runtime.validate({ payload: { fingerprint: "machine-3" } }))
      yield* Effect.exit(license.runtime.consume({ payload: { ...binding, feature_code: "nothing", event_id: "e1" } }))
      yield* pass
      yield* license.post("suspend")
      yield* Effect.exit(license.runtime.validate({ payload: binding }))
      yield* Effect.exit(license.runtime.heartbeat({ payload: { lease_token: "none" } }))
      yield* pass
      yield* license.post("reinstate")
      console.log(JSON.stringify(yield* walk(), null, 1))
      assert.isTrue(true)
    })
  )
})
