/** Who is signed in. The token is kept in memory, and over a reload in this tab's storage if the reader asked for that. */
import { Redacted } from "effect"
import { Atom, AtomRegistry } from "effect/reactivity"

/** Holds the values of all atoms of the page. */
export const registry = AtomRegistry.make({ defaultIdleTTL: 30_000 })

interface Session {
  /** Absent: nobody is signed in. */
  readonly token?: Redacted.Redacted<string>
  /** Why the session ended, unless the reader signed out. */
  readonly ended?: string
}

const place = "licensing.token"
const kept = sessionStorage.getItem(place)

export const session = Atom.keepAlive(Atom.make<Session>(kept === null ? {} : { token: Redacted.make(kept) }))

export const signIn = (token: Redacted.Redacted<string>, keep: boolean): void => {
  if (keep) sessionStorage.setItem(place, Redacted.value(token))
  registry.set(session, { token })
}

export const signOut = (ended?: string): void => {
  sessionStorage.removeItem(place)
  registry.set(session, ended === undefined ? {} : { ended })
}
