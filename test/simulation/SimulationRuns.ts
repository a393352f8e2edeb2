/** Runs of the simulator on one database, for tests. */
import { Context, Effect, Layer } from "effect"
import type { SqlClient } from "effect/sql"
import { Database } from "../support/database/Database.ts"
import { openPools } from "./nodes/Pools.ts"
import { simulate } from "./Simulation.ts"

/** Steps of each run. */
export const steps = 24

export type Run = (seed: number) => Effect.Effect<Effect.Success<ReturnType<typeof simulate>>>

export class SimulationRuns extends Context.Service<
  SimulationRuns,
  {
    /** A connection beside the nodes. */
    readonly observer: SqlClient.SqlClient
    readonly run: Run
    /** The result of a seed, which runs once. */
    readonly result: Run
  }
>()("licensing/test/SimulationRuns") {
  static readonly layer = Layer.effect(
    SimulationRuns,
    Effect.gen(function* () {
      const { url } = yield* Database
      const pools = yield* Effect.orDie(openPools(url))
      const run: Run = (seed) => Effect.orDie(simulate(pools, { seed, steps }))
      const results = new Map<number, Effect.Success<ReturnType<Run>>>()
      const result: Run = (seed) => {
        const known = results.get(seed)
        if (known !== undefined) return Effect.succeed(known)
        return Effect.tap(run(seed), (made) => Effect.sync(() => results.set(seed, made)))
      }
      return SimulationRuns.of({ observer: pools.observer, run, result })
    })
  ).pipe(Layer.provide(Database.layerUrl))
}
