/**
 * How commands reach the service: through its database, with the settings of a node, while nodes run. Events record the command
 * line as their actor.
 */
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { Console, Effect, Layer, Logger, References } from "effect"
import { CurrentActor } from "../../access/CurrentActor.ts"
import { Identifiers } from "../../contract/api/Identifier.ts"
import { RequestContext } from "../../contract/api/RequestContext.ts"
import { Settings, unknownSettings } from "../../platform/config/Config.ts"
import * as Foundation from "../../platform/Foundation.ts"
import { hasDatabase } from "../../platform/postgres/embedded/DatabaseFolder.ts"
import * as RehearsalClock from "../../platform/telemetry/RehearsalClock.ts"
import { CommandEnded } from "./Output.ts"

/** Prints only warnings and errors, to standard error. */
export const logging = Layer.merge(
  Logger.layer([Logger.withConsoleError(Logger.formatSimple)]),
  Layer.succeed(References.MinimumLogLevel, "Warn")
)
const clock = Layer.unwrap(
  Settings.useSync(({ clockOffsetSeconds }) => RehearsalClock.layer(() => clockOffsetSeconds * 1_000))
)

/** The settings, with the service's clock. */
export const settings = Layer.provideMerge(Layer.provideMerge(clock, Settings.layer), logging)

/** Also warns about variables that are no settings. */
export const settingsWithWarnings = Layer.effectDiscard(
  Effect.flatMap(unknownSettings, (lines) => Effect.forEach(lines, (line) => Console.error(line), { discard: true }))
).pipe(Layer.provideMerge(settings))

/** Refuses a data folder without a database: a mistyped LICENSING_DATA_DIR must not create a second installation. */
const existing = Effect.gen(function* () {
  const { databaseUrl, dataDir } = yield* Settings
  if (databaseUrl !== undefined || (yield* hasDatabase(dataDir))) return
  const message = `There is no database in ${dataDir}: correct LICENSING_DATA_DIR, or create it with \`migrate\` or \`serve\`.`
  return yield* new CommandEnded({ exitCode: 1, message })
}).pipe(Effect.provide(NodeFileSystem.layer))

const ofExisting = Layer.provide(Layer.effectDiscard(existing))
const orNew = Foundation.layerShared.pipe(Layer.provideMerge(settingsWithWarnings))
const foundation = Foundation.layerShared.pipe(ofExisting, Layer.provideMerge(settingsWithWarnings))
const withoutKeys = Foundation.layerSharedWithoutKeys.pipe(ofExisting, Layer.provideMerge(settingsWithWarnings))

/** Runs with one request id for the log and the events. */
export const asOperator = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.provide(operating(effect), foundation)

/** Also creates the embedded database if there is none. */
export const asFirstOperator = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.provide(operating(effect), orNew)

/** Creates no signing key in a new database. */
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
