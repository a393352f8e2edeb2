/** What the application kit does for customers, with a running service: quotas that renew, their devices, machines without a network. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import type { LicenseKit, Verdict } from "../../../src/clients/kit/LicenseKit.ts"
import { assertAnswered } from "../../support/http/Http.ts"
import { TestServer } from "../../support/http/TestServer.ts"
import { days, licensed, minutes, said } from "./Machines.ts"

/** Awaits a promise of the kit. */
const done = <A>(promise: Promise<A>) => Effect.promise(() => promise)
const expectVerdict = (verdict: Verdict, words: string) => assert.strictEqual(said(verdict), words)

type Scene = Effect.Success<ReturnType<typeof licensed>>

/** Assigns the feature `export`. */
const metered = Effect.fnUntraced(function* (
  { client, license }: Scene,
  quota: { readonly reset_period?: "day"; readonly overage_max?: number }
) {
  const feature = yield* client.features.create({
    params: { id: license.product_id },
    payload: { name: "Export", code: "export" }
  })
  const payload = { feature_id: feature.id, max_consumptions: 5, ...quota }
  yield* client.licenses.assignFeature({ params: { id: license.id }, payload })
  return feature.id
})

const exported = (kit: LicenseKit) => {
  const { code, enabled: _, resets_at, ...usage } = kit.feature("export") ?? {}
  return usage
}

