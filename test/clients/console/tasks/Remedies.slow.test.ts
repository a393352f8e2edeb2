/** What ends a refusal, at the page of a license, while somebody else looks at the same page. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { Refusals } from "../../../../src/insight/activities/Refusals.ts"
import { layerActivities } from "../../../support/http/Activities.ts"
import { issue } from "../../../support/http/IssuedLicenses.ts"
import { TestServer } from "../../../support/http/TestServer.ts"
import { Browser, withPerson } from "../browser/Browser.ts"
import { builtConsole } from "../browser/BuiltConsole.ts"
import { held } from "../browser/Meanwhile.ts"

const minutes = 5 * 60_000
const service = Layer.merge(layerActivities().pipe(Layer.provideMerge(builtConsole)), Browser.layer)

layer(service, { timeout: minutes })("A remedy", (it) => {
  it.effect(
    "lowers no limit that somebody else has raised meanwhile, also if it is undone",
    ({ skip }) =>
      Effect.gen(function* () {
        const { client } = yield* TestServer
        const { id, runtime } = yield* issue({ max_activations: 1 }, { customer_name: "Ada" })
        yield* runtime.activate({ payload: { fingerprint: "first" } })
        yield* Effect.flip(runtime.activate({ payload: { fingerprint: "second" } }))
        yield* (yield* Refusals).pass
        const raise = (max_activations: number) =>
          Effect.runPromise(client.licenses.update({ params: { id }, payload: { max_activations } }))
        const isNow = async (limit: number) => {
          const { limits } = await Effect.runPromise(client.licenses.get({ params: { id } }))
          assert.strictEqual(limits.max_activations, limit)
        }
        yield* withPerson(skip, async (person) => {
          await person.opens(`/licenses/${id}`, "Ada")
          await person.click("Allow one more device")
          await raise(20)
          await person.click("Allow one more device")
          await person.sees("Somebody has changed this limit meanwhile: reload the page to see it.")
          await isNow(20)
          await person.opens(`/licenses/${id}`, "Ada")
          await person.pick("Allow one more device", "Allow one more device")
          await person.isDone()
          await isNow(21)
          await raise(30)
          await person.click("Undo")
          await person.sees(/^Not undone/)
          await isNow(30)
        })
      }),
    minutes
  )

  it.effect(
    "that somebody else took first is not offered to be undone",
    ({ skip }) =>
      Effect.gen(function* () {
        const { client } = yield* TestServer
        const { id, runtime } = yield* issue({}, { customer_name: "Bob" })
        const params = { id }
        yield* client.licenses.suspend({ params })
        yield* Effect.flip(runtime.activate({ payload: { fingerprint: "first" } }))
        yield* (yield* Refusals).pass
        yield* withPerson(skip, async (person) => {
          await person.opens(`/licenses/${id}`, "Bob")
          await person.click("Reinstate")
          await Effect.runPromise(client.licenses.reinstate({ params }))
          await person.click("Reinstate")
          await person.sees(/The license is in this state already/)
          await person.press("Escape")
          await person.isDone()
          assert.strictEqual(await person.page.getByRole("button", { name: "Undo" }).count(), 0)
        })
        assert.strictEqual((yield* client.licenses.get({ params })).status, "active")
      }),
    minutes
  )

  it.effect(
    "is found by a check, whose answer does not stay beside another question or a failure",
    ({ skip }) =>
      Effect.gen(function* () {
        const { id } = yield* issue({}, { customer_name: "Cem" })
        yield* withPerson(skip, async (person) => {
          const { page } = person
          await person.opens(`/licenses/${id}`, "Cem")
          await person.isLoaded()
          const status = page.locator(".asking > [role=status]")
          assert.strictEqual(await status.textContent(), "")
          const answers = async () => {
            await person.click("Check")
            await status.filter({ hasText: "activate it first" }).waitFor()
          }
          await person.fill("Machine’s fingerprint", "one")
          await answers()
          await person.fill("Machine’s fingerprint", "another")
          assert.strictEqual(await status.textContent(), "")
          assert.strictEqual(await page.getByRole("table", { name: "Checks" }).count(), 0)
          await answers()
          const { hold, reached, release } = held()
          await page.route("**/diagnose", hold)
          await person.click("Check")
          await reached
          assert.strictEqual(await status.textContent(), "")
          release()
          await status.filter({ hasText: "activate it first" }).waitFor()
          assert.deepStrictEqual(await person.violations(), [])
        })
      }),
    minutes
  )

  it.effect(
    "is seen where a held slot fills the limit of devices",
    ({ skip }) =>
      Effect.gen(function* () {
        const { id, runtime } = yield* issue(
          { max_activations: 2, hold_offline_slots: true },
          { customer_name: "Emmy" }
        )
        yield* runtime.activate({ payload: { fingerprint: "desk" } })
        yield* runtime.activate({ payload: { fingerprint: "press" } })
        yield* runtime.offline({ payload: { fingerprint: "press" } })
        yield* runtime.deactivate({ payload: { fingerprint: "press" } })
        yield* withPerson(skip, async (person) => {
          await person.opens(`/licenses/${id}`, "Emmy")
          await person.sees("2 of 2")
          await person.sees("1 held for a device that may work offline")
        })
      }),
    minutes
  )

  it.effect(
    "is no other limit where a slot is held for a device that may work offline, and containers count apart",
    ({ skip }) =>
      Effect.gen(function* () {
        const { id, runtime } = yield* issue(
          { max_activations: 1, max_container_instances: 2, hold_offline_slots: true },
          { customer_name: "Dora" }
        )
        yield* runtime.activate({ payload: { is_container: true, pod_name: "pod" } })
        yield* runtime.activate({ payload: { fingerprint: "press", hostname: "press" } })
        yield* runtime.offline({ payload: { fingerprint: "press" } })
        yield* runtime.deactivate({ payload: { fingerprint: "press" } })
        yield* withPerson(skip, async (person) => {
          await person.opens(`/licenses/${id}`, "Dora")
          const row = person.page.getByRole("row", { name: /^press/ })
          await row.getByText(/^slot held until \d/).waitFor()
          await person.sees("1 in use, with containers, 1 held for a device that may work offline")
          assert.strictEqual(await person.page.locator("#limits ~ .facts .meter").count(), 0)
        })
      }),
    minutes
  )
})
