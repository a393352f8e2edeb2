/** What customers do at their page, on a phone. */
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { gzipSync } from "node:zlib"
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import type { Page } from "playwright-core"
import { encodeQR } from "qr"
import { decodeQR } from "qr/decode.js"
import { openEnvelope } from "../../../src/clients/kit/judging/OfflineEnvelope.ts"
import { TestServer } from "../../support/http/TestServer.ts"
import type { Person } from "../console/browser/Browser.ts"
import { portalBuild } from "../console/browser/BuiltConsole.ts"
import { cameraOf, portalLayerWith, withCustomer } from "./Customer.ts"

const kilobytesMax = 120
const product = "Acme Drawing Studio"
const longName = "a-very-long-host-name-of-a-build-machine-in-the-data-center-number-17.internal.example.com"

const portalSettings = {
  portalTitle: "Acme Software",
  portalColor: "#ffd400",
  portalContact: "help@acme.example",
  ratePortal: 0
}

let products = 0

/** A license that is used. */
const prepare = Effect.gen(function* () {
  const { client, connect } = yield* TestServer
  const code = `studio-${++products}`
  const { id: product_id } = yield* client.products.create({ payload: { name: product, code } })
  const feature = (name: string, code: string) =>
    client.features.create({ params: { id: product_id }, payload: { name, code } })
  const [credits, pdf] = [yield* feature("AI credits", "ai"), yield* feature("Export to PDF", "pdf")]
  const policy = yield* client.policies.create({
    params: { id: product_id },
    payload: { name: "Team", code: "team", license_type: "perpetual", max_activations: 3, max_floating_users: 5 }
  })
  const issued = yield* client.licenses.create({
    payload: {
      product_id,
      policy_id: policy.id,
      customer_email: "anna@customer.example",
      features: [{ feature_id: credits.id, max_consumptions: 1_000 }, { feature_id: pdf.id }]
    }
  })
  const application = yield* connect({ licenseKey: issued.license_key })
  for (const hostname of ["Anna's MacBook Pro", longName])
    yield* application.runtime.activate({ payload: { fingerprint: hostname, hostname, os: "macOS 15" } })
  yield* application.runtime.consume({
    payload: { fingerprint: longName, feature_code: "ai", event_id: "1", amount: 850 }
  })
  yield* application.runtime.checkout({ payload: { fingerprint: "laptop", hostname: "Ben's laptop" } })
  return { ...issued, code }
})

const signIn = async (customer: Person, licenseKey: string) => {
  await customer.page.goto(customer.home)
  await customer.seesHeading("Sign in")
  await customer.fill("License key", licenseKey)
  await customer.click("Show my license")
  await customer.seesHeading(product)
}

/** Axe finds nothing wrong, and nothing is wider than the phone. */
const isFaultless = async (customer: Person) => {
  await customer.isFaultless()
  assert.isAtMost(await customer.overflow(), 0)
}

const asPicture = (text: string) => ({
  name: "code.gif",
  mimeType: "image/gif",
  buffer: Buffer.from(encodeQR(text, "gif", { scale: 6 }))
})
const asFile = (text: string) => ({ name: "request.json", mimeType: "application/json", buffer: Buffer.from(text) })

const chooseFile = (page: Page, file: ReturnType<typeof asFile>) => page.locator("input[type=file]").setInputFiles(file)

/** The text of the code on the page, as a camera would see it. */
const readCode = async (page: Page): Promise<string> => {
  const code = page.locator("svg.code")
  const size = Number((await code.getAttribute("viewBox"))!.split(" ")[2])
  const path = (await code.locator("path").getAttribute("d"))!
  const scale = 4
  const width = size * scale
  const data = new Uint8Array(width * width * 4).fill(255)
  for (const [, x, y] of path.matchAll(/M(\d+) (\d+)h1/g))
    for (let row = 0; row < scale; row++) {
      const start = ((Number(y) * scale + row) * width + Number(x) * scale) * 4
      data.fill(0, start, start + scale * 4)
    }
  return decodeQR({ width, height: width, data })
}

