/** Serves the customer's page: one page, its assets, and the vendor's colors and logo. */
import { Context, Effect } from "effect"
import { HttpRouter } from "effect/http"
import { refuse } from "../../../contract/api/Failure.ts"
import { Settings } from "../../../platform/config/Config.ts"
import { withoutDeadline } from "../../../platform/postgres/driver/Deadline.ts"
import { compress, respond, respondRefusal } from "./CompressedDocument.ts"
import { makePageFiles, pageFolder, pageHeaders } from "./PageFiles.ts"
import { colorsOf } from "./PortalColors.ts"
import { configuredLogo } from "./PortalLogo.ts"

export const PortalFolder = Context.Reference<URL>("licensing/edge/documents/publishing/PortalFolder", {
  defaultValue: () => pageFolder("portal")
})

const noLogo = refuse("NOT_FOUND", "There is no logo: set LICENSING_PORTAL_LOGO to the path of an image.")

export const PortalPageHttp = HttpRouter.use(
  Effect.fnUntraced(function* (router) {
    const { portalColor } = yield* Settings
    const { asset, page } = yield* makePageFiles({
      name: "portal",
      folder: yield* PortalFolder
    })
    const headers = pageHeaders("(self)")
    const colors = yield* compress("text/css; charset=utf-8", new TextEncoder().encode(colorsOf(portalColor)))
    const configured = yield* configuredLogo
    const logo =
      configured === undefined
        ? Effect.undefined
        : withoutDeadline(yield* Effect.cached(compress(configured.type, configured.bytes)))
    yield* router.add("GET", "/portal/assets/:name", asset)
    yield* router.add("GET", "/portal/colors.css", (request) => Effect.succeed(respond(request, colors)))
    yield* router.add("GET", "/portal/logo", (request) =>
      Effect.flatMap(logo, (image) =>
        image === undefined ? respondRefusal(noLogo) : Effect.succeed(respond(request, image))
      )
    )
    for (const path of ["/portal", "/portal/"] as const)
      yield* router.add("GET", path, (request) => page(request, headers))
  })
)
