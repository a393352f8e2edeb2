import { Clock, type Context, Effect } from "effect"
import { journalGroup, journalSeconds } from "../../platform/telemetry/Metrics.ts"

/** Records how many licenses a commit wrote and how long it took. */
export const makeMeasure = Effect.contextWith((context: Context.Context<never>) =>
  Effect.map(
    Clock.Clock,
    (clock) =>
      (licenses: number) =>
      <A, E, R>(commit: Effect.Effect<A, E, R>) =>
        Effect.suspend(() => {
          const started = clock.monotonicTimeNanosUnsafe()
          return Effect.onExit(commit, () =>
            Effect.sync(() => {
              journalGroup.updateUnsafe(licenses, context)
              journalSeconds.updateUnsafe(Number(clock.monotonicTimeNanosUnsafe() - started) / 1e9, context)
            })
          )
        })
  )
)

export type Measure = Effect.Success<typeof makeMeasure>
