/**
 * The SDK's reports about itself, such as a failed export. They are logged as warnings; a repeated problem is logged once and counted
 * (`RepeatedFailures`).
 */
import { Context, Effect, Layer, Queue } from "effect"
import { IsAboutExport } from "./TelemetryExports.ts"

/** The maximum number of problems that wait for the logger. Older ones are dropped. */
const waitingMax = 100

/** Undefined without telemetry. */
export const TelemetryProblems = Context.Reference<Queue.Queue<string> | undefined>(
  "licensing/platform/telemetry/Problems",
  { defaultValue: () => undefined }
)

export const makeProblems = Queue.sliding<string>(waitingMax)

/** Logs the problems. */
export const layerLogged = Layer.effectDiscard(
  Effect.gen(function* () {
    const problems = yield* TelemetryProblems
    if (problems === undefined) return
    const logNext = Effect.flatMap(Queue.take(problems), (reason) =>
      Effect.logWarning("Telemetry has a problem; requests are not affected.", { reason })
    )
    yield* Effect.forkScoped(Effect.forever(Effect.provideService(logNext, IsAboutExport, true)))
  })
)