layer(TestServer.layer, { timeout: 60_000 })("The application kit, for customers", (it) => {
  it.effect("does not call a quota used up after its period, and knows the new one by the next answer", () =>
    Effect.gen(function* () {
      const scene = yield* licensed({ validation_interval_minutes: 7 * 1440 })
      const { client, kit, license, machine, pass } = scene
      const feature_id = yield* metered(scene, { reset_period: "day", overage_max: 2 })
      yield* client.licenses.resetUsage({ params: { id: license.id }, payload: { feature_id, add_credits: 1 } })
      yield* done(kit.activate(license.license_key))
      assert.deepStrictEqual(exported(kit), { quota: 5, consumed: 0, remaining: 5, extra_credits: 1, overage: 0 })
      yield* done(kit.consume({ feature_code: "export", event_id: "1", amount: 7 }))
      assert.deepStrictEqual(exported(kit), { quota: 5, consumed: 7, remaining: 0, extra_credits: 0, overage: 1 })
      const refused = yield* done(kit.consume({ feature_code: "export", event_id: "2", amount: 2 }))
      assert.strictEqual(refused.reason, "USAGE_LIMIT_EXCEEDED")
      assert.strictEqual(refused.refusal?.resets_at, kit.feature("export")?.resets_at)
      machine.isOnline = false
      yield* pass(days)
      const unknown = { quota: 5, extra_credits: 0, isUsageUnknown: true } as const
      assert.deepStrictEqual(exported(kit), unknown)
      // It is the same after a restart.
      const again = yield* done(machine.open())
      assert.deepStrictEqual(exported(again), unknown)
      machine.isOnline = true
      yield* done(again.check())
      assert.deepStrictEqual(exported(again), { quota: 5, consumed: 0, remaining: 5, extra_credits: 0, overage: 0 })
    })
  )

  it.effect("takes a use back once, also if its answer was lost", () =>
    Effect.gen(function* () {
      const scene = yield* licensed()
      const { kit, license, machine } = scene
      yield* metered(scene, {})
      yield* done(kit.activate(license.license_key))
      const use = { feature_code: "export", event_id: "a render" }
      yield* done(kit.consume({ ...use, amount: 4 }))
      machine.alter = () => Promise.reject(new TypeError("fetch failed"))
      assert.isFalse((yield* done(kit.reverse(use))).granted)
      machine.alter = (response) => response
      assert.isTrue((yield* done(kit.reverse(use))).granted)
      assert.deepStrictEqual(exported(kit), { quota: 5, consumed: 0, remaining: 5 })
      const refused = yield* done(kit.reverse({ ...use, event_id: "another" }))
      assert.deepInclude(refused, { granted: false, decision: "warn", reason: "REVERSAL_NOT_POSSIBLE" })
      assert.strictEqual(said(kit.verdict), "run LICENSED")
    })
  )

  it.effect("says whose license it is, if the policy shows that", () =>
    Effect.gen(function* () {
      const shown = { show_licensee: true, show_metadata: ["seat"], max_floating_users: 1 }
      const owner = { customer_name: "Ada Žižková", metadata: { seat: { floor: 3 }, internal: "no" } }
      const { kit, license, machine } = yield* licensed(shown, owner)
      const licenseOf = (one: LicenseKit) => one.license
      assert.isUndefined(licenseOf(kit))
      yield* done(kit.activate(license.license_key))
      const facts = { licensee: { name: "Ada Žižková" }, metadata: { seat: { floor: 3 } } }
      assert.deepInclude(kit.license, facts)
      machine.isOnline = false
      assert.deepInclude((yield* done(machine.open())).license, facts)
      machine.isOnline = true
      yield* done(kit.deactivate())
      assert.isUndefined(licenseOf(kit))
      yield* done(kit.checkout(license.license_key))
      assert.deepInclude(kit.license, facts)
    })
  )

  it.effect("lists the license's devices and deactivates a lost one, before it is activated itself", () =>
    Effect.gen(function* () {
      const { kit, license, machine, machineOf } = yield* licensed({
        max_activations: 1,
        self_deactivations_per_month: 1
      })
      const lost = yield* done(machineOf("lost", { binding: { fingerprint: "lost", hostname: "Laptop" } }).open())
      yield* done(lost.activate(license.license_key))
      assert.strictEqual(said(yield* done(kit.activate(license.license_key))), "ask ACTIVATION_LIMIT_REACHED")
      assert.isFalse((yield* done(kit.listDevices())).granted)
      const { data } = yield* done(kit.listDevices({ licenseKey: license.license_key.toLowerCase(), limit: 10 }))
      assert.strictEqual(data?.self_deactivations_remaining, 1)
      assert.isNull(data?.next_cursor)
      const [laptop] = data?.devices ?? []
      assert.deepInclude(laptop, { hostname: "Laptop", is_activated: true })
      const id = laptop?.id ?? ""
      const given = yield* done(kit.deactivateDevice(id, license.license_key))
      assert.deepInclude(given, { granted: true, decision: "ask" })
      assert.strictEqual(given.data?.device_id, id)
      assert.strictEqual(said(yield* done(kit.activate(license.license_key))), "run LICENSED")
      // What is refused about another device says nothing of this one.
      for (const [device, code] of [
        [id, "DEVICE_STATE_CONFLICT"],
        ["dev_none/../x", "DEVICE_NOT_FOUND"]
      ] as const) {
        const refused = yield* done(kit.deactivateDevice(device))
        assert.deepInclude(refused, { granted: false, decision: "warn", reason: code })
        assert.strictEqual(said(kit.verdict), "run LICENSED")
      }
      assert.deepStrictEqual(machine.asked.filter((path) => path === "activate").length, 2)
    })
  )

  it.effect("believes neither another device's deactivation nor a changed list", () =>
    Effect.gen(function* () {
      const { kit, license, machine, machineOf } = yield* licensed({ max_activations: 0 })
      yield* done(kit.activate(license.license_key))
      const others = yield* Effect.forEach(["one", "other"], (name) =>
        Effect.gen(function* () {
          const { data } = yield* done((yield* done(machineOf(name).open())).activate(license.license_key))
          return data?.device_id ?? ""
        })
      )
      const [one = "", other = ""] = others
      machine.alter = async (response) => new Response((await response.text()).replace('"active"', '"blacklisted"'))
      assert.strictEqual((yield* done(kit.listDevices())).brokenRule, "signature")
      machine.alter = (response) => response
      const platform = {
        ...machine.options.platform,
        // A proxy sends the request about one device to the address of another.
        fetch: (url: string, request: RequestInit) => fetch(url.replace(one, other), request)
      } as NonNullable<typeof machine.options.platform>
      const misled = yield* done(machine.open({ platform }))
      assert.strictEqual((yield* done(misled.deactivateDevice(one))).brokenRule, "binding")
    })
  )

  it.effect("makes the request of a machine without a network, and opens the file that answers it", () =>
    Effect.gen(function* () {
      const { license, machineOf, pass } = yield* licensed({ offline_grace_days: 7 })
      const { send } = yield* TestServer
      const binding = { fingerprint: "press", hostname: "Press 7" }
      const press = machineOf("press", { binding, appVersion: "2.0" })
      press.isOnline = false
      const kit = yield* done(press.open())
      const request = kit.offlineRequest()
      const { product_code, ...rest } = JSON.parse(request)
      assert.deepStrictEqual(rest, { activate: true, app_version: "2.0", ...binding })
      assert.deepStrictEqual(press.asked, [])
      const headers = { authorization: `License ${license.license_key}`, "content-type": "application/json" }
      const { text } = yield* send({ method: "POST", path: "/api/v1/license/offline", headers, body: request })
      const file = JSON.stringify(JSON.parse(text).data)
      // An editor has saved the whole response, with its mark and white space.
      const opened = yield* done(kit.openOffline(`\u{feff}${text}\r\n`, license.license_key))
      assert.strictEqual(said(opened), "run OFFLINE")
      assert.strictEqual(product_code, opened.data?.product_code)
      yield* pass(6 * days)
      const again = yield* done(press.open())
      assert.strictEqual(said(again.verdict), "run OFFLINE")
      yield* pass(days + minutes)
      assert.strictEqual(said(again.verdict), "stop NOT_REACHED")
      const forged = yield* done(kit.openOffline(file.replace('"nonce":"', '"nonce":"A'), license.license_key))
      assert.strictEqual(forged.brokenRule, "envelope")
      assert.strictEqual((yield* done(kit.openOffline("no JSON"))).brokenRule, "envelope")
      assertAnswered(yield* license.post("revoke"), 200)
    })
  )
})

