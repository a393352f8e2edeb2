/** How people sign in to the console at an OIDC provider. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import type { Request } from "playwright-core"
import { issue } from "../../../support/http/IssuedLicenses.ts"
import { TestServer } from "../../../support/http/TestServer.ts"
import { atConsole, type Person } from "../browser/Browser.ts"
import { gate, held } from "../browser/Meanwhile.ts"
import { Provider } from "../browser/Provider.ts"
import { admit, signIn, signInLayer } from "../browser/SignInSteps.ts"

const minutes = 5 * 60_000

const main = (person: Person) =>
  person.page.getByRole("navigation", { name: "Main" }).getByRole("link").allTextContents()

/** What this software keeps in the browser; the router keeps positions of pages. */
const keptBy = async (person: Person) => {
  const names = (await person.page.evaluate(
    "[...Object.keys(sessionStorage), ...Object.keys(localStorage)]"
  )) as ReadonlyArray<string>
  return names.filter((name) => !name.startsWith("tsr-scroll-restoration")).sort()
}

layer(signInLayer, { timeout: minutes })("Signing in at a provider", (it) => {
  const test = (
    name: string,
    options: Parameters<typeof admit>[0],
    body: (person: Person) => Promise<void>,
    check: Effect.Effect<void, unknown, TestServer | Provider> = Effect.void
  ) =>
    it.effect(
      name,
      ({ skip }) =>
        Effect.gen(function* () {
          yield* admit(options)
          yield* atConsole(skip, body, { token: "" })
          yield* check
        }),
      minutes
    )

  test(
    "leads back to the page that was asked for, with a clean address, and tells the provider who signs out",
    {},
    async (person) => {
      assert.deepStrictEqual(await person.violations(), [])
      await person.page.goto(`${person.home}/licenses?status=active#list`)
      await signIn(person, "Ada")
      await person.seesHeading("Licenses")
      assert.strictEqual(person.page.url(), `${person.home}/licenses?status=active#list`)
      assert.include(await main(person), "API keys")
      assert.deepStrictEqual(await keptBy(person), [])
      await person.click("Sign out")
      await person.page.getByRole("button", { name: /yes/i }).click()
      assert.notInclude(person.problems.join(), "401")
      // Of the provider's own page.
      person.problems.length = 0
      await person.seesHeading("Licensing console")
      await person.click(/^Sign in at localhost/)
      // The provider asks again: its own session has ended, too.
      await person.page.getByRole("link", { name: "Refuse" }).waitFor()
    },
    Effect.map(
      Effect.flatMap(Provider, ({ grants }) => grants),
      (grants) => assert.deepStrictEqual(grants, ["authorization_code"])
    )
  )

  test("offers what the account's roles allow, and says so if that is nothing", {}, async (person) => {
    await signIn(person, "Mallory")
    await person.sees("You are Mallory, but this account may do nothing here")
    assert.deepStrictEqual(await person.violations(), [])
    await person.page.context().clearCookies()
    await signIn(person, "Grace")
    await person.seesHeading("Overview")
    assert.deepStrictEqual(await main(person), ["Overview", "Licenses", "Devices", "Customers"])
  })

  test(
    "refuses a response that was not asked for in this tab, without calling the provider",
    {},
    async (person) => {
      await person.page.goto(`${person.home}/sign-in?code=another&state=another`)
      await person.sees("This sign-in was not begun in this tab")
      assert.strictEqual(person.page.url(), person.home)
      await person.click(/^Sign in at localhost/)
      await person.page.getByRole("link", { name: "Refuse" }).waitFor()
      await person.page.goto(`${person.home}/sign-in?code=another&state=another`)
      await person.sees("This sign-in was not begun in this tab")
    },
    Effect.map(
      Effect.flatMap(Provider, ({ grants }) => grants),
      (grants) => assert.deepStrictEqual(grants, [])
    )
  )

  test("refuses tokens that were made for another sign-in", {}, async (person) => {
    await person.page.route(/\/token$/, async (route) => {
      const response = await route.fetch()
      const body = (await response.json()) as { id_token: string }
      const [header, claims, signature] = body.id_token.split(".")
      const changed = { ...JSON.parse(Buffer.from(claims!, "base64url").toString()), nonce: "another" }
      body.id_token = [header, Buffer.from(JSON.stringify(changed)).toString("base64url"), signature].join(".")
      await route.fulfill({ response, json: body })
    })
    await signIn(person, "Ada")
    await person.sees("the response of the sign-in page is not valid")
    await person.page.unroute(/\/token$/)
  })

  test("says so if the reader refuses on the provider's page", {}, async (person) => {
    await person.click(/^Sign in at localhost/)
    await person.click("Refuse", "link")
    await person.sees("it was refused on the sign-in page")
    assert.strictEqual(person.page.url(), person.home)
  })

  test(
    "is renewed without the reader where the provider gives a token for that, which no storage has",
    { renews: true, accessTokenSeconds: 20 },
    async (person) => {
      await person.page.getByLabel(/^Stay signed in/).check()
      await signIn(person, "Ada")
      await person.seesHeading("Overview")
      await person.click("Licenses", "link")
      await person.seesHeading("Licenses")
      assert.deepStrictEqual(await keptBy(person), ["licensing.id-token", "licensing.token"])
      await person.page.reload()
      await person.seesHeading("Licenses")
    },
    Effect.map(
      Effect.flatMap(Provider, ({ grants }) => grants),
      (grants) => assert.include(grants, "refresh_token")
    )
  )

  it.effect(
    "does not give a renewed token that comes late to whoever has signed in since",
    ({ skip }) =>
      Effect.gen(function* () {
        const { adminToken } = yield* TestServer
        yield* admit({ renews: true, accessTokenSeconds: 20 })
        yield* atConsole(
          skip,
          async (person) => {
            const { hold, reached, release } = held()
            // The first request for tokens is the sign-in's; the second one is late.
            let requests = 0
            await person.page.route(/\/token$/, (route) =>
              route.request().method() === "POST" && ++requests > 1 ? hold(route) : route.continue()
            )
            // Signing out does not leave the page.
            await person.page.route(/sign-in.json$/, async (route) => {
              const response = await route.fetch()
              const { provider, ...others } = (await response.json()) as { readonly provider: object }
              const kept = { ...provider, end_session_endpoint: undefined }
              await route.fulfill({ response, json: { ...others, provider: kept } })
            })
            await person.page.getByLabel(/^Stay signed in/).check()
            await signIn(person, "Ada")
            await reached
            await person.click("Sign out")
            await person.seesHeading("Licensing console")
            await person.page.getByLabel(/^Stay signed in/).check()
            await person.page.getByText("Sign in with an API token").click()
            await person.fill("API token", adminToken)
            await person.press("Enter")
            await person.seesHeading("Overview")
            const isLate = (request: Request) => /\/token$/.test(request.url())
            const ended = Promise.race([
              person.page.waitForEvent("requestfinished", isLate),
              person.page.waitForEvent("requestfailed", isLate)
            ])
            release()
            await ended
            // Whatever the response does is done before another one is shown.
            await person.click("Licenses", "link")
            await person.sees("No licenses yet")
            assert.deepStrictEqual(await keptBy(person), ["licensing.token"])
            const token = await person.page.evaluate("sessionStorage.getItem('licensing.token')")
            assert.isTrue(token === adminToken)
            person.problems.length = 0
          },
          { token: "" }
        )
      }),
    minutes
  )

  it.effect(
    "ends with a sentence once it has expired, and signing in again leads back to the same page",
    ({ skip }) =>
      Effect.gen(function* () {
        const { advance } = yield* TestServer
        yield* admit()
        yield* issue({}, { customer_name: "Grace Hopper" })
        yield* atConsole(
          skip,
          async (person) => {
            const { close, open } = await gate(person)
            await signIn(person, "Ada")
            await person.seesHeading("Overview")
            await person.search("Grace Hopper")
            await person.seesHeading("Grace Hopper")
            await person.isLoaded()
            // The first refused request ends the session: until the click, none of the page's own is sent.
            await close()
            await Effect.runPromise(advance(3_600))
            await person.click("Licenses", "link")
            open()
            await person.sees("Your sign-in has expired")
            await Effect.runPromise(advance(-3_600))
            await person.click(/^Sign in at localhost/)
            await person.seesHeading("Licenses")
            assert.strictEqual(person.page.url(), `${person.home}/licenses`)
            // The browser itself reports the refused request.
            person.problems.length = 0
          },
          { token: "" }
        )
      }),
    minutes
  )

  it.effect(
    "says if the provider cannot be reached, and then a token signs in",
    ({ skip }) =>
      Effect.gen(function* () {
        const { adminToken } = yield* TestServer
        yield* admit()
        yield* atConsole(
          skip,
          async (person) => {
            await person.click(/^Sign in at localhost/)
            await person.page.getByRole("link", { name: "Sign in as Ada" }).waitFor()
            await person.page.route(/\/token$/, (route) => route.abort())
            await person.click("Sign in as Ada", "link")
            await person.sees("The sign-in page cannot be reached")
            await person.page.unroute(/\/token$/)
            person.problems.length = 0
            await person.page.route(/sign-in.json$/, (route) =>
              route.fulfill({ json: { issuer: "https://login.example.com" } })
            )
            await person.page.reload()
            await person.sees("login.example.com cannot be reached")
            assert.deepStrictEqual(await person.violations(), [])
            await person.fill("API token", adminToken)
            await person.press("Enter")
            await person.seesHeading("Overview")
          },
          { token: "" }
        )
      }),
    minutes
  )
})
