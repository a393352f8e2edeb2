/** Serves the console, the vendor's web pages. Every path below /console is a screen of the single page. */
import { Context, Effect, Layer } from "effect"
import { HttpRouter, HttpServerResponse } from "effect/http"
import { SignIn } from "../../../access/oidc/SignIn.ts"
import { Settings } from "../../../platform/config/Config.ts"
import { withoutDeadline } from "../../../platform/postgres/driver/Deadline.ts"
import { makePageFiles, pageFolder, pageHeaders } from "./PageFiles.ts"

export const ConsoleFolder = Context.Reference<URL>("licensing/edge/documents/publishing/ConsoleFolder", {
  defaultValue: () => pageFolder("console")
})

const routes = HttpRouter.use(
  Effect.fnUntraced(function* (router) {
    const { tokenOrigin, ways } = yield* SignIn
    const { consoleTitle = "", smtpUrl } = yield* Settings
    const { asset, page } = yield* makePageFiles({
      name: "console",
      folder: yield* ConsoleFolder,
      facts: { "console-title": consoleTitle, "console-mail": String(smtpUrl !== undefined) }
    })
    const headers = Effect.map(withoutDeadline(tokenOrigin), (origin) =>
      pageHeaders("()", ...(origin === undefined ? [] : [origin]))
    )
    yield* router.add("GET", "/console/assets/:name", asset)
    yield* router.add("GET", "/console/sign-in.json", Effect.map(withoutDeadline(ways), HttpServerResponse.jsonUnsafe))
    // This route also matches /console.
    yield* router.add("GET", "/console/*", (request) => Effect.flatMap(headers, (all) => page(request, all)))
  })
)

export const ConsoleHttp = Layer.unwrap(Settings.useSync(({ console }) => (console ? routes : Layer.empty)))
