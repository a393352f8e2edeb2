/**
 * How commands reach the service: through its database, with the settings of a node, while nodes run. Events record the command
 * line as their actor.
 */
import { Console, Effect, Layer, Logger, References } from "effect"
import { CurrentActor } from "../../access/CurrentActor.ts"
import { Identifiers } from "../../contract/api/Identifier.ts"
import { RequestContext } from "../../contract/api/RequestContext.ts"
import { Settings, unknownSettings } from "../../platform/config/Config.ts"
import * as Foundation from "../../platform/Foundation.ts"
import * as RehearsalClock from "../../platform/telemetry/RehearsalClock.ts"

/** Only warnings and errors, on standard error. */
const logging = Layer.merge(
  Logger.layer([Logger.withConsoleError(Logger.formatSimple)]),
  Layer.succeed(References.MinimumLogLevel, "Warn")
)
const clock = Layer.unwrap(
  Settings.useSync(({ clockOffsetSeconds }) => RehearsalClock.layer(() => clockOffsetSeconds * 1_000))
)

/** The settings, with the service's clock. */
export const settings = Layer.provideMerge(Layer.provideMerge(clock, Settings.layer), logging)

/** The same, and a line on standard error for each variable that is not a setting. */
export const settingsWithWarnings = Layer.effectDiscard(
  Effect.flatMap(unknownSettings, (lines) => Effect.forEach(lines, (line) => Console.error(line), { discard: true }))
).pipe(Layer.provideMerge(settings))

const foundation = Foundation.layerShared.pipe(Layer.provideMerge(settingsWithWarnings))
const withoutKeys = Foundation.layerSharedWithoutKeys.pipe(Layer.provideMerge(settingsWithWarnings))

/** Runs as the operator: with one request id for the log and the events. */
export const asOperator = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.provide(operating(effect), foundation)

/** The same, and creates no signing key in a new database. */
export const asOperatorWithoutKeys = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.provide(operating(effect), withoutKeys)

const operating = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const requestId = yield* (yield* Identifiers).make("request")
    return yield* effect.pipe(
      Effect.provideService(CurrentActor, { actor_type: "system", actor_id: "cli" }),
      Effect.provideService(RequestContext, { requestId, clientAddress: undefined })
    )
  })
