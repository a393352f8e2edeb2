/** A customer with a phone, at the customer's page of the test's server. */
import { pathToFileURL } from "node:url"
import { assert } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { chromium as launcher } from "playwright-core"
import { encodeQR } from "qr"
import { PortalFolder } from "../../../src/edge/documents/publishing/PortalPageHttp.ts"
import { mailSettingsOf, makeMailServer, Receiver } from "../../support/http/MailServer.ts"
import { TestServer } from "../../support/http/TestServer.ts"
import { layerService } from "../../support/http/Webhooks.ts"
import { wholeChromium } from "../../support/processes/Chromium.ts"
import { freePort } from "../../support/processes/FreePort.ts"
import { Browser, Person } from "../console/browser/Browser.ts"
import { portalBuild } from "../console/browser/BuiltConsole.ts"

const builtPortal = Layer.effect(
  PortalFolder,
  Effect.map(portalBuild, (folder) => pathToFileURL(`${folder}/`))
)

/** A browser, and a service with the page. */
export const portalLayerWith = (settings: Parameters<typeof TestServer.layerWith>[0]) =>
  Layer.mergeAll(
    TestServer.layerWith({ portal: true, ...settings }).pipe(Layer.provideMerge(builtPortal)),
    Browser.layer
  )

/** The page at its real address, whose mails a real server receives. */
export const mailedPortalLayer = Layer.unwrap(
  Effect.gen(function* () {
    const server = yield* makeMailServer()
    const port = yield* freePort
    const settings = { portal: true, ratePortal: 0, port, baseUrl: `http://127.0.0.1:${port}` }
    return Layer.mergeAll(
      layerService({ ...settings, ...mailSettingsOf(server) }).pipe(Layer.provideMerge(builtPortal)),
      Browser.layer,
      Layer.succeed(Receiver, server)
    )
  })
)

const width = 390

/** Gives a new browser to a customer, whose camera may show a film. Nothing may be wrong in it at the end. */
export const withCustomer = Effect.fnUntraced(function* (
  skip: (reason: string) => void,
  body: (customer: Person) => Promise<void>,
  locale = "en-GB",
  film?: string
) {
  const { chromium } = yield* Browser
  const { baseUrl } = yield* TestServer
  const browser = film === undefined ? chromium : yield* Effect.promise(() => withFilm(film))
  if (browser === undefined) return skip("this machine lacks chromium")
  yield* Effect.promise(async () => {
    const context = await browser.newContext({
      locale,
      timezoneId: "Europe/Berlin",
      hasTouch: true,
      ...(film !== undefined && { permissions: ["camera"] })
    })
    const customer = new Person(await context.newPage(), `${baseUrl}/portal`, { width })
    await customer.changesLook({ width })
    await body(customer)
    assert.deepStrictEqual(customer.problems, [])
    await context.close()
    if (film !== undefined) await browser.close()
  })
})

/** Asks for a link where people sign in. */
export const askForLink = async (customer: Person, address: string) => {
  await customer.page.goto(customer.home)
  await customer.fill("E-mail address", address)
  await customer.click("Send me a link")
  await customer.sees("a link is on its way")
}

/** The link of a mail. */
export const linkIn = (html: string): string => /href="([^"]+)"/.exec(html)![1]!

/** A browser of its own, whose camera shows a film. */
const withFilm = async (film: string) => {
  const executablePath = await wholeChromium()
  if (executablePath === undefined) return undefined
  const camera = ["--use-fake-device-for-media-stream", `--use-file-for-fake-video-capture=${film}`]
  return launcher.launch({ executablePath, args: ["--no-sandbox", "--disable-dev-shm-usage", ...camera] })
}

/** A film in which the camera sees a text as a QR code: YUV4MPEG2 with one frame, repeated. */
export const cameraOf = (text: string): Buffer => {
  const modules = encodeQR(text, "raw", { border: 4 })
  const size = 480
  const scale = Math.floor(size / modules.length)
  const isDark = (pixel: number) =>
    modules[Math.floor(Math.floor(pixel / size) / scale)]?.[Math.floor((pixel % size) / scale)] === true
  const light = Uint8Array.from({ length: size * size }, (_, pixel) => (isDark(pixel) ? 16 : 235))
  const colors = new Uint8Array((size * size) / 2).fill(128)
  const frame = Buffer.concat([Buffer.from("FRAME\n"), light, colors])
  return Buffer.concat([Buffer.from(`YUV4MPEG2 W${size} H${size} F10:1 Ip A1:1 C420mpeg2\n`), frame, frame])
}
