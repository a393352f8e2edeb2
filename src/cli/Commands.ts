/**
 * What an operator does from the command line beside a service that is running: through the database, with the service's own
 * settings. Answers go to standard output, one thing on each line; what there is to tell beside them goes to standard error.
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
const beside = Foundation.layerShared.pipe(Layer.provideMerge(settings))

/** Runs as the operator: events name the command line as who acts, and an id that the log and the events share. */
const asOperator = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const requestId = yield* (yield* Identifiers).make("request")
    return yield* effect.pipe(
      Effect.provideService(CurrentActor, { actor_type: "system", actor_id: "cli" }),
      Effect.provideService(RequestContext, { requestId, clientAddress: undefined })
    )
  }).pipe(Effect.provide(beside))

const keys = Command.make("keys").pipe(
  Command.withDescription("The keys that answers are signed with."),
  Command.withSubcommands([
    Command.make("list", {}, () => asOperator(listKeys)).pipe(
      Command.withDescription("List the published signing keys, the active one first.")
    ),
    Command.make("rotate", {}, () => asOperator(rotateKey)).pipe(
      Command.withDescription("Sign with a new key from now on. Every node follows within a second.")
    )
  ])
)

const masterKey = Command.make("master-key").pipe(
  Command.withDescription("The key that secrets are encrypted under at rest."),
  Command.withSubcommands([
    Command.make("rotate", {}, () =>
      Effect.andThen(Effect.provide(prepareNextKey, settings), asOperator(rotateMasterKeys))
    ).pipe(
      Command.withDescription(
        "Move all secrets under LICENSING_MASTER_KEY_NEXT, which every node must know; under a new key file where the key is a file."
      )
    )
  ])
)

const tokens = Command.make("tokens").pipe(
  Command.withDescription("API tokens."),
  Command.withSubcommands([
    Command.make("create", tokenFlags, (flags) => asOperator(createToken(flags))).pipe(
      Command.withDescription("Make an API key and print its token, where no admin token is left.")
    )
  ])
)

const webhooks = Command.make("webhooks").pipe(
  Command.withDescription("Help for those who receive webhook deliveries."),
  Command.withSubcommands([
    Command.make("listen", listenFlags, listen).pipe(
      Command.withDescription("Receive deliveries on this machine, verify and print them, until SIGINT.")
    )
  ])
)

export const commands = [keys, masterKey, tokens, webhooks] as const
