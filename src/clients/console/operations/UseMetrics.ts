/** Reads the metrics every few seconds. If they need a token of their own, that is found out once. */
import { Effect, Exit, Result } from "effect"
import { useEffect, useState } from "react"
import { statuses } from "../../../contract/api/ErrorCode.ts"
import { isRefusal } from "../../../contract/api/Failure.ts"
import { perform } from "../service/Hooks.ts"
import { usePolling } from "../service/Polling.ts"
import { now, send } from "../service/Service.ts"
import { type NodeState, type Rates, ratesOf, samplesOf, stateOf } from "./Metrics.ts"

interface Latest {
  readonly at: number
  readonly node: NodeState
  readonly rates: Rates | undefined
}

export interface Metrics {
  readonly latest: Latest | undefined
  /** They cannot be read with the token of the session. */
  readonly isClosed: boolean
  /** They could not be read for another reason; they are read again. */
  readonly isFailed: boolean
}

const isClosing = (error: unknown) => isRefusal(error) && [401, 403].includes(statuses[error.code])

export const useMetrics = (): Metrics => {
  const [latest, setLatest] = useState<Latest>()
  const [isClosed, setClosed] = useState(false)
  const [isFailed, setFailed] = useState(false)
  const read = () => {
    // That they are refused must not end the session.
    void perform(Effect.result(send("getMetrics", {}))).then((exit) => {
      const text = Exit.isSuccess(exit) && Result.isSuccess(exit.value) ? exit.value.success : undefined
      setFailed(text === undefined)
      if (Exit.isSuccess(exit) && Result.isFailure(exit.value) && isClosing(exit.value.failure)) setClosed(true)
      if (text === undefined) return
      const node = stateOf(samplesOf(text))
      const at = now()
      setLatest((before) => ({
        at,
        node,
        rates: before === undefined ? undefined : (ratesOf(before.node, node, (at - before.at) / 1_000) ?? before.rates)
      }))
    })
  }
  useEffect(read, [])
  usePolling("5 seconds", !isClosed, read)
  return { latest, isClosed, isFailed: isFailed && !isClosed }
}
