/**
 * Every screen with half a year of believable data, light and dark, on a desk, a tablet and a phone: what assistive technology finds wrong
 * with it, and whether it is too wide. `npm run pictures` saves a picture of each, and `npm run pictures:docs` the four in docs/pictures.
 */
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { LicenseStatus } from "../../../../src/licensing/model/License.ts"
import { poll } from "../../../support/rules/Poll.ts"
import { type Look, type Person, withPerson } from "../browser/Browser.ts"
import { nameOf, type Screen, screens } from "../browser/Screens.ts"
import { countOf, exampleLayer, makeExample } from "../example/Example.ts"

const minutes = 15 * 60_000

/** Where pictures of all screens are saved, if a folder is named. */
const folder = process.env["CONSOLE_PICTURES"]
const isForDocs = process.env["CONSOLE_PICTURES_DOCS"] === "true"
const docs = fileURLToPath(new URL("../../../../docs/pictures/", import.meta.url))

/** Screens in the documents, with the look in which they are there. */
const inDocs: Readonly<Record<string, string>> = {
  overview: "light-desk",
  licenses: "light-desk",
  "licenses-one": "light-desk",
  products: "dark-desk"
}
const bytesMax = 150_000

interface Examined extends Look {
  readonly name: string
  /** It has what axe examines in another look, only wider or narrower. */
  readonly isBetween?: boolean
}

const looks: ReadonlyArray<Examined> = [
  { name: "light-desk" },
  { name: "dark-desk", dark: true },
  { name: "light-tablet", width: 1024, isBetween: true },
  { name: "light-phone", width: 390 }
]
const darkPhone: Examined = { name: "dark-phone", dark: true, width: 390, isBetween: true }

const examined = folder === undefined && !isForDocs ? looks : [...looks, darkPhone]

const save = async (person: Person, name: string, look: string) => {
  await person.isLoaded()
  if (folder !== undefined) {
    mkdirSync(folder, { recursive: true })
    await person.page.screenshot({ path: join(folder, `${name}-${look}.png`), fullPage: true })
  }
  if (!isForDocs || inDocs[name] !== look) return
  mkdirSync(docs, { recursive: true })
  const bytes = await webpOf(person, await person.page.screenshot())
  assert.isAtMost(bytes.length, bytesMax)
  writeFileSync(join(docs, `${name}.webp`), bytes)
}

/** The browser itself writes the format that is a third as large, on a page without the console's security policy. */
const webpOf = async (person: Person, png: Buffer): Promise<Buffer> => {
  const page = await person.page.context().newPage()
  const url = await page.evaluate(`(async () => {
    const image = new Image()
    image.src = "data:image/png;base64,${png.toString("base64")}"
    await image.decode()
    const canvas = document.createElement("canvas")
    Object.assign(canvas, { width: image.width, height: image.height })
    canvas.getContext("2d").drawImage(image, 0, 0)
    return canvas.toDataURL("image/webp", 0.9)
  })()`)
  await page.close()
  return Buffer.from((url as string).split(",")[1]!, "base64")
}

const lookAtAll = async (person: Person, all: ReadonlyArray<Screen>) => {
  const found: Array<string> = []
  const examine = (screen: string) =>
    person.inLooks(examined, async ({ isBetween, name }) => {
      const where = `${screen}, ${name}`
      await save(person, screen, name)
      const pixels = await person.overflow()
      if (pixels > 0) found.push(`${where} is ${pixels} pixels too wide`)
      if (isBetween !== true) found.push(...(await person.violations()).map((violation) => `${where}: ${violation}`))
    })
  for (const screen of all) {
    await person.opens(...screen)
    await examine(nameOf(screen))
  }
  for (const [path, heading, action] of [
    ["/webhooks", "Webhooks", "New webhook"],
    ["/api-keys", "API keys", "New API key"]
  ] as const) {
    await person.opens(path, heading)
    await person.click(action)
    await examine(`${nameOf([path, heading])}-dialog`)
    await person.press("Escape")
  }
  await person.click("Sign out")
  await person.seesHeading("Licensing console")
  await examine("sign-in")
  assert.deepStrictEqual(found, [])
}

layer(exampleLayer, { timeout: minutes })("The console of a vendor with a history", (it) => {
  it.effect(
    "shows licenses in all states, and no screen is too wide or has faults that axe finds",
    ({ skip }) =>
      Effect.gen(function* () {
        yield* makeExample
        const all = yield* screens
        for (const status of LicenseStatus.literals) yield* poll(countOf(status), (count) => count > 0)
        assert.isAtLeast(yield* countOf("active"), 50)
        yield* withPerson(skip, (person) => lookAtAll(person, all))
      }).pipe(Effect.scoped),
    minutes
  )
})
