/** From a mail to a freed place, on a phone: the link as a real mail server got it, and what may go wrong with it. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import type { Page } from "playwright-core"
import { Receiver } from "../../support/http/MailServer.ts"
import { TestServer } from "../../support/http/TestServer.ts"
import { Person } from "../console/browser/Browser.ts"
import { askForLink, linkIn, mailedPortalLayer, withCustomer } from "./Customer.ts"

const tapsMax = 5
const phone = "Old phone"
const product = "Acme Drawing Studio"

let products = 0

/** Licenses of an address, of which each is used by two devices. */
const prepare = Effect.fnUntraced(function* (customer_email: string, count = 1) {
  const { client, connect } = yield* TestServer
  const { id: product_id } = yield* client.products.create({ payload: { name: product, code: `acme-${++products}` } })
  const policy = yield* client.policies.create({
    params: { id: product_id },
    payload: { name: "Team", code: "team", license_type: "perpetual", max_activations: 2 }
  })
  return yield* Effect.forEach(Array.from({ length: count }), () =>
    Effect.gen(function* () {
      const issued = yield* client.licenses.create({ payload: { product_id, policy_id: policy.id, customer_email } })
      const application = yield* connect({ licenseKey: issued.license_key })
      for (const hostname of [phone, "Laptop"])
        yield* application.runtime.activate({ payload: { fingerprint: hostname, hostname } })
      return issued
    })
  )
})

/** The next mail as the customer's mail program shows it. */
const openMail = async (page: Page, html: string) => {
  await page.goto("about:blank")
  await page.setContent(html)
}

/** Axe finds nothing wrong, and nothing is wider than the phone. */
const isFaultless = async (customer: Person) => {
  await customer.isFaultless()
  assert.isAtMost(await customer.overflow(), 0)
}

/** The browser itself reports requests that were refused. */
const expectsRefusal = ({ problems }: Person, count = 1) => assert.lengthOf(problems.splice(0), count)

const isAsked = (page: Page) => page.locator("dialog[open]").waitFor()

const focused = (page: Page) => page.evaluate("document.activeElement.textContent") as Promise<string>

