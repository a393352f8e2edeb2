/** Repeats something every few seconds, while that is wanted and the tab is visible. */
import { type Duration, Stream } from "effect"
import { Atom } from "effect/reactivity"
import { useEffect, useRef, useSyncExternalStore } from "react"
import { registry } from "./Session.ts"

const beat = Atom.family((interval: Duration.Input) => Atom.make(Stream.tick(interval)).pipe(Atom.setIdleTTL(0)))

const subscribe = (notify: () => void) => {
  document.addEventListener("visibilitychange", notify)
  return () => document.removeEventListener("visibilitychange", notify)
}

export const useIsVisible = (): boolean => useSyncExternalStore(subscribe, () => document.visibilityState === "visible")

export const useBeat = (interval: Duration.Input, isWanted: boolean, run: () => void): void => {
  const isVisible = useIsVisible()
  const latest = useRef(run)
  latest.current = run
  useEffect(
    () => (isWanted && isVisible ? registry.subscribe(beat(interval), () => latest.current()) : undefined),
    [interval, isWanted, isVisible]
  )
}
