/**
 * Who is signed in. Tokens are kept in memory; over a reload the access token is kept in this tab's storage, if the reader asked for
 * that, but never the token that renews it.
 */
import { Redacted } from "effect"
import { Atom, AtomRegistry } from "effect/reactivity"

/** Holds the values of all atoms of the page. */
export const registry = AtomRegistry.make({ defaultIdleTTL: 30_000 })

type Secret = Redacted.Redacted<string>

export interface Tokens {
  /** Sent with each request. */
  readonly access: Secret
  /** When it expires, in milliseconds. */
  readonly expiresAt?: number
  /** Renews it. */
  readonly refresh?: Secret
  /** Tells the provider who signs out; absent after a sign-in with an API token. */
  readonly id?: Secret
}

export interface Session {
  /** Another object for each sign-in, the same while tokens are renewed. Absent: nobody is signed in. */
  readonly holder?: { tokens: Tokens }
  /** Why the session ended, unless the reader signed out. */
  readonly ended?: string
}

const places = { access: "licensing.token", id: "licensing.id-token" } as const

const keptIn = (place: string): Secret | undefined => {
  const kept = sessionStorage.getItem(place)
  return kept === null ? undefined : Redacted.make(kept)
}

const keptSession = (): Session => {
  const [access, id] = [keptIn(places.access), keptIn(places.id)]
  if (access === undefined) return {}
  return { holder: { tokens: id === undefined ? { access } : { access, id } } }
}

const keep = ({ access, id }: Tokens): void => {
  sessionStorage.setItem(places.access, Redacted.value(access))
  if (id !== undefined) sessionStorage.setItem(places.id, Redacted.value(id))
}

export const session = Atom.keepAlive(Atom.make<Session>(keptSession()))

export const signIn = (tokens: Tokens, isKept: boolean): void => {
  if (isKept) keep(tokens)
  registry.set(session, { holder: { tokens } })
}

/** Puts newer tokens in the place of those with which a session began. */
export const renew = (holder: NonNullable<Session["holder"]>, tokens: Tokens): void => {
  holder.tokens = tokens
  // Meanwhile somebody else may have signed in.
  if (registry.get(session).holder !== holder) return
  if (sessionStorage.getItem(places.access) !== null) keep(tokens)
}

export const signOut = (ended?: string): void => {
  for (const place of Object.values(places)) sessionStorage.removeItem(place)
  registry.set(session, ended === undefined ? {} : { ended })
}
