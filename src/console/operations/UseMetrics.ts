/** Reads the metrics every few seconds. If they need a token of their own, that is found out once. */
import { Effect, Exit, Option } from "effect"
import { useEffect, useState } from "react"
import { useBeat } from "../service/Beat.ts"
import { perform } from "../service/Hooks.ts"
import { now, send } from "../service/Service.ts"
import { type NodeState, type Rates, ratesOf, samplesOf, stateOf } from "./Metrics.ts"

interface Reading {
  readonly at: number
  readonly node: NodeState
  readonly rates: Rates | undefined
}

export interface Metrics {
  readonly reading: Reading | undefined
  /** They cannot be read with the token of the session. */
  readonly isClosed: boolean
}

export const useMetrics = (): Metrics => {
  const [reading, setReading] = useState<Reading>()
  const [isClosed, setClosed] = useState(false)
  const read = () => {
    // That they are refused must not end the session.
    void perform(Effect.option(send("getMetrics", {}))).then((exit) => {
      if (Exit.isFailure(exit) || Option.isNone(exit.value)) return setClosed(true)
      const node = stateOf(samplesOf(exit.value.value))
      const at = now()
      setReading((before) => ({
        at,
        node,
        rates: before === undefined ? undefined : (ratesOf(before.node, node, (at - before.at) / 1_000) ?? before.rates)
      }))
    })
  }
  useEffect(read, [])
  useBeat("5 seconds", !isClosed, read)
  return { reading, isClosed }
}
