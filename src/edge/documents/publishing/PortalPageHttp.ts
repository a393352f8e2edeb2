/** Serves the customer's page: one page, its assets, and the vendor's colors and logo. */
import { Context, Effect, FileSystem, Path } from "effect"
import { HttpRouter } from "effect/http"
import { refuse } from "../../../contract/api/Failure.ts"
import { Settings } from "../../../platform/config/Config.ts"
import { withoutDeadline } from "../../../platform/postgres/driver/Deadline.ts"
import { compress, respond, respondRefusal } from "./CompressedDocument.ts"
import { makePageFiles, pageFolder, pageHeaders } from "./PageFiles.ts"
import { colorsOf } from "./PortalColors.ts"

export const PortalFolder = Context.Reference<URL>("licensing/edge/documents/publishing/PortalFolder", {
  defaultValue: () => pageFolder("portal")
})

const imageTypes: Readonly<Record<string, string>> = {
  ".svg": "image/svg+xml",
  ".png": "image/png",
  ".webp": "image/webp",
  ".jpg": "image/jpeg"
}

const noLogo = refuse("NOT_FOUND", "LICENSING_PORTAL_LOGO names no readable image: .svg, .png, .webp or .jpg.")

export const PortalPageHttp = HttpRouter.use(
  Effect.fnUntraced(function* (router) {
    const { portalColor, portalLogo } = yield* Settings
    const system = yield* FileSystem.FileSystem
    const { extname } = yield* Path.Path
    const { asset, page } = yield* makePageFiles({
      name: "portal",
      folder: yield* PortalFolder
    })
    const headers = pageHeaders("(self)")
    const colors = yield* compress("text/css; charset=utf-8", new TextEncoder().encode(colorsOf(portalColor)))
    const type = imageTypes[extname(portalLogo ?? "").toLowerCase()]
    const logo =
      portalLogo === undefined || type === undefined
        ? Effect.undefined
        : withoutDeadline(
            yield* Effect.cached(
              Effect.orElseSucceed(
                Effect.flatMap(system.readFile(portalLogo), (bytes) => compress(type, bytes)),
                () => undefined
              )
            )
          )
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
