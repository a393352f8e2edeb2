/**
 * OpenTelemetry: exports traces, metrics and logs if an endpoint is set. Otherwise no package of OpenTelemetry is loaded.
 */
import { Effect, Layer } from "effect"
import { Settings } from "../config/Config.ts"

/** `version` is the service's. */
export const layer = (version: string) =>
  Layer.unwrap(
    Effect.gen(function* () {
      const { telemetry } = yield* Settings
      if (telemetry === undefined) return Layer.empty
      const { layer } = yield* Effect.promise(() => import("./OpenTelemetry.ts"))
      return layer(telemetry, version)
    })
  )
