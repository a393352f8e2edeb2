/** Calls of the application kit that overlap, with a running service. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { TestServer } from "../../support/http/TestServer.ts"
import { hours, licensed, said, turn } from "./Machines.ts"

const done = <A>(promise: Promise<A>) => Effect.promise(() => promise)

layer(TestServer.layer, { timeout: 60_000 })("The application kit, with overlapping calls", (it) => {
  it.effect("takes no late response of the license before as the new one's", () =>
    Effect.gen(function* () {
      const { client, kit, license, machine, pass } = yield* licensed({ validation_interval_minutes: 60 })
      const { expires_at, id, license_key, product_id } = license
      const { policy_id } = yield* client.licenses.get({ params: { id } })
      const next = yield* client.licenses.create({ payload: { product_id, policy_id, expires_at } })
      yield* done(kit.activate(license_key))
      kit.start()
      yield* turn
      yield* pass(2 * hours)
      const entered = kit.activate(next.license_key)
      machine.alter = async (response) => {
        if (response.url.endsWith("/validate")) await entered
        return response
      }
      // A validation of the license before is due.
      machine.fire()
      assert.isTrue((yield* done(entered)).granted)
      yield* done(kit.wake())
      const validated = yield* done(kit.validate())
      assert.strictEqual(said(validated), "run LICENSED")
      assert.strictEqual(validated.data?.license_id, next.license.id)
      kit.stop()
    })
  )

  it.effect("activates nothing again that is given back meanwhile", () =>
    Effect.gen(function* () {
      const { kit, license, machine } = yield* licensed()
      yield* done(kit.activate(license.license_key))
      const held = new Map<string, () => void>()
      machine.hold = (operation) => new Promise((resolve) => held.set(operation, resolve))
      const validated = kit.validate()
      const gone = kit.deactivate()
      yield* turn
      machine.hold = async () => {}
      // If both requests are on their way, the service gets the later one first.
      held.get("deactivate")?.()
      if (held.has("deactivate")) yield* done(gone)
      held.get("validate")?.()
      yield* done(validated)
      assert.isTrue((yield* done(gone)).granted)
      assert.isUndefined(kit.holding)
      const { data } = yield* done(kit.listDevices())
      assert.deepStrictEqual(
        data?.devices.map((device) => device.is_activated),
        [false]
      )
    })
  )

  it.effect("waits for a request that hangs no longer than its timeout", () =>
    Effect.gen(function* () {
      const { kit, license, machine, pass } = yield* licensed()
      yield* done(kit.activate(license.license_key))
      machine.hold = () => new Promise(() => {})
      const hanging = kit.validate()
      const checked = kit.check()
      yield* turn
      machine.hold = async () => {}
      yield* pass(15)
      machine.fire()
      assert.strictEqual((yield* done(hanging)).problem?.kind, "timeout")
      assert.isTrue((yield* done(checked)).granted)
    })
  )
})
