/** People of an OIDC provider: a sign-in that keeps what they have typed, and their names. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { TestServer } from "../../../support/http/TestServer.ts"
import { atConsole } from "../browser/Browser.ts"
import { forgive, gate } from "../browser/Meanwhile.ts"
import { admit, signIn, signInLayer } from "../browser/SignInSteps.ts"

const minutes = 5 * 60_000

layer(signInLayer, { timeout: minutes })("Who signs in at a provider", (it) => {
  it.effect(
    "does so in a window of its own while something is typed, and goes on with it",
    ({ skip }) =>
      Effect.gen(function* () {
        const { advance, client } = yield* TestServer
        yield* admit()
        yield* atConsole(
          skip,
          async (person) => {
            const { close, open } = await gate(person)
            await signIn(person, "Ada")
            await person.seesHeading("Overview")
            await person.click("Customers", "link")
            await person.click("New customer")
            await person.fill("Name", "Grace Hopper")
            await close()
            await Effect.runPromise(advance(3_600))
            await person.click("Create customer")
            open()
            await person.sees("Your sign-in has expired")
            await person.sees("What you were doing here is kept")
            await Effect.runPromise(advance(-3_600))
            // The provider knows the reader still: its window closes by itself.
            const opened = person.page.waitForEvent("popup")
            await person.click(/^Sign in at localhost/)
            const window = await opened
            if (!window.isClosed()) await window.waitForEvent("close")
            await person.page.locator("dialog[open]").waitFor()
            await person.click("Create customer")
            await person.isDone()
            forgive(person)
          },
          { token: "" }
        )
        const { items } = yield* client.customers.list({ query: {} })
        assert.deepStrictEqual(
          items.map(({ code, name }) => [code, name]),
          [["grace-hopper", "Grace Hopper"]]
        )
      }),
    minutes
  )

  it.effect(
    "is named where an export says who created it",
    ({ skip }) =>
      Effect.gen(function* () {
        yield* admit()
        yield* atConsole(
          skip,
          async (person) => {
            await person.page.goto(`${person.home}/reports/exports?kind=usage-summary`)
            await signIn(person, "Ada")
            await person.click("Export")
            await person.seesHeading("Export: usage summary")
            await person.page.locator("dd").getByText("Ada", { exact: true }).waitFor()
          },
          { token: "" }
        )
      }),
    minutes
  )
})
