/** Many licenses at once, while responses are lost, somebody stops a job, and sessions end. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { poll } from "../../../support/rules/Poll.ts"
import { consoleLayer, withPerson } from "../browser/Browser.ts"
import { forgive, prepare, refusal } from "../browser/Meanwhile.ts"
import { adminKey } from "../browser/Refused.ts"

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
    "the search box finds a job by its id",
    ({ skip }) =>
      Effect.gen(function* () {
        const { client, licenses } = yield* prepare(1)
        const license_ids = licenses.map(({ id }) => id)
        const { id } = yield* client.bulkJobs.create({ payload: { action: "suspend", license_ids, dry_run: true } })
        yield* withPerson(skip, async (person) => {
          await person.opens("", "Overview")
          await person.fill(/^Search/, id)
          const found = person.page.getByRole("option", { name: /^Check: suspend/ })
          await found.waitFor()
          await person.inLooks([{ width: 390 }, { width: 820 }], async ({ width }) =>
            assert.strictEqual(await person.overflow(), 0, String(width))
          )
          await found.click()
          await person.seesHeading(/^Check: suspend/)
        })
      }),
    minutes
  )

  // No worker takes up the jobs of these tests.
  it.effect(
    "a check of every license is canceled with its dialog",
    ({ skip }) =>
      Effect.gen(function* () {
        const { client } = yield* prepare(101)
        yield* withPerson(skip, async (person) => {
          await person.opens("/licenses", "Licenses")
          await person.page.getByLabel("Choose all on this page").check()
          await person.click(/^Choose all \d+ that match/)
          await person.pick("Other actions", "Revoke")
          await person.sees("No filter is set")
          await person.click("Check")
          await person.sees("Checking what would change.")
          assert.deepStrictEqual(await person.violations(), [])
          await person.press("Escape")
          await person.isDone()
        })
        const jobs = client.bulkJobs.list({ query: { action: "revoke" } })
        const { items } = yield* poll(jobs, ({ items }) => items[0]?.status === "canceled")
        assert.deepStrictEqual(
          items.map(({ dry_run, filter }) => ({ dry_run, filter })),
          [{ dry_run: true, filter: {} }]
        )
      }),
    minutes
  )

  it.effect(
    "a job is stopped on its page, and a page shows that somebody else has stopped it",
    ({ skip }) =>
      Effect.gen(function* () {
        const { client, product } = yield* prepare(2)
        const create = client.bulkJobs.create({
          payload: { action: "suspend", filter: { product_id: product.id }, reason: "Not paid." }
        })
        const [mine, other] = [yield* create, yield* create]
        yield* withPerson(skip, async (person) => {
          await person.opens(`/bulk-jobs/${mine.id}`, "Suspend 2 licenses")
          await person.sees("The job waits for its turn.")
          assert.deepStrictEqual(await person.violations(), [])
          await person.click("Stop the job")
          await person.click("Stop the job")
          await person.sees("The job was stopped: 2 licenses not reached.")
          await person.opens(`/bulk-jobs/${other.id}`, "Suspend 2 licenses")
          await person.sees("The job waits for its turn.")
          await Effect.runPromise(client.bulkJobs.cancel({ params: { id: other.id } }))
          await person.sees("The job was stopped: 2 licenses not reached.")
          assert.strictEqual(await person.page.getByRole("button", { name: "Stop the job" }).count(), 0)
        })
        assert.strictEqual((yield* client.bulkJobs.get({ params: { id: mine.id } })).status, "canceled")
      }),
    minutes
  )

  it.effect(
    "a session that ends during a check leads to the sign-in, and nothing is changed",
    ({ skip }) =>
      Effect.gen(function* () {
        const { all, product } = yield* prepare(2)
        const { revoke, token } = yield* adminKey()
        yield* withPerson(
          skip,
          async (person) => {
            await person.opens(`/licenses?product_id=${product.id}`, "Licenses")
            await person.page.getByLabel("Choose all on this page").check()
            await person.click("Suspend")
            await person.click("Check")
            await person.sees("Checking what would change.")
            await Effect.runPromise(revoke)
            await person.seesHeading("Licensing console")
            assert.strictEqual(await person.page.locator("dialog[open]").count(), 0)
            forgive(person)
          },
          { token }
        )
        assert.isTrue((yield* all).items.every(({ status }) => status === "active"))
      }),
    minutes
  )
})
