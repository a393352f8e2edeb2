/**
 * Records that the screen of a start shows anyway (src/edge/system/Announcement.ts). As text on a terminal they would say it twice; the
 * log as JSON has them.
 */
import { Context, Effect } from "effect"

export const ShownOnScreen = Context.Reference<boolean>("licensing/platform/telemetry/ShownOnScreen", {
  defaultValue: () => false
})

export const shownOnScreen: <A, E, R>(logging: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R> =
  Effect.provideService(ShownOnScreen, true)