layer(TestServer.layer, { timeout: 60_000 })("An offline envelope of the application kit", (it) => {
  const policy = { offline_grace_days: 7, validation_interval_minutes: 60 }

  it.effect("lets an application run until its end without the service", () =>
    Effect.gen(function* () {
      const { kit, license, machine, pass } = yield* licensed(policy)
      yield* done(kit.activate(license.license_key))
      const outcome = yield* done(kit.issueOffline())
      assert.isTrue(outcome.granted)
      assert.strictEqual(outcome.data?.kind, "offline")
      machine.isOnline = false
      yield* pass(6 * days)
      const again = yield* done(machine.open())
      expectVerdict(again.verdict, "run OFFLINE")
      // The machine's clock is behind the service's by the time that an answer took.
      yield* pass(days + minutes)
      expectVerdict(again.verdict, "stop NOT_REACHED")
    })
  )

  it.effect("is opened on its machine alone, with its license key alone", () =>
    Effect.gen(function* () {
      const { kit, license, machine, machineOf, pass } = yield* licensed(policy)
      const { send } = yield* TestServer
      yield* done(kit.activate(license.license_key))
      const headers = { authorization: `License ${license.license_key}` }
      const body = { fingerprint: "machine" }
      const answer = yield* send({ method: "POST", path: "/api/v1/license/offline", headers, body })
      const envelope = JSON.stringify(assertAnswered(answer, 200))
      const airGapped = machineOf("machine")
      airGapped.isOnline = false
      const alone = yield* done(airGapped.open())
      const unopened = yield* done(alone.openOffline(envelope, "LK-00000-00000-00000-00000-00000-00000"))
      assert.deepInclude(unopened, { granted: false, brokenRule: "envelope", decision: "ask" })
      expectVerdict(yield* done(alone.openOffline(envelope, license.license_key)), "run OFFLINE")
      yield* pass(2 * days)
      expectVerdict((yield* done(airGapped.open())).verdict, "run OFFLINE")
      const thief = yield* done(machineOf("thief").open())
      assert.strictEqual((yield* done(thief.openOffline(envelope, license.license_key))).brokenRule, "binding")
      // A refusal that is newer than the file stands.
      assertAnswered(yield* license.post("suspend"), 200)
      yield* done(kit.validate())
      expectVerdict(yield* done(kit.openOffline(envelope)), "stop LICENSE_SUSPENDED")
      expectVerdict((yield* done(machine.open())).verdict, "stop LICENSE_SUSPENDED")
      yield* pass(5 * days)
      expectVerdict(alone.verdict, "stop NOT_REACHED")
      assert.strictEqual((yield* done(alone.openOffline(envelope))).brokenRule, "times")
    })
  )
})
