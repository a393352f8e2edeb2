/**
 * Marks records that the start screen also shows (src/edge/system/Announcement.ts). The text log on a terminal omits them; the JSON
 * log has them.
 */
import { Context, Effect } from "effect"

export const ShownOnScreen = Context.Reference<boolean>("licensing/platform/telemetry/ShownOnScreen", {
  defaultValue: () => false
})

export const shownOnScreen: <A, E, R>(logging: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R> =
  Effect.provideService(ShownOnScreen, true)