layer(mailedPortalLayer, { timeout: 300_000 })("A customer with a mailed link", (it) => {
  it.effect(`frees a place within ${tapsMax} taps from the mail on`, ({ skip }) =>
    Effect.gen(function* () {
      const { baseUrl } = yield* TestServer
      const server = yield* Receiver
      const address = "anna@customer.example"
      yield* prepare(address, 2)
      yield* withCustomer(skip, async (customer) => {
        await askForLink(customer, address.toUpperCase())
        await isFaultless(customer)
        const mail = await Effect.runPromise(server.next)
        assert.strictEqual(mail.to, address)
        await openMail(customer.page, mail.html)
        assert.isAtMost(await customer.overflow(), 0)
        customer.interactions = 0
        await customer.click(new RegExp(baseUrl), "link")
        await customer.seesHeading("You opened a sign-in link")
        await customer.click("Continue")
        await customer.seesHeading("Licenses")
        await customer.click(new RegExp(product), "link")
        await customer.click(`Deactivate ${phone}`)
        await customer.click("Deactivate")
        await customer.sees(`${phone} is deactivated.`)
        await customer.sees("1 of 2 devices in use")
        assert.isAtMost(customer.interactions, tapsMax)
        await isFaultless(customer)
      })
    })
  )

  it.effect("frees a place by the keyboard alone, and never loses the focus", ({ skip }) =>
    Effect.gen(function* () {
      const server = yield* Receiver
      yield* prepare("kim@customer.example")
      yield* withCustomer(skip, async (customer) => {
        const { page } = customer
        /** Tabs to what has this text or label, and presses Enter. */
        const enter = async (name: string) => {
          const target = page.locator(`:focus`).and(page.getByRole("button", { name, exact: true }))
          for (let presses = 0; presses < 20 && (await target.count()) === 0; presses++)
            await page.keyboard.press("Tab")
          assert.strictEqual(await target.count(), 1, name)
          await page.keyboard.press("Enter")
        }
        await page.goto(customer.home)
        await customer.seesHeading("Sign in")
        for (let presses = 0; presses < 10 && (await page.locator("input[type=email]:focus").count()) === 0; presses++)
          await page.keyboard.press("Tab")
        await page.keyboard.type("kim@customer.example")
        await page.keyboard.press("Enter")
        const mail = await Effect.runPromise(server.next)
        await page.goto("about:blank")
        await page.goto(linkIn(mail.html))
        await customer.seesHeading("You opened a sign-in link")
        await enter("Continue")
        await customer.seesHeading(product)
        assert.deepStrictEqual([await focused(page), await page.locator("a.back").count()], [product, 0])
        await enter(`Deactivate ${phone}`)
        await isAsked(page)
        await page.keyboard.press("Escape")
        await customer.isDone()
        assert.strictEqual(await focused(page), "Deactivate")
        await page.keyboard.press("Enter")
        await isAsked(page)
        await enter("Deactivate")
        await customer.sees("1 of 2 devices in use")
        assert.strictEqual(await focused(page), `${phone} is deactivated.`)
      })
    })
  )

  it.effect("works in two tabs, of which each notices what the other has done", ({ skip }) =>
    Effect.gen(function* () {
      const server = yield* Receiver
      yield* prepare("mia@customer.example")
      yield* withCustomer(skip, async (customer) => {
        await askForLink(customer, "mia@customer.example")
        await customer.page.goto("about:blank")
        await customer.page.goto(linkIn((await Effect.runPromise(server.next)).html))
        await customer.click("Continue")
        await customer.seesHeading(product)
        const other = new Person(await customer.page.context().newPage(), customer.home, { width: 390 })
        await other.page.goto(customer.home)
        await other.seesHeading(product)
        for (const tab of [customer, other]) {
          await tab.click(`Deactivate ${phone}`)
          await tab.click("Deactivate")
          await tab.sees(`${phone} is deactivated.`)
          await tab.sees("1 of 2 devices in use")
        }
        expectsRefusal(other)
        await other.click("Sign out")
        await other.seesHeading("Sign in")
        await customer.sees("You were signed out. Sign in again.")
        await isFaultless(customer)
        assert.deepStrictEqual(other.problems, [])
      })
    })
  )

  it.effect("is asked once over a slow network, and may try again after it broke", ({ skip }) =>
    Effect.gen(function* () {
      const server = yield* Receiver
      yield* prepare("noa@customer.example")
      yield* withCustomer(skip, async (customer) => {
        const { page } = customer
        const network = await page.context().newCDPSession(page)
        const slow = { offline: false, latency: 300, downloadThroughput: 50_000, uploadThroughput: 20_000 }
        await network.send("Network.enable")
        await network.send("Network.emulateNetworkConditions", slow)
        await askForLink(customer, "noa@customer.example")
        await page.goto("about:blank")
        await page.goto(linkIn((await Effect.runPromise(server.next)).html))
        await customer.click("Continue")
        await customer.seesHeading(product)
        const sent: Array<string> = []
        page.on("request", (request) => {
          if (request.method() === "POST") sent.push(request.url())
        })
        await customer.click(`Deactivate ${phone}`)
        await network.send("Network.emulateNetworkConditions", { ...slow, offline: true })
        await customer.click("Deactivate")
        await customer.sees("There is no connection.")
        expectsRefusal(customer)
        await network.send("Network.emulateNetworkConditions", slow)
        await page.locator("dialog[open] button.danger").dblclick()
        await customer.sees(`${phone} is deactivated.`)
        assert.lengthOf(sent, 2)
        await customer.sees("1 of 2 devices in use")
      })
    })
  )

  it.effect("gets a new key by mail alone, and signs in with it", ({ skip }) =>
    Effect.gen(function* () {
      const server = yield* Receiver
      const { license_key } = (yield* prepare("ora@customer.example"))[0]!
      yield* withCustomer(skip, async (customer) => {
        const { page } = customer
        await page.goto(customer.home)
        await customer.fill("License key", license_key)
        await customer.click("Show my license")
        await customer.click("Get a new key")
        await isFaultless(customer)
        await customer.click("Replace the key")
        await customer.sees("The new key is on its way by e-mail. Sign in with it.")
        const mail = await Effect.runPromise(server.next)
        assert.strictEqual(mail.to, "ora@customer.example")
        const next = /LK-[0-9A-Z-]+/.exec(mail.text)![0]
        assert.notInclude(await page.content(), next)
        await customer.fill("License key", license_key)
        await customer.click("Show my license")
        await customer.sees("This key is not valid")
        expectsRefusal(customer)
        await customer.fill("License key", next)
        await customer.click("Show my license")
        await customer.seesHeading(product)
      })
    })
  )

  // The last one: the workers' clock is not moved.
  it.effect("is told what to do if it was used, its address has no license any more, or it is too old", ({ skip }) =>
    Effect.gen(function* () {
      const { advance, client } = yield* TestServer
      const server = yield* Receiver
      const address = "leo@customer.example"
      const { license } = (yield* prepare(address))[0]!
      const links: Array<string> = []
      const opens = (customer: Person, link: string) =>
        customer.page.goto("about:blank").then(() => customer.page.goto(link))
      yield* withCustomer(skip, async (customer) => {
        for (let asked = 0; asked < 3; asked++) {
          await askForLink(customer, address)
          links.push(linkIn((await Effect.runPromise(server.next)).html))
        }
        const link = links[0]!
        // A program that checks mails opens the link; only the button uses it up.
        await opens(customer, link)
        await customer.seesHeading("You opened a sign-in link")
        await opens(customer, link)
        await customer.click("Continue")
        await customer.seesHeading(product)
        assert.notInclude(customer.page.url(), "link=")
        await opens(customer, link)
        await customer.click("Continue")
        await customer.seesHeading("This link does not work")
        expectsRefusal(customer)
        await customer.sees("You are still signed in")
        await isFaultless(customer)
        await customer.click("Continue")
        await customer.seesHeading(product)
        // In the tab of the page, where only the part after # changes.
        const asked: Array<string> = []
        customer.page.on("request", (request) => void asked.push(request.url()))
        await customer.page.goto(link)
        await customer.seesHeading("You opened a sign-in link")
        assert.notInclude(customer.page.url(), "link=")
        await customer.click("Continue")
        await customer.seesHeading("This link does not work")
        expectsRefusal(customer)
        assert.deepStrictEqual(
          asked.filter((url) => !url.endsWith("/sign-in/link")),
          []
        )
        await customer.click("Continue")
        await customer.seesHeading(product)
        // A request that the end of the session overtakes is refused, which the browser reports.
        await customer.page.waitForLoadState("networkidle")
        await customer.click("Sign out")
        await customer.seesHeading("Sign in")
      })
      yield* client.licenses.transfer({
        params: { id: license.id },
        payload: { customer_email: "new@customer.example" }
      })
      yield* withCustomer(skip, async (customer) => {
        await opens(customer, links[1]!)
        await customer.click("Continue")
        await customer.sees("No license belongs to this address any more. Sign out")
        await isFaultless(customer)
      })
      yield* advance(15 * 60)
      yield* withCustomer(skip, async (customer) => {
        await opens(customer, links[2]!)
        await customer.click("Continue")
        await customer.seesHeading("This link does not work")
        expectsRefusal(customer)
        await isFaultless(customer)
        await customer.click("Ask for a new link")
        await customer.seesHeading("Sign in")
      })
    })
  )
})
