/** The application kit starts a trial without a license key. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { TestServer } from "../../support/http/TestServer.ts"
import { days, hours, licensed, said } from "./Machines.ts"

/** Awaits a promise of the kit. */
const done = <A>(promise: Promise<A>) => Effect.promise(() => promise)

const offered = Effect.gen(function* () {
  const scene = yield* licensed()
  yield* scene.client.policies.create({
    params: { id: scene.license.product_id },
    payload: {
      name: "Trial",
      code: "trial",
      license_type: "trial",
      duration_days: 14,
      public_trial: true,
      validation_interval_minutes: 60
    }
  })
  return scene
})

layer(TestServer.layer, { timeout: 60_000 })("A trial", (it) => {
  it.effect("runs from the first request on, also after a restart, and ends", () =>
    Effect.gen(function* () {
      const { kit, live, machine, pass } = yield* offered
      const started = yield* done(kit.startTrial("trial"))
      assert.deepInclude(started, { granted: true, decision: "run", reason: "LICENSED" })
      assert.strictEqual(started.data?.license_type, "trial")
      assert.strictEqual(kit.holding, "device")
      kit.start()
      yield* live(kit, 2 * hours)
      assert.deepStrictEqual(machine.asked, ["trial", "validate", "validate"])
      kit.stop()
      const again = yield* done(machine.open())
      assert.strictEqual(said(again.verdict), "run LICENSED")
      yield* pass(15 * days)
      const ended = yield* done(again.validate())
      assert.deepInclude(ended, { granted: false, decision: "ask", reason: "LICENSE_EXPIRED" })
    })
  )

  it.effect("that the machine has used is told to the application, and changes nothing of what it holds", () =>
    Effect.gen(function* () {
      const { kit, license, machine } = yield* offered
      assert.isTrue((yield* done(kit.startTrial("trial"))).granted)
      machine.stored = undefined
      const reset = yield* done(machine.open())
      const refused = yield* done(reset.startTrial("trial"))
      assert.deepInclude(refused, { granted: false, decision: "ask", reason: "TRIAL_ALREADY_USED" })
      yield* done(reset.activate(license.license_key))
      const again = yield* done(reset.startTrial("trial"))
      assert.isFalse(again.granted)
      assert.strictEqual(said(reset.verdict), "run LICENSED")
    })
  )

  it.effect("is believed only with the signature of the service", () =>
    Effect.gen(function* () {
      const { kit, machine } = yield* offered
      machine.alter = async (response) => new Response((await response.text()).replace('"active"', '"expired"'))
      const altered = yield* done(kit.startTrial("trial"))
      assert.deepInclude(altered, { granted: false, decision: "ask", brokenRule: "signature" })
      assert.isUndefined(kit.holding)
      machine.isOnline = false
      const missed = yield* done(kit.startTrial("trial"))
      assert.deepInclude(missed, { granted: false, decision: "ask", reason: "NOT_REACHED" })
    })
  )
})
