/** A record that the service works on: it is read each second, one read at a time, until the work has ended or the service refuses. */
import { Cause, Exit } from "effect"
import { useRef, useState } from "react"
import { isFinal } from "./Failures.ts"
import { usePolling } from "./Polling.ts"

interface Options<A> {
  readonly first: A
  readonly isOpen: (latest: A) => boolean
  readonly reread: () => Promise<Exit.Exit<A, unknown>>
}

export const useFollowing = <A>({ first, isOpen, reread }: Options<A>) => {
  const [latest, setLatest] = useState(first)
  const [failed, setFailed] = useState<Cause.Cause<unknown>>()
  const isRefused = failed !== undefined && isFinal(Cause.squash(failed))
  const isReading = useRef(false)
  usePolling("1 second", isOpen(latest) && !isRefused, () => {
    if (isReading.current) return
    isReading.current = true
    void reread().then((exit) => {
      isReading.current = false
      setFailed(Exit.isFailure(exit) ? exit.cause : undefined)
      if (Exit.isSuccess(exit)) setLatest(exit.value)
    })
  })
  return { latest, setLatest, failed, isRefused }
}
