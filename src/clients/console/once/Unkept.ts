/** What is shown once and has no copy yet: before it leaves the screen, the reader is asked. */
import { Atom } from "effect/reactivity"
import { useLayoutEffect } from "react"
import { useAtom } from "../service/Hooks.ts"
import { currentSession } from "../service/Session.ts"

interface Shown {
  /** As "the key". */
  readonly what: string
}

const shown = Atom.keepAlive(Atom.make<ReadonlyArray<Shown>>([]))

/** What the reader was about to do. */
interface Leaving {
  readonly act: () => void
}

export const leaving = Atom.keepAlive(Atom.make<Leaving | undefined>(undefined))

/** Tells that something on the screen has no copy. */
export const useUnkept = (what: string, isUnkept: boolean): void =>
  useLayoutEffect(() => {
    if (!isUnkept) return
    const { registry } = currentSession()
    const own: Shown = { what }
    registry.update(shown, (all) => [...all, own])
    return () => registry.update(shown, (all) => all.filter((each) => each !== own))
  }, [what, isUnkept])

/** What would be lost; undefined if that is nothing. */
export const useWhatIsUnkept = (): string | undefined => useAtom(shown)[0]?.what

/** Does something that takes the screen or a dialog away, at once or when the reader has agreed. */
export const unlessUnkept = (act: () => void): void => {
  const { registry } = currentSession()
  if (registry.get(shown).length === 0) act()
  else registry.set(leaving, { act })
}

export const stopLeaving = (): void => currentSession().registry.set(leaving, undefined)
