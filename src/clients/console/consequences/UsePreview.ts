/** What the service says a change would do: asked once the typing pauses, and again after each change of the form. */
import { Effect, type Exit } from "effect"
import { useEffect, useState } from "react"
import { cancellable, type Failed, type Payload, send } from "../service/Service.ts"
import type { Preview } from "./Differences.ts"

export type Change = Payload<"previewLicenseChange">

const pause = "150 millis"

interface Previewed {
  readonly exit: Exit.Exit<Preview, Failed<"previewLicenseChange">>
  /** Whether it is of the change that the form has now. */
  readonly isCurrent: boolean
  readonly again: () => void
}

/** The newest result, also while another one is asked for. */
export const usePreview = (id: string, payload: Change): Previewed | undefined => {
  const key = JSON.stringify(payload)
  const [shown, setShown] = useState<{ readonly key: string; readonly exit: Previewed["exit"] }>()
  const [tries, setTries] = useState(0)
  // biome-ignore lint/correctness/useExhaustiveDependencies: the key contains the whole change.
  useEffect(() => {
    const asking = new AbortController()
    const asked = Effect.delay(send("previewLicenseChange", { params: { id }, payload }), pause)
    cancellable(asked, asking.signal, (exit) => setShown({ key, exit }))
    return () => asking.abort()
  }, [id, key, tries])
  return shown && { exit: shown.exit, isCurrent: shown.key === key, again: () => setTries(tries + 1) }
}
