/** The console behind a balancer that offers the service below a path, and in a tab that outlives its service. */
import { createServer, request } from "node:http"
import { assert, layer } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { issue } from "../../../support/http/IssuedLicenses.ts"
import { TestServer } from "../../../support/http/TestServer.ts"
import { atConsole, consoleLayerWith } from "../browser/Browser.ts"

const minutes = 5 * 60_000
const path = "/licensing"

/** Offers the service below the path, which it passes on or removes. It passes nothing else. */
class Balancer extends Context.Service<
  Balancer,
  {
    readonly address: string
    lead(port: number, options: { readonly removes: boolean }): Effect.Effect<void>
  }
>()("licensing/test/console/Balancer") {
  static readonly layer = Layer.effect(
    Balancer,
    Effect.gen(function* () {
      let to = { port: 0, removes: false }
      const server = createServer((incoming, response) => {
        const target = incoming.url ?? ""
        if (!target.startsWith(path)) return void response.writeHead(404).end()
        const { headers, method } = incoming
        const onward = to.removes ? target.slice(path.length) || "/" : target
        const passed = request({ port: to.port, host: "127.0.0.1", path: onward, method, headers }, (answer) => {
          response.writeHead(answer.statusCode ?? 502, answer.headers)
          answer.pipe(response)
        })
        passed.on("error", () => response.destroy())
        incoming.pipe(passed)
      })
      yield* Effect.acquireRelease(
        Effect.callback<void>((resume) => void server.listen(0, "127.0.0.1", () => resume(Effect.void))),
        () =>
          Effect.callback<void>((resume) => {
            server.close(() => resume(Effect.void))
            server.closeAllConnections()
          })
      )
      const { port } = server.address() as { readonly port: number }
      return Balancer.of({
        address: `http://127.0.0.1:${port}${path}`,
        lead: (port, { removes }) =>
          Effect.sync(() => {
            to = { port, removes }
          })
      })
    })
  )
}

const behindBalancer = Layer.unwrap(Balancer.useSync(({ address }) => consoleLayerWith({ baseUrl: address }))).pipe(
  Layer.provideMerge(Balancer.layer)
)

layer(behindBalancer, { timeout: minutes })("The console below a path", (it) => {
  for (const removes of [true, false])
    it.effect(
      removes ? "that the balancer removes works" : "that the balancer leaves works",
      ({ skip }) =>
        Effect.gen(function* () {
          const { address, lead } = yield* Balancer
          const { adminToken, port } = yield* TestServer
          yield* lead(port, { removes })
          const customer_name = removes ? "Ada" : "Grace"
          const { id } = yield* issue({}, { customer_name })
          yield* atConsole(
            skip,
            async (person) => {
              await person.page.goto(`${person.home}/licenses/${id}`)
              await person.fill("API token", adminToken)
              await person.press("Enter")
              await person.seesHeading(customer_name)
              await person.click("Licenses", "link")
              await person.choose("Status", "Active")
              await person.sees(customer_name)
              assert.strictEqual(person.page.url(), `${address}/console/licenses?status=active`)
              await person.click("Sign out")
              await person.seesHeading("Licensing console")
            },
            { address, token: "" }
          )
        }),
      minutes
    )

  it.effect(
    "has no license key in an address, however it is typed into the search box",
    ({ skip }) =>
      Effect.gen(function* () {
        const { address, lead } = yield* Balancer
        yield* lead((yield* TestServer).port, { removes: false })
        const { license_key } = yield* issue({}, { customer_name: "Lise" })
        const spaced = license_key.replaceAll("-", " ")
        const bare = (text: string) => text.replaceAll(/[\s+-]/g, "").toUpperCase()
        yield* atConsole(
          skip,
          async (person) => {
            const addresses: Array<string> = []
            const note = (frame: { readonly url: () => string }) =>
              addresses.push(bare(decodeURIComponent(frame.url())))
            person.page.on("framenavigated", note)
            for (const typed of [license_key, spaced, spaced.toLowerCase(), ` ${spaced.replace("LK", "ik")} `]) {
              await person.opens("", "Overview")
              await person.search(typed)
              await person.seesHeading("Lise")
              await person.page.locator("input[type=search][value='']").waitFor()
            }
            await person.search(`of Lise: ${license_key}`)
            await person.sees("Nothing matches")
            const state = (await person.page.evaluate("JSON.stringify(history.state)")) as string
            assert.notInclude(bare(state), bare(license_key))
            assert.isTrue(addresses.some((visited) => visited.endsWith("/SEARCH")))
            assert.deepStrictEqual(
              addresses.filter((visited) => visited.includes(bare(license_key).slice(2))),
              []
            )
            person.page.off("framenavigated", note)
          },
          { address }
        )
      }),
    minutes
  )

  it.effect(
    "says that a newer service has replaced its files, and is never left blank",
    ({ skip }) =>
      Effect.gen(function* () {
        const { address, lead } = yield* Balancer
        yield* lead((yield* TestServer).port, { removes: false })
        yield* atConsole(
          skip,
          async (person) => {
            const isScript = /assets\/Customers-.*\.js/
            await person.page.route(isScript, (route) => route.fulfill({ status: 404 }))
            await person.click("Customers", "link")
            await person.sees("the service was replaced by a newer version")
            assert.deepStrictEqual(await person.violations(), [])
            await person.click("Licenses", "link")
            await person.seesHeading("Licenses")
            await person.click("Customers", "link")
            await person.page.unroute(isScript)
            await person.click("Reload the page")
            await person.seesHeading("Customers")
            // The browser itself reports the missing file.
            person.problems.length = 0
          },
          { address }
        )
      }),
    minutes
  )
})
