/** Many licenses at once, while somebody else changes some, responses are lost, and the reader wants to leave. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { consoleLayer, withPerson } from "../browser/Browser.ts"
import { forgive, held, prepare, refusal } from "../browser/Meanwhile.ts"

const minutes = 5 * 60_000

layer(consoleLayer, { timeout: minutes })("Of many licenses, meanwhile,", (it) => {
  it.effect(
    "a batch that is still being issued is not issued again",
    ({ skip }) =>
      Effect.gen(function* () {
        const { all, name, policy } = yield* prepare(0)
        yield* withPerson(skip, async (person) => {
          let sent = 0
          await person.page.route("**/licenses/batch", async (route) => {
            if (route.request().method() !== "POST" || sent >= 2) return route.continue()
            if (++sent === 1) await route.fetch()
            return route.fulfill(refusal(409, "IDEMPOTENCY_IN_PROGRESS"))
          })
          await person.opens("/licenses/batch", "Issue a batch")
          await person.choose("Product", name)
          await person.choose("Policy", policy.name)
          await person.fill("Number of licenses", "5")
          await person.click("Issue the batch")
          await person.sees(/It is still running/)
          await person.click("Issue the batch")
          await person.seesHeading("5 licenses issued")
          assert.strictEqual(sent, 2)
          forgive(person)
        })
        assert.strictEqual((yield* all).items.length, 5)
      }),
    minutes
  )

  it.effect(
    "a run over many licenses goes on, whatever key is pressed, and over the browser's way back",
    ({ skip }) =>
      Effect.gen(function* () {
        const { all, policy } = yield* prepare(3)
        yield* withPerson(skip, async (person) => {
          const { hold, reached, release } = held()
          await person.page.route("**/suspend", hold)
          await person.opens(`/policies/${policy.id}`, policy.name)
          await person.click("Open the list", "link")
          await person.page.getByLabel("Choose all on this page").check()
          await person.click("Suspend")
          await person.click("Suspend 3 licenses")
          await reached
          for (let times = 0; times < 3; times++) await person.press("Escape")
          assert.strictEqual(await person.page.locator("dialog[open]").count(), 1)
          await person.page.evaluate("history.back()")
          await person.sees("To leave this page, stop the run first.")
          assert.deepStrictEqual(await person.violations(), [])
          release()
          await person.sees("3 licenses are suspended.")
          await person.press("Escape")
          await person.isDone()
          await person.page.evaluate("history.back()")
          await person.seesHeading(policy.name)
        })
        assert.isTrue((yield* all).items.every(({ status }) => status === "suspended"))
      }),
    minutes
  )

  it.effect(
    "a run takes back what it changed itself, once, also if a response is lost",
    ({ skip }) =>
      Effect.gen(function* () {
        const { all, client, licenses, product } = yield* prepare(2)
        const params = { id: licenses[0]!.id }
        const now = () => Effect.runPromise(all)
        const statusOf = ({ items }: Effect.Success<typeof all>, id: string) =>
          items.find((each) => each.id === id)?.status
        yield* withPerson(skip, async (person) => {
          await person.opens(`/licenses?product_id=${product.id}`, "Licenses")
          await person.page.getByLabel("Choose all on this page").check()
          await person.click("Suspend")
          await Effect.runPromise(client.licenses.suspend({ params }))
          let isLost = true
          await person.page.route("**/suspend", async (route) => {
            if (!isLost) return route.continue()
            isLost = false
            await route.fetch()
            return route.abort()
          })
          await person.click("Suspend 2 licenses")
          await person.sees("2 licenses are suspended.")
          await person.click("Undo")
          await person.sees("1 license is as before.")
          const left = await now()
          assert.deepStrictEqual(
            licenses.map(({ id }) => statusOf(left, id)),
            ["suspended", "active"]
          )
          await person.click("Close")
          await person.isDone()
          await person.page.getByLabel("Choose all on this page").check()
          await person.click("Extend")
          // Somebody else extends one of them meanwhile.
          const renewed = await Effect.runPromise(
            client.licenses.renew({
              params,
              payload: { extend_by_days: 5 },
              headers: { "idempotency-key": `meanwhile-${params.id}` }
            })
          )
          await person.click("Extend 2 licenses")
          await person.sees("2 licenses are extended.")
          isLost = true
          await person.page.route(`**/licenses/${params.id}`, async (route) => {
            if (route.request().method() !== "PATCH" || !isLost) return route.continue()
            isLost = false
            await route.fetch()
            return route.abort()
          })
          await person.click("Undo")
          await person.sees("2 licenses are as before.")
          assert.isFalse(isLost)
          const { items } = await now()
          assert.strictEqual(items.find(({ id }) => id === params.id)?.expires_at, renewed.expires_at)
          forgive(person)
        })
      }),
    minutes
  )
})
