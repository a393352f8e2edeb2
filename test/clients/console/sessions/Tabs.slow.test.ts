/** Several tabs of one sign-in, of which one can renew it. */
import { layer } from "@effect/vitest"
import { Effect } from "effect"
import { atConsole, Person } from "../browser/Browser.ts"
import { forgive, refusal } from "../browser/Meanwhile.ts"
import { admit, signIn, signInLayer } from "../browser/SignInSteps.ts"

const minutes = 5 * 60_000

layer(signInLayer, { timeout: minutes })("Tabs that share a sign-in", (it) => {
  it.effect(
    "go on when it expires in one of them, where it cannot be renewed",
    ({ skip }) =>
      Effect.gen(function* () {
        yield* admit({ renews: true, accessTokenSeconds: 20 })
        yield* atConsole(
          skip,
          async (person) => {
            await person.page.getByLabel(/^Stay signed in/).check()
            await signIn(person, "Ada")
            await person.seesHeading("Overview")
            const other = new Person(await person.page.context().newPage(), person.home, {})
            await other.opens("/customers", "Customers")
            await other.click("New customer")
            await other.fill("Name", "Grace Hopper")
            const expired = refusal(401, "TOKEN_EXPIRED")
            await other.page.route("**/api/v1/customers", (route) => route.fulfill(expired), { times: 1 })
            const begun = other.page.waitForRequest("**/api/v1/me")
            await other.click("Create customer")
            await begun
            await other.page.locator("dialog[open]").waitFor()
            await other.click("Create customer")
            await other.seesHeading("Grace Hopper")
            await other.page.close()
            await person.click("Customers", "link")
            await person.sees("Grace Hopper")
            forgive(person)
          },
          { token: "" }
        )
      }),
    minutes
  )
})
