/** The command line: builds the layers from the settings, and runs the service until a signal, or one command. */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Cause, Console, Effect, Layer, Predicate } from "effect"
import { CliError, Command } from "effect/cli"
import { version } from "./contract/Version.ts"
import { configuredLogo } from "./edge/documents/publishing/PortalLogo.ts"
import * as Listener from "./edge/listener/Listener.ts"
import * as Announcement from "./edge/system/Announcement.ts"
import { Shutdown } from "./edge/system/Shutdown.ts"
import { configuredFont } from "./insight/reports/pdf/PdfPrinting.ts"
import { EventLog } from "./ledger/events/EventLog.ts"
import { Settings, unknownSettings } from "./platform/config/Config.ts"
import * as Foundation from "./platform/Foundation.ts"
import * as Logging from "./platform/telemetry/Logging.ts"
import * as Problems from "./platform/telemetry/Problems.ts"
import * as RehearsalClock from "./platform/telemetry/RehearsalClock.ts"
import * as Telemetry from "./platform/telemetry/Telemetry.ts"
import * as Server from "./Server.ts"
import { commands } from "./tools/cli/Commands.ts"
import { exitCodeOf, helpPresenter, untilSignal } from "./tools/cli/Output.ts"
import * as Workers from "./Workers.ts"

// A stop that takes longer is aborted: the sender of the signal usually kills the process soon after. Beside the requests in
// progress, a stop takes a second of notice and the time to write what is buffered.
const stopMillisBeyondDrain = 4_500
let stopMillisMax = stopMillisBeyondDrain

const warnings = Layer.effectDiscard(
  Effect.flatMap(unknownSettings, (lines) =>
    Effect.forEach(lines, (line) => Effect.logWarning(line), { discard: true })
  )
)

const service = Layer.unwrap(
  Settings.useSync(({ clockOffsetSeconds, drainSeconds, logFormat = process.stdout.isTTY ? "pretty" : "json" }) => {
    stopMillisMax = stopMillisBeyondDrain + drainSeconds * 1_000
    return Announcement.layer(logFormat).pipe(
      Layer.provide(Server.layer),
      // The server and the workers share one event log, so that new events wake the delivery worker at once.
      Layer.provide(Workers.layer.pipe(Layer.provide(EventLog.layer))),
      Layer.provide(Foundation.layer),
      // Listens from the beginning, and tells that the service is starting: a database may come later.
      Layer.provide(Listener.layer),
      Layer.provide(Foundation.randomness),
      Layer.provide(Shutdown.layer),
      Layer.provide(Layer.effectDiscard(configuredFont)),
      Layer.provide(Layer.effectDiscard(configuredLogo)),
      Layer.provide(warnings),
      Layer.provide(Problems.layerLogged),
      Layer.provide(Logging.layer(logFormat)),
      Layer.provide(Telemetry.layer(version)),
      Layer.provide(RehearsalClock.layer(() => clockOffsetSeconds * 1_000))
    )
  })
).pipe(Layer.provide(Settings.layer))

const serve = Command.make("serve", {}, () => untilSignal(Layer.launch(service))).pipe(
  Command.withDescription("Serve the API until SIGINT or SIGTERM. Settings come from the environment."),
  Command.withExamples([
    { command: "LICENSING_PORT=8081 licensing serve", description: "docs/SETTINGS.md lists all settings" }
  ])
)

const licensing = Command.make("licensing", {}, () => untilSignal(Layer.launch(service))).pipe(
  Command.withDescription("Self-hosted software licensing. Without a command it runs `serve`."),
  Command.withSubcommands([serve, ...commands])
)

/** Failures are printed for the operator: one plain line each. Defects are printed for developers: with their cause. */
const printFailure = (cause: Cause.Cause<unknown>) => {
  if (Cause.hasInterruptsOnly(cause)) return Effect.void
  const error = Cause.squash(cause)
  if (CliError.isCliError(error)) return Effect.void
  const message = Cause.hasDies(cause) ? Cause.pretty(cause) : messageOf(error)
  return message === "" ? Effect.void : Console.error(message)
}

const messageOf = (error: unknown): string =>
  Predicate.isTagged(error, "ServeError") && Predicate.hasProperty(error, "cause")
    ? `LICENSING_HOST and LICENSING_PORT cannot be listened on: ${messageOf(error.cause)}.`
    : Predicate.hasProperty(error, "message")
      ? String(error.message)
      : String(error)

const exitAfterTimeout = () =>
  setTimeout(() => {
    process.stderr.write("Stopping took too long and was aborted.\n")
    process.exit(1)
  }, stopMillisMax).unref()
process.once("SIGINT", exitAfterTimeout)
process.once("SIGTERM", exitAfterTimeout)

// The console ignores failed writes. A reader that has closed its pipe, such as `head`, has what it wants.
process.stdout.on("error", ({ code, message }: NodeJS.ErrnoException) => {
  if (code === "EPIPE" || process.exitCode === 1) return
  process.exitCode = 1
  process.stderr.write(`Standard output cannot be written: ${message}\n`)
})

Command.run(licensing, { version }).pipe(
  Effect.tapCause(printFailure),
  Effect.provide([NodeServices.layer, helpPresenter]),
  NodeRuntime.runMain({
    disableErrorReporting: true,
    teardown: (exit, onExit) => onExit(exitCodeOf(exit))
  })
)
