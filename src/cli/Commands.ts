/**
 * The operator's commands, which work while a service is running: through the database, with the service's own settings. Results
 * go to standard output, one per line; hints and warnings go to standard error.
 */
import { Effect, Layer, Logger, References } from "effect"
import { Command } from "effect/cli"
import { Identifiers } from "../api/Identifier.ts"
import { RequestContext } from "../api/RequestContext.ts"
import { CurrentActor } from "../auth/CurrentActor.ts"
import { Settings } from "../config/Config.ts"
import * as Foundation from "../Foundation.ts"
import * as RehearsalClock from "../telemetry/RehearsalClock.ts"
import { listKeys, rotateKey } from "./Keys.ts"
import { listen, listenFlags } from "./Listen.ts"
import { prepareNextKey, rotateMasterKeys } from "./MasterKeys.ts"
import { createToken, tokenFlags } from "./Tokens.ts"

const logging = Layer.merge(
  Logger.layer([Logger.withConsoleError(Logger.formatSimple)]),
  Layer.succeed(References.MinimumLogLevel, "Warn")
)
const clock = Layer.unwrap(
  Settings.useSync(({ clockOffsetSeconds }) => RehearsalClock.layer(() => clockOffsetSeconds * 1_000))
)
const settings = Layer.provideMerge(Layer.provideMerge(clock, Settings.layer), logging)
const foundation = Foundation.layerShared.pipe(Layer.provideMerge(settings))

/** Runs as the operator: events record the command line as their actor, and one request id for the log and the events. */
const asOperator = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const requestId = yield* (yield* Identifiers).make("request")
    return yield* effect.pipe(
      Effect.provideService(CurrentActor, { actor_type: "system", actor_id: "cli" }),
      Effect.provideService(RequestContext, { requestId, clientAddress: undefined })
    )
  }).pipe(Effect.provide(foundation))

const keys = Command.make("keys").pipe(
  Command.withDescription("The keys that sign responses."),
  Command.withSubcommands([
    Command.make("list", {}, () => asOperator(listKeys)).pipe(
      Command.withDescription("List the published signing keys, the active one first.")
    ),
    Command.make("rotate", {}, () => asOperator(rotateKey)).pipe(
      Command.withDescription("Sign with a new key from now on. Every node uses it within a second.")
    )
  ])
)

const masterKey = Command.make("master-key").pipe(
  Command.withDescription("The key that encrypts stored secrets."),
  Command.withSubcommands([
    Command.make("rotate", {}, () =>
      Effect.andThen(Effect.provide(prepareNextKey, settings), asOperator(rotateMasterKeys))
    ).pipe(
      Command.withDescription(
        "Encrypt all secrets with LICENSING_MASTER_KEY_NEXT, which must be set on every node first; if the master key is a file, with a new key file."
      )
    )
  ])
)

const tokens = Command.make("tokens").pipe(
  Command.withDescription("API tokens."),
  Command.withSubcommands([
    Command.make("create", tokenFlags, (flags) => asOperator(createToken(flags))).pipe(
      Command.withDescription("Create an API key and print its token. Use it if all admin tokens are lost.")
    )
  ])
)

const webhooks = Command.make("webhooks").pipe(
  Command.withDescription("Tools for developing webhook receivers."),
  Command.withSubcommands([
    Command.make("listen", listenFlags, listen).pipe(
      Command.withDescription("Receive deliveries on this machine, verify and print them, until SIGINT.")
    )
  ])
)

export const commands = [keys, masterKey, tokens, webhooks] as const
