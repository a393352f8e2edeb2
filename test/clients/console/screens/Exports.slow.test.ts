/** Exports of reports: who is led to them, and how one that is being written is followed. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { TestServer } from "../../../support/http/TestServer.ts"
import { atConsole, consoleLayer, withPerson } from "../browser/Browser.ts"
import { held } from "../browser/Meanwhile.ts"

const minutes = 5 * 60_000

layer(consoleLayer, { timeout: minutes })("The exports of reports", (it) => {
  it.effect(
    "are where “Reports” leads with a token that may do nothing else",
    ({ skip }) =>
      Effect.gen(function* () {
        const { client } = yield* TestServer
        const { token } = yield* client["api-keys"].create({ payload: { name: "Export", scopes: ["report:export"] } })
        yield* atConsole(
          skip,
          async (person) => {
            await person.click("Reports", "link")
            await person.seesHeading("Exports")
            await person.isLoaded()
            assert.strictEqual(await person.page.locator(".failed").count(), 0)
            await person.page.goBack()
            await person.seesHeading("Overview")
          },
          { token }
        )
      }),
    minutes
  )

  it.effect(
    "are read again only once the read before has ended",
    ({ skip }) =>
      Effect.gen(function* () {
        const { client } = yield* TestServer
        const { id } = yield* client.reports.createExport({ payload: { report_kind: "usage-summary" } })
        yield* withPerson(
          skip,
          async (person) => {
            const { hold, reached, release } = held()
            let [first, open, most] = [true, 0, 0]
            await person.page.clock.install()
            await person.page.route(`**/api/v1/reports/exports/${id}`, async (route) => {
              if (first) {
                first = false
                const response = await route.fetch()
                const { data, meta } = (await response.json()) as { readonly data: object; readonly meta: object }
                return await route.fulfill({ response, json: { data: { ...data, status: "pending" }, meta } })
              }
              most = Math.max(most, ++open)
              await hold(route)
              open--
            })
            await person.opens(`/reports/exports/${id}`, "Export: usage summary")
            await reached
            await person.page.clock.runFor(5_000)
            release()
            await person.sees("The file is ready, and stays as it is.")
            assert.strictEqual(most, 1)
          },
          { movesClock: true }
        )
      }),
    minutes
  )
})
