/** The vendor's image on the customer's page. */
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, FileSystem, Path, Schema } from "effect"
import { Settings } from "../../../platform/config/Config.ts"

const imageTypes: Readonly<Record<string, string>> = {
  ".svg": "image/svg+xml",
  ".png": "image/png",
  ".webp": "image/webp",
  ".jpg": "image/jpeg"
}

class LogoRefused extends Schema.TaggedError<LogoRefused>()("LogoRefused", { path: Schema.String }) {
  override get message(): string {
    return `LICENSING_PORTAL_LOGO must be the path of an image that can be read: ${this.path} cannot.`
  }
}

/** Read when the service starts: an unreadable one stops the start. */
export const configuredLogo = Effect.gen(function* () {
  const { portalLogo } = yield* Settings
  if (portalLogo === undefined) return undefined
  const { extname } = yield* Path.Path
  const bytes = yield* Effect.mapError(
    (yield* FileSystem.FileSystem).readFile(portalLogo),
    () => new LogoRefused({ path: portalLogo })
  )
  return { bytes, type: imageTypes[extname(portalLogo).toLowerCase()]! }
}).pipe(Effect.provide(NodeServices.layer))