layer(portalLayerWith(portalSettings), { timeout: 300_000 })("A customer at a phone", (it) => {
  it.effect("signs in with a license key, and sees what the license allows and what uses it", ({ skip }) =>
    Effect.gen(function* () {
      const { license_key } = yield* prepare
      yield* withCustomer(skip, async (customer) => {
        await customer.page.goto(customer.home)
        await customer.seesHeading("Sign in")
        await customer.sees("Acme Software")
        await isFaultless(customer)
        await customer.fill("License key", "LK-AAAAA-BBBBB")
        await customer.click("Show my license")
        await customer.sees("This key is not valid")
        await isFaultless(customer)
        // The browser reports refused requests itself.
        assert.lengthOf(customer.problems.splice(0), 1)
        await customer.fill("License key", license_key)
        await customer.press("Enter")
        await customer.seesHeading(product)
        for (const text of [
          "2 of 3 devices in use",
          longName,
          "1 of 5 seats in use",
          "Ben's laptop",
          "850 of 1,000 used"
        ])
          await customer.sees(text)
        await isFaultless(customer)
        await customer.click("Deactivate Anna's MacBook Pro")
        await customer.sees("Its place is free")
        await isFaultless(customer)
        await customer.click("Deactivate")
        await customer.sees("Anna's MacBook Pro is deactivated.")
        await customer.sees("1 of 3 devices in use")
        await customer.page.reload()
        await customer.seesHeading(product)
        assert.notInclude(await customer.page.content(), license_key)
        await customer.click("Sign out")
        await customer.seesHeading("Sign in")
      })
    })
  )

  it.effect("is told what to do about a link that does not work", ({ skip }) =>
    withCustomer(skip, async (customer) => {
      const { page } = customer
      await page.goto(`${customer.home}#link=${"A".repeat(43)}`)
      await customer.seesHeading("You opened a sign-in link")
      assert.strictEqual(page.url(), customer.home)
      await isFaultless(customer)
      await customer.click("Continue")
      await customer.seesHeading("This link does not work")
      assert.lengthOf(customer.problems.splice(0), 1)
      await isFaultless(customer)
      await customer.click("Ask for a new link")
      await customer.seesHeading("Sign in")
    })
  )

  it.effect("reads German in a German browser, and another language when asked", ({ skip }) =>
    Effect.gen(function* () {
      const { license_key } = yield* prepare
      yield* withCustomer(
        skip,
        async (customer) => {
          const { page } = customer
          await page.goto(customer.home)
          await customer.seesHeading("Anmelden")
          await page.getByLabel("Sprache").focus()
          await customer.choose("Sprache", "English")
          await customer.seesHeading("Sign in")
          assert.strictEqual(await page.locator("select:focus").count(), 1)
          await customer.choose("Language", "Deutsch")
          await customer.fill("Lizenzschlüssel", license_key)
          await customer.click("Meine Lizenz anzeigen")
          await customer.sees("850 von 1.000 verbraucht")
          await isFaultless(customer)
          await customer.choose("Sprache", "English")
          await customer.sees("What it includes")
          await page.reload()
          await customer.sees("What it includes")
          assert.strictEqual(await page.locator("html").getAttribute("lang"), "en")
        },
        "de-DE"
      )
    })
  )

  it.effect("licenses a computer without internet, by file, by picture and by camera", ({ skip }) =>
    Effect.gen(function* () {
      const { code, license, license_key } = yield* prepare
      const folder = mkdtempSync(join(tmpdir(), "licensing-camera-"))
      const requestOf = (hostname: string) =>
        JSON.stringify({ fingerprint: longName, hostname, product_code: code, nonce: "n-1" })
      const film = join(folder, "code.y4m")
      writeFileSync(film, cameraOf(requestOf("Camera 9")))
      yield* withCustomer(
        skip,
        async (customer) => {
          const { page } = customer
          await signIn(customer, license_key)
          await customer.click("License such a computer", "link")
          await customer.seesHeading("Computer without internet")
          await chooseFile(page, asFile("no request"))
          await customer.sees("No request was found")
          await chooseFile(page, asPicture("https://example.com"))
          await customer.sees("No request was found")
          await isFaultless(customer)
          await chooseFile(page, asPicture(requestOf("Press 7")))
          await customer.sees("Request of Press 7")
          await customer.click("Scan the code")
          await customer.sees("Request of Camera 9")
          await chooseFile(page, asFile(requestOf("Press 8")))
          await customer.sees("Request of Press 8")
          await isFaultless(customer)
          await customer.click("Create the license file")
          await page.locator("svg.code").waitFor()
          assert.strictEqual(await page.locator(":focus").textContent(), "3. Take it to the computer")
          await isFaultless(customer)
          const download = page.waitForEvent("download")
          await customer.click("Save the license file")
          const file = await download
          assert.strictEqual(file.suggestedFilename(), "license-Press-8.json")
          const saved = readFileSync(await file.path(), "utf8")
          assert.strictEqual(await readCode(page), saved)
          const { data } = JSON.parse(await openEnvelope(license_key, saved))
          assert.strictEqual(data.license_id, license.id)
          assert.strictEqual(data.nonce, "n-1")
          await customer.click("License another computer")
          assert.strictEqual(await page.locator(":focus").textContent(), "1. The computer's request")
          await chooseFile(page, asFile(JSON.stringify({ fingerprint: longName, product_code: "other" })))
          await customer.click("Create the license file")
          await customer.sees("The request is of another product.")
          assert.lengthOf(customer.problems.splice(0), 1)
        },
        "en-GB",
        film
      )
      rmSync(folder, { recursive: true })
    })
  )

  it.effect(`loads at most ${kilobytesMax} kB in all, compressed, and nothing of the console's`, () =>
    Effect.gen(function* () {
      const folder = yield* Effect.scoped(portalBuild)
      const names = readdirSync(join(folder, "assets"))
      const files = names.map((name) => readFileSync(join(folder, "assets", name)))
      const bytes = files.reduce((sum, file) => sum + gzipSync(file).length, 0)
      assert.isAtMost(bytes, kilobytesMax * 1_000)
      assert.notMatch(readFileSync(join(folder, "index.html"), "utf8"), /<script(?![^>]* src=)|<style|console|https?:/)
    })
  )
})
