/** What needs attention on the overview: whole lines, and how many more there are. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { Refusals } from "../../../../src/insight/activities/Refusals.ts"
import { layerActivities } from "../../../support/http/Activities.ts"
import { issue } from "../../../support/http/IssuedLicenses.ts"
import { atConsole, Browser, withPerson } from "../browser/Browser.ts"
import { builtConsole } from "../browser/BuiltConsole.ts"
import { held } from "../browser/Meanwhile.ts"

const minutes = 5 * 60_000
const refused = 4

const service = Layer.merge(layerActivities().pipe(Layer.provideMerge(builtConsole)), Browser.layer)

/** Licenses that expire in 30 days, each of which was refused three times. */
const prepare = Effect.gen(function* () {
  for (let place = 0; place < refused; place++) {
    const { runtime } = yield* issue(
      { max_activations: 1 },
      { customer_name: `The Cooperative Society of Makers of Long Names ${place}` }
    )
    yield* runtime.activate({ payload: { fingerprint: "first" } })
    for (const fingerprint of ["second", "third", "fourth"])
      yield* Effect.flip(runtime.activate({ payload: { fingerprint } }))
  }
  yield* (yield* Refusals).pass
})

layer(service, { timeout: minutes })("The overview", (it) => {
  it.effect(
    "shows whole lines of what needs attention, some of each kind, and says how many more there are",
    ({ skip }) =>
      Effect.gen(function* () {
        yield* prepare
        yield* atConsole(skip, async (person) => {
          const lines = person.page.locator(".attention > li:has(a)")
          // In 30 days the licenses expire, too: a line of its own.
          await person.sees(`Show ${refused + 1 - 3} more`)
          await person.sees(`${refused} licenses expire in 30 days`)
          await person.inLooks([{}, { width: 1440 }, { width: 390, dark: true }], async () => {
            assert.strictEqual(await lines.count(), 3)
            const box = await person.page.getByRole("region", { name: "Needs attention" }).elementHandle()
            assert.isTrue(await box!.evaluate((of) => of.scrollHeight <= of.clientHeight))
          })
          await person.click(`Show ${refused + 1 - 3} more`)
          assert.strictEqual(await lines.count(), refused + 1)
          assert.deepStrictEqual(await person.violations(), [])
        })
      }),
    minutes
  )

  it.effect(
    "says that nothing needs attention only once it knows that",
    ({ skip }) =>
      withPerson(skip, async (person) => {
        const { hold, reached, release } = held()
        const region = person.page.getByRole("region", { name: "Needs attention" })
        await person.page.route("**/api/v1/**", (route) =>
          /health|attention|_before=|grace_period/.test(route.request().url()) ? hold(route) : route.fallback()
        )
        await person.opens("", "Overview")
        await reached
        await region.waitFor()
        assert.strictEqual(await region.getByText("Nothing").count(), 0)
        release()
        await region.getByRole("link").first().waitFor()
      }),
    minutes
  )
})
