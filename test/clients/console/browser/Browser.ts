/** Headless Chromium with the console of the test's server, and a person who uses it and whose interactions are counted. */
import { readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { assert } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { type Browser as Chromium, chromium, type Page } from "playwright-core"
import { TestServer } from "../../../support/http/TestServer.ts"
import { headlessChromium } from "../../../support/processes/Chromium.ts"
import { builtConsole } from "./BuiltConsole.ts"

interface Started {
  /** Undefined if the machine has no Chromium. */
  readonly chromium: Chromium | undefined
  /** Idle pages. A page's process costs more than most tests, so tests hand theirs on. */
  readonly free: Array<Page>
}

const start = async (): Promise<Started> => {
  const executablePath = await headlessChromium()
  if (executablePath === undefined) return { chromium: undefined, free: [] }
  const args = ["--no-sandbox", "--disable-dev-shm-usage"]
  return { chromium: await chromium.launch({ executablePath, args }), free: [] }
}

/** The browser of this process, which ends with it: the next test files use it, too. */
let started: Promise<Started> | undefined

export class Browser extends Context.Service<Browser, Started>()("licensing/test/Browser") {
  static readonly layer = Layer.effect(
    Browser,
    Effect.promise(() => (started ??= start()))
  )
}

/** A browser, and a service with the console. */
export const consoleLayerWith = (settings: Parameters<typeof TestServer.layerWith>[0]) =>
  Layer.mergeAll(TestServer.layerWith(settings).pipe(Layer.provideMerge(builtConsole)), Browser.layer)

export const consoleLayer = consoleLayerWith({})

const axe = readFileSync(fileURLToPath(import.meta.resolve("axe-core/axe.min.js")), "utf8")
const rules = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
/** The only ones of them that compare colours. */
const colourRules = ["color-contrast", "link-in-text-block"]

// Awaits states of a machine that may be busy.
const patienceMillis = 90_000

interface Violation {
  readonly id: string
  readonly nodes: ReadonlyArray<{ readonly html: string }>
}

/** A person at the console. */
export class Person {
  interactions = 0
  /** What the browser reports as wrong: errors of scripts, and of the page's security policy. */
  readonly problems: Array<string> = []
  readonly page: Page
  readonly home: string
  private readonly look: Look
  private shown: Look

  constructor(page: Page, home: string, look: Look) {
    this.page = page
    this.home = home
    this.look = look
    this.shown = look
    page.setDefaultTimeout(patienceMillis)
    page.on("pageerror", (error) => this.problems.push(error.message))
    page.on("console", (message) => {
      if (message.type() === "error" || message.type() === "warning") this.problems.push(message.text())
    })
  }

  /** What is in front: an open dialog, or else the page. */
  private get place() {
    return this.page.locator("dialog[open], body:not(:has(dialog[open]))").last()
  }

  async click(name: string | RegExp, role: "button" | "link" = "button") {
    this.interactions++
    await this.place
      .getByRole(role, { name, exact: typeof name === "string" })
      .first()
      .click()
  }

  /** Opens a menu, and chooses one of its actions. */
  async pick(menu: string, action: string | RegExp) {
    await this.click(menu)
    await this.click(action)
  }

  async fill(label: string | RegExp, text: string) {
    this.interactions++
    await this.place.getByLabel(label).first().fill(text)
  }

  async choose(label: string, option: string) {
    this.interactions++
    const field = this.place.getByLabel(label, { exact: true })
    await field.locator("option", { hasText: option }).first().waitFor({ state: "attached" })
    await field.selectOption({ label: option })
  }

  async check(label: string | RegExp) {
    this.interactions++
    await this.place.getByLabel(label).first().check()
  }

  async press(key: string) {
    this.interactions++
    await this.page.keyboard.press(key)
  }

  /** Types into the search box, and Enter. */
  async search(text: string) {
    await this.fill(/^Search/, text)
    await this.press("Enter")
  }

  async sees(text: string | RegExp) {
    await this.page.getByText(text).filter({ visible: true }).first().waitFor()
  }

  async seesHeading(name: string | RegExp) {
    await this.page.getByRole("heading", { name, level: 1, exact: typeof name === "string" }).waitFor()
  }

  /** Awaits that no dialog is open: the service has done what was asked. */
  async isDone() {
    // Not only closed: a press between that and its removal would be undone.
    await this.page.locator("dialog").waitFor({ state: "detached" })
  }

  async opens(path: string, heading: string | RegExp) {
    await this.page.goto(`${this.home}${path}`)
    await this.seesHeading(heading)
  }

  /** Awaits that the screen has loaded. */
  async isLoaded() {
    await this.page.locator(".waiting, [aria-busy=true]").first().waitFor({ state: "hidden" })
  }

  /** By how many pixels the screen is too wide. */
  async overflow() {
    return (await this.page.evaluate("document.documentElement.scrollWidth - innerWidth")) as number
  }

  /** Looks at the same screen in each look, and at last in the person's own. */
  async inLooks<A extends Look>(looks: ReadonlyArray<A>, body: (look: A) => Promise<void>) {
    for (const look of looks) {
      await this.changesLook(look)
      await body(look)
    }
    await this.changesLook(this.look)
  }

  async changesLook(look: Look) {
    const { dark = false, width = 1280 } = look
    this.shown = look
    // A colour that fades would be measured on its way.
    await this.page.emulateMedia({ colorScheme: dark ? "dark" : "light", reducedMotion: "reduce" })
    await this.page.setViewportSize({ width, height: 860 })
    // What measures itself is drawn again in the frame after.
    await this.page.evaluate("new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))")
  }

  /** What axe finds wrong with the screen, once it has loaded. Where only the scheme was changed, only colours can be wrong. */
  async violations(): Promise<ReadonlyArray<string>> {
    await this.isLoaded()
    if (await this.page.evaluate("typeof axe === 'undefined'")) await this.page.evaluate(axe)
    const isRecoloured = this.shown.dark === true && this.look.dark !== true
    const runOnly = isRecoloured ? { type: "rule", values: colourRules } : rules
    const options = JSON.stringify({ runOnly, resultTypes: ["violations"] })
    const run = `axe.run(document, ${options}).then(({ violations }) => violations)`
    const found = (await this.page.evaluate(run)) as ReadonlyArray<Violation>
    return found.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(" ")}`)
  }

  /** Axe finds nothing wrong with the screen, whatever its look. */
  async isFaultless() {
    await this.inLooks(looks, async (look) => assert.deepStrictEqual(await this.violations(), [], JSON.stringify(look)))
  }
}

/** Light and dark, on a desk and on a phone. */
export const looks: ReadonlyArray<Look> = [{}, { dark: true }, { width: 390 }]

export interface Look {
  readonly token?: string
  readonly dark?: boolean
  readonly width?: number
  /** The service's address as the browser sees it. */
  readonly address?: string
  /** The test moves the page's clock or replaces functions of the page, which no later test could set right again. */
  readonly movesClock?: boolean
}

const newPage = async (chromium: Chromium) =>
  (await chromium.newContext({ timezoneId: "America/New_York", locale: "en-GB" })).newPage()

const native = `[Date, setTimeout, fetch, URL.createObjectURL].every((made) => String(made).includes("[native code]"))`

/** Leaves nothing of a test in a page: neither the running console nor what is stored. */
const leave = async (page: Page, home: string) => {
  for (const event of ["pageerror", "console", "request"]) page.removeAllListeners(event)
  for (const routed of [page, page.context()]) await routed.unrouteAll({ behavior: "ignoreErrors" })
  await page.goto(home.replace(/\/console$/, "/health"))
  await page.evaluate("sessionStorage.clear(), localStorage.clear()")
  assert.isTrue(
    await page.evaluate(native),
    "A test that moves the page's clock or replaces its functions says movesClock"
  )
  await page.context().clearCookies()
  await page.goto("about:blank")
}

/** Gives a browser to a person, signed in unless the token is empty, who opens a screen and does something there. */
export const withPerson = Effect.fnUntraced(function* (
  skip: (reason: string) => void,
  body: (person: Person) => Promise<void>,
  { address, movesClock = false, token, ...look }: Look = {}
) {
  const { chromium, free } = yield* Browser
  const { adminToken, baseUrl } = yield* TestServer
  if (chromium === undefined) return skip("this machine lacks chromium")
  const given = token ?? adminToken
  yield* Effect.promise(async () => {
    const page = (movesClock ? undefined : free.pop()) ?? (await newPage(chromium))
    const person = new Person(page, `${address ?? baseUrl}/console`, look)
    await person.changesLook(look)
    const script = `sessionStorage.setItem("licensing.token", ${JSON.stringify(given)})`
    const signIn = given === "" ? undefined : await page.addInitScript(script)
    await body(person)
    assert.notStrictEqual(page.url(), "about:blank")
    assert.deepStrictEqual(person.problems, [])
    await signIn?.dispose()
    if (movesClock) return await page.context().close()
    await leave(page, person.home)
    free.push(page)
  })
})

/** The same for a person who begins at the overview, or where people sign in. */
export const atConsole = (skip: (reason: string) => void, body: (person: Person) => Promise<void>, look: Look = {}) =>
  withPerson(
    skip,
    async (person) => {
      await person.opens("", look.token === "" ? "Licensing console" : "Overview")
      await body(person)
    },
    look
  )
