/** The application kit with a running service: what it tells the application to do as time, network and licenses change. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import type { Verdict } from "../../../src/clients/kit/LicenseKit.ts"
import { assertAnswered } from "../../support/http/Http.ts"
import { TestServer } from "../../support/http/TestServer.ts"
import { days, hours, licensed, said } from "./Machines.ts"

/** Awaits a promise of the kit. */
const done = <A>(promise: Promise<A>) => Effect.promise(() => promise)

const expectVerdict = (verdict: Verdict, words: string) => assert.strictEqual(said(verdict), words)

layer(TestServer.layer, { timeout: 60_000 })("The application kit", (it) => {
  it.effect("activates, and after a restart runs without the service", () =>
    Effect.gen(function* () {
      const { kit, license, machine } = yield* licensed()
      expectVerdict(kit.verdict, "ask NOT_ACTIVATED")
      const outcome = yield* done(kit.activate(` ${license.license_key.toLowerCase()} `))
      assert.isTrue(outcome.granted)
      assert.strictEqual(outcome.data?.license_id, license.id)
      expectVerdict(outcome, "run LICENSED")
      machine.isOnline = false
      const again = yield* done(machine.open())
      expectVerdict(again.verdict, "run LICENSED")
      assert.strictEqual(again.holding, "device")
      assert.deepStrictEqual(machine.verdicts, ["run LICENSED"])
    })
  )

  it.effect("runs, warns, and stops while the service is not reached, and runs again after", () =>
    Effect.gen(function* () {
      const { kit, license, live, machine } = yield* licensed({ validation_interval_minutes: 60 })
      yield* done(kit.activate(license.license_key))
      kit.start()
      yield* live(kit, 3 * hours)
      assert.deepStrictEqual(machine.asked, ["activate", "validate", "validate", "validate"])
      machine.isOnline = false
      machine.verdicts.length = 0
      yield* live(kit, 75 * hours, 600)
      assert.deepStrictEqual(machine.verdicts, ["warn NOT_REACHED", "stop NOT_REACHED"])
      assert.deepStrictEqual(kit.features, [])
      // Later and later: a few dozen attempts in three days, not thousands.
      assert.isBelow(machine.asked.length, 120)
      machine.isOnline = true
      yield* live(kit, 2 * hours, 600)
      expectVerdict(kit.verdict, "run LICENSED")
      kit.stop()
      assert.strictEqual(machine.timers, 0)
    })
  )

  it.effect("believes nothing that was changed on the way", () =>
    Effect.gen(function* () {
      const { kit, license, machine, pass } = yield* licensed({ validation_interval_minutes: 60 })
      yield* done(kit.activate(license.license_key))
      machine.alter = async (response) => new Response((await response.text()).replace('"active"', '"revoked"'))
      const altered = yield* done(kit.validate())
      assert.deepInclude(altered, { granted: false, decision: "run", reason: "NOT_REACHED", brokenRule: "signature" })
      let captured = ""
      machine.alter = async (response) => {
        captured = await response.text()
        return new Response(captured)
      }
      yield* done(kit.validate())
      machine.alter = () => new Response(captured)
      const replayed = yield* done(kit.validate())
      assert.strictEqual(replayed.brokenRule, "nonce")
      machine.alter = () => new Response(`{"error":{"code":"LICENSE_REVOKED","message":"x"}}`, { status: 403 })
      const forged = yield* done(kit.validate())
      assert.deepInclude(forged, { decision: "run", reason: "NOT_REACHED", brokenRule: "signature" })
      yield* pass(2 * hours)
      expectVerdict(kit.verdict, "warn NOT_REACHED")
      machine.alter = (response) => response
      expectVerdict(yield* done(kit.validate()), "run LICENSED")
    })
  )

  it.effect("stops for a signed refusal, also after a restart without the service, until it is reinstated", () =>
    Effect.gen(function* () {
      const { kit, license, machine } = yield* licensed()
      yield* done(kit.activate(license.license_key))
      const active = machine.stored
      assertAnswered(yield* license.post("suspend"), 200)
      const refused = yield* done(kit.validate())
      expectVerdict(refused, "stop LICENSE_SUSPENDED")
      assert.strictEqual(refused.refusal?.status, "suspended")
      machine.isOnline = false
      const again = yield* done(machine.open())
      expectVerdict(again.verdict, "stop LICENSE_SUSPENDED")
      // Removing the refusal from the store gives nothing back.
      const stored = JSON.parse(machine.stored ?? "")
      assert.isDefined(active)
      assert.deepStrictEqual(Object.keys(stored.responses), ["refusal"])
      delete stored.responses.refusal
      machine.stored = JSON.stringify(stored)
      expectVerdict((yield* done(machine.open())).verdict, "stop NOT_REACHED")
      machine.isOnline = true
      assertAnswered(yield* license.post("reinstate"), 200)
      expectVerdict(yield* done(again.validate()), "run LICENSED")
    })
  )

  it.effect("warns in the grace period, and asks for the renewal after it", () =>
    Effect.gen(function* () {
      const { kit, license, machine, pass } = yield* licensed({ grace_period_days: 2 })
      yield* done(kit.activate(license.license_key))
      yield* pass(30 * days + 60)
      expectVerdict(yield* done(kit.validate()), "warn GRACE_PERIOD")
      machine.isOnline = false
      yield* pass(2 * days)
      expectVerdict(kit.verdict, "ask LICENSE_EXPIRED")
      machine.isOnline = true
      const ended = yield* done(kit.validate())
      expectVerdict(ended, "ask LICENSE_EXPIRED")
      assert.strictEqual(Date.parse(ended.refusal?.expires_at ?? ""), license.expires_at)
    })
  )

  it.effect("activates once again if the service has forgotten the device, and asks if another has its place", () =>
    Effect.gen(function* () {
      const { client, kit, license, machine, machineOf } = yield* licensed({ max_activations: 1 })
      const { data } = yield* done(kit.activate(license.license_key))
      const params = { id: license.id, device_id: data?.device_id ?? "" }
      yield* client.devices.reset({ params, payload: {} })
      expectVerdict(yield* done(kit.validate()), "run LICENSED")
      assert.deepStrictEqual(machine.asked, ["activate", "validate", "activate"])
      yield* client.devices.reset({ params, payload: {} })
      const other = yield* done(machineOf("other").open())
      assert.isTrue((yield* done(other.activate(license.license_key))).granted)
      const refused = yield* done(kit.validate())
      expectVerdict(refused, "ask ACTIVATION_LIMIT_REACHED")
      assert.deepInclude(refused.refusal, { max: 1, used: 1 })
      yield* done(other.deactivate())
      expectVerdict(other.verdict, "ask NOT_ACTIVATED")
      expectVerdict(yield* done(kit.activate()), "run LICENSED")
    })
  )

  it.effect("counts use all or nothing, once for each event, and goes on without the quota", () =>
    Effect.gen(function* () {
      const { client, kit, license, machine } = yield* licensed()
      const feature = yield* client.features.create({
        params: { id: license.product_id },
        payload: { name: "Export", code: "export" }
      })
      const payload = { feature_id: feature.id, max_consumptions: 5 }
      yield* client.licenses.assignFeature({ params: { id: license.id }, payload })
      yield* done(kit.activate(license.license_key))
      const use = { feature_code: "export", event_id: "e1", amount: 3 }
      assert.isTrue((yield* done(kit.consume(use))).granted)
      assert.isTrue((yield* done(kit.consume(use))).granted)
      assert.strictEqual(kit.feature("export")?.remaining, 2)
      const refused = yield* done(kit.consume({ ...use, event_id: "e2" }))
      assert.deepInclude(refused, { granted: false, decision: "warn", reason: "USAGE_LIMIT_EXCEEDED" })
      assert.strictEqual(refused.refusal?.remaining, 2)
      expectVerdict(kit.verdict, "run LICENSED")
      machine.isOnline = false
      const missed = yield* done(kit.consume({ ...use, event_id: "e3" }))
      assert.deepInclude(missed, { granted: false, decision: "run", reason: "NOT_REACHED" })
    })
  )

  it.effect("keeps the license that it has if another key is wrong or refused", () =>
    Effect.gen(function* () {
      const { kit, license, machine } = yield* licensed()
      const wrong = yield* done(kit.activate("LK-00000-00000-00000-00000-00000-00000"))
      expectVerdict(wrong, "ask LICENSE_KEY_INVALID")
      yield* done(kit.activate(license.license_key))
      yield* done(kit.activate("LK-00000-00000-00000-00000-00000-00000"))
      expectVerdict(kit.verdict, "run LICENSED")
      const { license: other } = yield* licensed()
      expectVerdict(yield* done(kit.activate(other.license_key)), "ask PRODUCT_MISMATCH")
      expectVerdict((yield* done(machine.open())).verdict, "run LICENSED")
      assertAnswered(yield* license.post("rotate-key"), 200)
      // Not signed, so the stored response decides until its end.
      expectVerdict(yield* done(kit.validate()), "warn LICENSE_KEY_INVALID")
      expectVerdict(kit.verdict, "warn LICENSE_KEY_INVALID")
    })
  )

  it.effect("asks for the right time if the clock was set back", () =>
    Effect.gen(function* () {
      const { kit, license, machine } = yield* licensed()
      yield* done(kit.activate(license.license_key))
      machine.offsetMillis -= 4 * 60_000
      expectVerdict(yield* done(kit.validate()), "run LICENSED")
      machine.offsetMillis -= 2 * 60_000
      expectVerdict(kit.verdict, "ask CLOCK_WRONG")
      assert.strictEqual((yield* done(kit.validate())).brokenRule, "times")
      machine.isOnline = false
      expectVerdict((yield* done(machine.open())).verdict, "ask CLOCK_WRONG")
      machine.offsetMillis += 2 * 60_000
      machine.isOnline = true
      expectVerdict(yield* done(kit.validate()), "run LICENSED")
    })
  )

  it.effect("warns if the clock is ahead, and asks for the right time once that ends what it has", () =>
    Effect.gen(function* () {
      const { kit, license, machine } = yield* licensed()
      machine.offsetMillis += 3_600_000
      expectVerdict(yield* done(kit.activate(license.license_key)), "warn CLOCK_WRONG")
      machine.offsetMillis += 10 * 86_400_000
      expectVerdict(yield* done(kit.validate()), "ask CLOCK_WRONG")
      machine.offsetMillis -= 10 * 86_400_000 + 3_600_000
      expectVerdict(yield* done(kit.validate()), "run LICENSED")
    })
  )

  it.effect("warns if its store fails, and asks to activate if the store is unreadable", () =>
    Effect.gen(function* () {
      const { kit, license, machine } = yield* licensed()
      const { store } = machine
      machine.store = { ...store, write: () => Promise.reject(new Error("full")) }
      expectVerdict(yield* done(kit.activate(license.license_key)), "warn STORE_FAILED")
      machine.store = store
      expectVerdict(yield* done(kit.validate()), "run LICENSED")
      for (const text of ["", "{", "null", "[]", '{"holding":"device"}']) {
        machine.stored = text
        assert.notStrictEqual((yield* done(machine.open())).verdict.decision, "run", text)
      }
      machine.store = { ...store, read: () => Promise.reject(new Error("locked")) }
      expectVerdict((yield* done(machine.open())).verdict, "ask NOT_ACTIVATED")
    })
  )

  it.effect("distrusts what was copied into its store from another machine or another license", () =>
    Effect.gen(function* () {
      const { kit, license, machine, machineOf } = yield* licensed()
      yield* done(kit.activate(license.license_key))
      const thief = machineOf("thief")
      thief.stored = machine.stored
      expectVerdict((yield* done(thief.open())).verdict, "stop NOT_REACHED")
      const stored = JSON.parse(machine.stored ?? "")
      machine.stored = JSON.stringify({ ...stored, license_id: "lic_other" })
      expectVerdict((yield* done(machine.open())).verdict, "stop NOT_REACHED")
      machine.stored = JSON.stringify({ ...stored, highest_issued_at: "2000-01-01T00:00:00.000Z" })
      machine.offsetMillis -= 6 * 60_000
      // The responses themselves say when they were issued.
      expectVerdict((yield* done(machine.open())).verdict, "ask CLOCK_WRONG")
    })
  )

  it.effect("trusts keys that the service published later, if the application wants that", () =>
    Effect.gen(function* () {
      const { license, machine } = yield* licensed()
      const other = { kid: "other", public_key: `${"A".repeat(43)}=` }
      const strict = yield* done(machine.open({ keys: [other] }))
      const outcome = yield* done(strict.activate(license.license_key))
      assert.deepInclude(outcome, { granted: false, brokenRule: "kid" })
      const trusting = yield* done(machine.open({ keys: [], trustPublishedKeys: true }))
      expectVerdict(yield* done(trusting.activate(license.license_key)), "run LICENSED")
      machine.isOnline = false
      expectVerdict((yield* done(machine.open({ keys: [], trustPublishedKeys: true }))).verdict, "run LICENSED")
      expectVerdict((yield* done(machine.open({ keys: [other] }))).verdict, "stop NOT_REACHED")
    })
  )

  it.effect("waits as long as a rate limit says", () =>
    Effect.gen(function* () {
      const { kit, license, live, machine } = yield* licensed({ validation_interval_minutes: 10 })
      yield* done(kit.activate(license.license_key))
      kit.start()
      machine.alter = () => new Response("{}", { status: 429, headers: { "retry-after": "1800" } })
      yield* live(kit, 39 * 60)
      assert.deepStrictEqual(machine.asked, ["activate", "validate"])
      machine.alter = (response) => response
      yield* live(kit, 2 * 60)
      assert.deepStrictEqual(machine.asked, ["activate", "validate", "validate"])
      kit.stop()
    })
  )

  it.effect("is silent while nothing is due or nothing is held", () =>
    Effect.gen(function* () {
      const { kit, license, live, machine } = yield* licensed()
      kit.start()
      yield* live(kit, 3 * hours, 600)
      yield* done(kit.validate())
      yield* done(kit.consume({ feature_code: "export", event_id: "e" }))
      assert.deepStrictEqual(machine.asked, [])
      yield* done(kit.activate(license.license_key))
      yield* live(kit, 3 * hours, 600)
      yield* done(kit.deactivate())
      yield* live(kit, 30 * hours, 600)
      assert.deepStrictEqual(machine.asked, ["activate", "deactivate"])
      assert.deepStrictEqual(kit.features, [])
      kit.stop()
    })
  )
})
