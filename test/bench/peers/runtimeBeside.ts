/**
 * The runtime API's loss while a backlog of webhook deliveries is sent: the same load without and with one, in
 * alternating turns.
 */
import { Effect } from "effect"
import type { Measured } from "../load/Load.ts"
import type { Side } from "../load/Sides.ts"

const runtimeSeconds = 4

interface Beside {
  readonly driver: Side["order"]
  /** Creates a backlog, which is delivered from then on. */
  readonly drain: Effect.Effect<void, unknown>
  /** Waits for the given number of deliveries, or the given time; returns how many arrived. */
  readonly arrived: (deliveries: number, secondsMax: number) => Promise<number>
  readonly used: () => { readonly service: number; readonly postgres: number; readonly receivers: number }
  /** Requests a second of the steady load. */
  readonly perSecond: number
  readonly rounds: number
  readonly backlog: number
}

const middle = (values: ReadonlyArray<number>) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!
const rounded = (value: number) => Number(value.toFixed(2))

/** Validations and consumptions over many licenses, without and with concurrent deliveries, in alternating turns. */
export const runtimeBeside = Effect.fnUntraced(function* (beside: Beside) {
  const { arrived, backlog, drain, driver, rounds, used } = beside
  const found: Array<object> = []
  let slowest = 0
  for (const operation of ["validate", "consume"] as const) {
    yield* Effect.promise(() => driver({ do: "prepare", operation, licenses: 500 }, "prepared"))
    for (const perSecond of [beside.perSecond, undefined]) {
      const load = () =>
        driver({ do: "load", operation, seconds: runtimeSeconds, ...(perSecond && { perSecond }) }, "loaded")
      yield* Effect.promise(load)
      const turns: Array<{ readonly alone: Turn; readonly beside: Turn }> = []
      for (let round = 0; round < rounds; round++) {
        const alone = yield* measureTurn(load, used)
        yield* drain
        const beside = yield* measureTurn(load, used)
        const deliveries = yield* Effect.promise(() => arrived(0, 1))
        yield* Effect.promise(() => arrived(backlog, 120))
        turns.push({ alone, beside: { ...beside, deliveries } })
      }
      for (const side of ["alone", "beside"] as const) {
        const own = turns.map((measureTurn) => measureTurn[side])
        found.push({
          operation: `${operation}${perSecond ? ` at ${perSecond}/s` : ""}`,
          backlog: side === "beside" ? "draining" : "none",
          per_second: middle(own.map((measureTurn) => measureTurn.requestsPerSecond)),
          p50_ms: rounded(middle(own.map((measureTurn) => measureTurn.p50))),
          p99_ms: rounded(middle(own.map((measureTurn) => measureTurn.p99))),
          deliveries_per_second: Math.round(middle(own.map((measureTurn) => measureTurn.deliveries)) / runtimeSeconds),
          cpu_service: rounded(middle(own.map((measureTurn) => measureTurn.service))),
          cpu_postgres: rounded(middle(own.map((measureTurn) => measureTurn.postgres))),
          cpu_receivers: rounded(middle(own.map((measureTurn) => measureTurn.receivers))),
          failed: own.reduce((sum, measureTurn) => sum + measureTurn.failed, 0)
        })
      }
      const rate = (side: "alone" | "beside") => middle(turns.map((measureTurn) => measureTurn[side].requestsPerSecond))
      slowest = Math.max(slowest, rounded(rate("alone") / rate("beside")))
    }
  }
  return { found, slowest }
})

type Turn = Effect.Success<ReturnType<typeof measureTurn>>

/** One turn of the load, and its cost. */
const measureTurn = Effect.fnUntraced(function* (
  load: () => Promise<{ readonly measured: Measured }>,
  used: Beside["used"]
) {
  const before = used()
  const { measured } = yield* Effect.promise(load)
  const after = used()
  const cpu = (name: keyof typeof before) => after[name] - before[name]
  return { ...measured, deliveries: 0, service: cpu("service"), postgres: cpu("postgres"), receivers: cpu("receivers") }
})
