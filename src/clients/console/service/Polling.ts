/** Repeats something every few seconds, while that is wanted and the tab is visible. */
import { type Duration, Schedule, Stream } from "effect"
import { Atom } from "effect/reactivity"
import { useEffect, useRef, useSyncExternalStore } from "react"
import { currentSession } from "./Session.ts"

/** Counts: only a value that differs from the one before is noticed. */
const tick = Atom.family((interval: Duration.Input) =>
  Atom.make(Stream.fromSchedule(Schedule.spaced(interval))).pipe(Atom.setIdleTTL(0))
)

const subscribe = (notify: () => void) => {
  document.addEventListener("visibilitychange", notify)
  return () => document.removeEventListener("visibilitychange", notify)
}

export const useIsVisible = (): boolean => useSyncExternalStore(subscribe, () => document.visibilityState === "visible")

export const usePolling = (interval: Duration.Input, isWanted: boolean, run: () => void): void => {
  const isVisible = useIsVisible()
  const latest = useRef(run)
  latest.current = run
  useEffect(() => {
    if (!isWanted || !isVisible) return
    const { registry } = currentSession()
    const unsubscribe = registry.subscribe(tick(interval), () => latest.current())
    // A subscription alone does not start it.
    const unmount = registry.mount(tick(interval))
    return () => {
      unmount()
      unsubscribe()
    }
  }, [interval, isWanted, isVisible])
}
