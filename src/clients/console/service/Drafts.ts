/**
 * The input of open forms when a session ended by itself. The same person finds it again after the next sign-in.
 * It is only in memory, because a form may have secrets, and no other person gets it.
 */
import { useEffect, useRef, useState } from "react"
import { personIn } from "./Hooks.ts"
import { currentSession, onSession, type Session } from "./Session.ts"

/** By the path of the screen, and the name of what was open there. */
const drafts = new Map<string, unknown>()
/** Forms that were opened again after a sign-in. */
const reopened = new Set<string>()
let owner: string | undefined

export const forgetDrafts = (): void => {
  drafts.clear()
  reopened.clear()
}

export const hasDrafts = (): boolean => drafts.size > 0

const isSignedOut = () => {
  const { holder, reason } = currentSession()
  return holder === undefined && reason === undefined
}

onSession(() => isSignedOut() && forgetDrafts())

const keyOf = (name: string) => `${location.pathname} ${name}`

const draftIn = (session: Session, key: string): unknown => {
  if (drafts.size === 0 || session.holder === undefined) return undefined
  if (personIn(session) !== owner) forgetDrafts()
  return drafts.get(key)
}

const keep = (session: Session, key: string, draft: unknown): void => {
  const person = personIn(session)
  if (person === undefined) return
  if (person !== owner) forgetDrafts()
  owner = person
  drafts.set(key, draft)
}

/** What was kept under a name. When the session ends by itself, the result of `read` is kept. Without a name nothing is. */
export const useDraft = <A>(name: string | undefined, read: () => A | undefined): A | undefined => {
  const [session] = useState(currentSession)
  const [key] = useState(() => (name === undefined ? undefined : keyOf(name)))
  const [draft] = useState(() => (key === undefined ? undefined : (draftIn(session, key) as A | undefined)))
  const latest = useRef(read)
  latest.current = read
  useEffect(() => {
    if (key === undefined) return
    drafts.delete(key)
    reopened.delete(key)
    const { signal } = session
    const end = () => {
      const value = latest.current()
      // After a sign-out the input is no longer needed.
      if (value !== undefined && !isSignedOut()) keep(session, key, value)
    }
    signal.addEventListener("abort", end)
    return () => signal.removeEventListener("abort", end)
  }, [session, key])
  return draft
}

/** A state that the next session of the same person takes over. */
export const useKeptState = <A>(name: string) => {
  const latest = useRef<A>(undefined)
  const draft = useDraft<A>(name, () => latest.current)
  const [value, setValue] = useState<A | undefined>(draft)
  latest.current = value
  return [value, setValue] as const
}

/** Opens again what was open under one of these names, once: several buttons may lead to it. */
export const useReopening = (names: ReadonlyArray<string>, open: () => void): void => {
  // biome-ignore lint/correctness/useExhaustiveDependencies: only what was kept before the button is shown opens it.
  useEffect(() => {
    const session = currentSession()
    const key = names.map(keyOf).find((each) => draftIn(session, each) !== undefined && !reopened.has(each))
    if (key === undefined) return
    reopened.add(key)
    open()
  }, [])
}
