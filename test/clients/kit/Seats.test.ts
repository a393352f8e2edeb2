/** Floating seats of the application kit, with a running service. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import type { Verdict } from "../../../src/clients/kit/LicenseKit.ts"
import { assertAnswered } from "../../support/http/Http.ts"
import { TestServer } from "../../support/http/TestServer.ts"
import { days, hours, licensed, minutes, said } from "./Machines.ts"

const done = <A>(promise: Promise<A>) => Effect.promise(() => promise)
const expectVerdict = (verdict: Verdict, words: string) => assert.strictEqual(said(verdict), words)

const seats = (max_floating_users: number) => ({ max_floating_users, floating_timeout_minutes: 30 })

layer(TestServer.layer, { timeout: 60_000 })("A seat of the application kit", (it) => {
  it.effect("is kept by a heartbeat at each third of its term, and given back", () =>
    Effect.gen(function* () {
      const { kit, license, live, machine } = yield* licensed(seats(1))
      const taken = yield* done(kit.checkout(license.license_key))
      expectVerdict(taken, "run LICENSED")
      kit.start()
      yield* live(kit, 61 * minutes)
      assert.deepStrictEqual(machine.asked, [
        "floating/checkout",
        ...Array.from({ length: 6 }, () => "floating/heartbeat")
      ])
      expectVerdict(kit.verdict, "run LICENSED")
      const back = yield* done(kit.checkin())
      assert.isTrue(back.granted)
      expectVerdict(kit.verdict, "ask NOT_ACTIVATED")
      kit.stop()
    })
  )

  it.effect("is taken again by a late heartbeat, and asks if another has it", () =>
    Effect.gen(function* () {
      const { kit, license, live, machine, machineOf, pass } = yield* licensed(seats(1))
      yield* done(kit.checkout(license.license_key))
      kit.start()
      // The machine sleeps for two hours: no timer runs.
      yield* pass(2 * hours)
      expectVerdict(kit.verdict, "stop SEAT_ENDED")
      yield* done(kit.wake())
      expectVerdict(kit.verdict, "run LICENSED")
      assert.strictEqual(machine.asked.at(-1), "floating/heartbeat")
      assert.isTrue(JSON.parse(JSON.parse(machine.stored ?? "").responses.lease).data.renewed)
      yield* pass(2 * hours)
      const other = yield* done(machineOf("other").open())
      yield* done(other.checkout(license.license_key))
      yield* done(kit.wake())
      expectVerdict(kit.verdict, "ask FLOATING_LIMIT_REACHED")
      assert.isTrue((yield* done(other.checkin())).granted)
      // It tries again by itself.
      yield* live(kit, 40 * minutes)
      expectVerdict(kit.verdict, "run LICENSED")
      kit.stop()
    })
  )

  it.effect("is given back without a request if another has it, and is not taken again", () =>
    Effect.gen(function* () {
      const { kit, license, live, machine, machineOf, pass } = yield* licensed(seats(1))
      yield* done(kit.checkout(license.license_key))
      yield* pass(2 * hours)
      const other = yield* done(machineOf("other").open())
      yield* done(other.checkout(license.license_key))
      yield* done(kit.wake())
      const asked = [...machine.asked]
      assert.isTrue((yield* done(kit.checkin())).granted)
      assert.isUndefined(kit.holding)
      assert.isTrue((yield* done(other.checkin())).granted)
      kit.start()
      yield* live(kit, 2 * hours)
      assert.deepStrictEqual(machine.asked, asked)
      kit.stop()
    })
  )

  it.effect("warns after a missed heartbeat, and stops at the lease's end", () =>
    Effect.gen(function* () {
      const { kit, license, live, machine } = yield* licensed(seats(1))
      yield* done(kit.checkout(license.license_key))
      kit.start()
      machine.isOnline = false
      yield* live(kit, 19 * minutes)
      expectVerdict(kit.verdict, "run LICENSED")
      yield* live(kit, 2 * minutes)
      expectVerdict(kit.verdict, "warn NOT_REACHED")
      yield* live(kit, 10 * minutes)
      expectVerdict(kit.verdict, "stop SEAT_ENDED")
      machine.isOnline = true
      yield* live(kit, 15 * minutes)
      expectVerdict(kit.verdict, "run LICENSED")
      assert.deepStrictEqual(machine.verdicts.slice(1), ["warn NOT_REACHED", "stop SEAT_ENDED", "run LICENSED"])
      kit.stop()
    })
  )

  it.effect("is used again after a restart, and does not outlast itself by a validation", () =>
    Effect.gen(function* () {
      const { kit, license, machine, pass } = yield* licensed(seats(1))
      yield* done(kit.checkout(license.license_key))
      expectVerdict(yield* done(kit.validate()), "run LICENSED")
      assert.deepStrictEqual(Object.keys(JSON.parse(machine.stored ?? "").responses), ["checkout"])
      const again = yield* done(machine.open())
      expectVerdict(again.verdict, "run LICENSED")
      again.start()
      yield* done(again.wake())
      assert.strictEqual(machine.asked.at(-1), "floating/heartbeat")
      again.stop()
      machine.isOnline = false
      yield* pass(hours)
      expectVerdict((yield* done(machine.open())).verdict, "stop SEAT_ENDED")
    })
  )

  it.effect("is kept by heartbeats also after a validation, and given back by a checkin alone", () =>
    Effect.gen(function* () {
      const { client, kit, license, live } = yield* licensed(seats(1))
      yield* done(kit.checkout(license.license_key))
      kit.start()
      yield* done(kit.validate())
      yield* live(kit, hours)
      expectVerdict(kit.verdict, "run LICENSED")
      assert.isTrue((yield* done(kit.deactivate())).granted)
      expectVerdict(kit.verdict, "run LICENSED")
      yield* done(kit.checkin())
      assert.isEmpty((yield* client.licenses.listLeases({ params: { id: license.id }, query: {} })).items)
      kit.stop()
    })
  )

  it.effect("has the features as the newest answer says, also one to a use", () =>
    Effect.gen(function* () {
      const { client, kit, license, live } = yield* licensed(seats(1))
      const params = { id: license.product_id }
      const feature = yield* client.features.create({ params, payload: { name: "Export", code: "export" } })
      const payload = { feature_id: feature.id, max_consumptions: 10 }
      yield* client.licenses.assignFeature({ params: { id: license.id }, payload })
      yield* done(kit.checkout(license.license_key))
      assert.strictEqual(kit.feature("export")?.remaining, 10)
      kit.start()
      yield* live(kit, 11 * minutes)
      yield* done(kit.consume({ feature_code: "export", event_id: "1", amount: 3 }))
      assert.strictEqual(kit.feature("export")?.remaining, 7)
      yield* done(kit.checkin())
      assert.isUndefined(kit.feature("export"))
      kit.stop()
    })
  )

  it.effect("gets no offline envelope, and goes on as before", () =>
    Effect.gen(function* () {
      const { kit, license, machine } = yield* licensed(seats(1))
      yield* done(kit.checkout(license.license_key))
      const outcome = yield* done(kit.issueOffline())
      assert.deepInclude(outcome, { granted: false, decision: "warn", reason: "DEVICE_NOT_ACTIVE" })
      assert.deepStrictEqual(machine.asked, ["floating/checkout", "offline"])
      expectVerdict(kit.verdict, "run LICENSED")
    })
  )

  it.effect("leaves to an activation beside it, whose offline envelope outlasts it", () =>
    Effect.gen(function* () {
      const { client, kit, license, machine, pass } = yield* licensed(seats(1))
      yield* done(kit.activate(license.license_key))
      yield* done(kit.checkout())
      assert.isTrue((yield* done(kit.issueOffline())).granted)
      machine.isOnline = false
      yield* pass(6 * days)
      expectVerdict((yield* done(machine.open())).verdict, "run OFFLINE")
      expectVerdict(kit.verdict, "run OFFLINE")
      machine.isOnline = true
      yield* done(kit.wake())
      expectVerdict(kit.verdict, "run LICENSED")
      assert.isTrue((yield* done(kit.checkin())).granted)
      assert.isTrue((yield* done(kit.deactivate())).granted)
      const { active_device_count } = yield* client.licenses.get({ params: { id: license.id } })
      assert.strictEqual(active_device_count, 0)
    })
  )

  it.effect("is checked out again if it was ended, unless the license is refused", () =>
    Effect.gen(function* () {
      const { client, kit, license, machine } = yield* licensed(seats(1))
      const { data } = yield* done(kit.checkout(license.license_key))
      const params = { id: license.id, device_id: data?.device_id ?? "" }
      yield* client.devices.reset({ params, payload: {} })
      const validated = yield* done(kit.validate())
      expectVerdict(validated, "run LICENSED")
      assert.deepStrictEqual(machine.asked.slice(1), ["validate", "floating/checkout"])
      assertAnswered(yield* license.post("revoke"), 200)
      expectVerdict(yield* done(kit.validate()), "stop LICENSE_REVOKED")
    })
  )
})

layer(TestServer.layer, { timeout: 60_000 })("A borrowed seat of the application kit", (it) => {
  const policy = { ...seats(1), borrow_days_max: 10 }

  it.effect("lasts without a network and without a heartbeat, also over a restart, and not longer", () =>
    Effect.gen(function* () {
      const { kit, license, live, machine, pass } = yield* licensed(policy)
      const until = new Date(machine.now() + 10 * days * 1_000 - 60_000)
      const taken = yield* done(kit.checkout({ licenseKey: license.license_key, until }))
      assert.deepInclude(taken, { granted: true, decision: "run", endsAt: until.getTime() })
      assert.strictEqual(taken.data?.borrowed_until, until.toISOString())
      machine.isOnline = false
      kit.start()
      yield* live(kit, 2 * hours, 600)
      kit.stop()
      yield* pass(9 * days)
      const again = yield* done(machine.open())
      again.start()
      yield* done(again.wake())
      assert.deepStrictEqual(machine.asked, ["floating/checkout"])
      expectVerdict(again.verdict, "run LICENSED")
      yield* pass(days)
      expectVerdict(again.verdict, "stop SEAT_ENDED")
      again.stop()
    })
  )

  it.effect("becomes an ordinary one at its end without a gap, if the machine is online", () =>
    Effect.gen(function* () {
      const { kit, license, live, machine } = yield* licensed(policy)
      const until = new Date(machine.now() + days * 1_000)
      yield* done(kit.checkout({ licenseKey: license.license_key, until }))
      kit.start()
      machine.verdicts.length = 0
      yield* live(kit, days - hours, hours)
      assert.deepStrictEqual(machine.asked, ["floating/checkout"])
      yield* live(kit, hours + 60 * minutes, 15)
      assert.deepStrictEqual(machine.verdicts, [])
      assert.deepStrictEqual(
        machine.asked.slice(1),
        Array.from({ length: 7 }, () => "floating/heartbeat")
      )
      kit.stop()
    })
  )

  it.effect("can be given back while the license is suspended", () =>
    Effect.gen(function* () {
      const { kit, license, machine, machineOf } = yield* licensed(policy)
      const until = new Date(machine.now() + days * 1_000)
      yield* done(kit.checkout({ licenseKey: license.license_key, until }))
      assertAnswered(yield* license.post("suspend"), 200)
      expectVerdict(yield* done(kit.validate()), "stop LICENSE_SUSPENDED")
      assert.isTrue((yield* done(kit.checkin())).granted)
      assertAnswered(yield* license.post("reinstate"), 200)
      const other = yield* done(machineOf("other").open())
      expectVerdict(yield* done(other.checkout(license.license_key)), "run LICENSED")
    })
  )

  it.effect("can be given back beside an activation, and after one", () =>
    Effect.gen(function* () {
      const { client, kit, license, machine } = yield* licensed(policy)
      const leases = () => client.licenses.listLeases({ params: { id: license.id }, query: {} })
      const until = () => new Date(machine.now() + days * 1_000)
      yield* done(kit.checkout({ licenseKey: license.license_key, until: until() }))
      yield* done(kit.activate())
      const again = yield* done(machine.open())
      assert.isTrue((yield* done(again.checkin())).granted)
      expectVerdict(again.verdict, "run LICENSED")
      assert.isEmpty((yield* leases()).items)
      yield* done(again.checkout({ until: until() }))
      yield* done(again.activate())
      yield* done(again.deactivate())
      expectVerdict(again.verdict, "ask NOT_ACTIVATED")
      assert.lengthOf((yield* leases()).items, 1)
      assert.isTrue((yield* done(again.checkin())).granted)
      assert.isEmpty((yield* leases()).items)
    })
  )

  it.effect("can be given back early, and tells how long it may last", () =>
    Effect.gen(function* () {
      const { kit, license, machine, machineOf } = yield* licensed(policy)
      yield* done(kit.checkout(license.license_key))
      const late = new Date(machine.now() + 11 * days * 1_000)
      const refused = yield* done(kit.checkout({ until: late }))
      assert.deepInclude(refused, { granted: false, decision: "warn", reason: "BORROW_TOO_LONG" })
      expectVerdict(kit.verdict, "run LICENSED")
      const until = new Date(refused.refusal?.until_max ?? "")
      assert.isTrue((yield* done(kit.checkout({ until }))).granted)
      assert.isTrue((yield* done(kit.checkin())).granted)
      const other = yield* done(machineOf("other").open())
      expectVerdict(yield* done(other.checkout(license.license_key)), "run LICENSED")
    })
  )
})
