/**
 * Who is signed in. Each sign-in and each sign-out begins another session, which shares nothing with the one before: cached
 * responses, requests in flight and offers to undo end with their session. Tokens are kept in memory; over a reload the access
 * token is kept in this tab's storage, and shared with the other tabs, if the reader asked for that, but never the token that renews it.
 */
import { Redacted } from "effect"
import { type Atom, AtomRegistry } from "effect/reactivity"
import { onTabs, tellTabs } from "./Tabs.ts"

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

export interface Holder {
  /** Renewed tokens replace them during the session. */
  tokens: Tokens
}

let sessions = 0

export class Session {
  /** Differs from that of every other session of this tab. */
  readonly number = ++sessions
  /** Holds the values of all atoms that the session's screens show. */
  readonly registry = AtomRegistry.make({ defaultIdleTTL: 30_000 })
  /** What has been asked for, by its request. */
  readonly requests = new Map<string, Atom.Atom<unknown>>()
  /** Absent while signed out. */
  readonly holder: Holder | undefined
  /** Why the session before ended, unless the reader signed out. */
  readonly reason: string | undefined
  private readonly controller = new AbortController()

  constructor(holder?: Holder, reason?: string) {
    this.holder = holder
    this.reason = reason
  }

  /** Is aborted when the session ends. */
  get signal(): AbortSignal {
    return this.controller.signal
  }

  end(): void {
    this.controller.abort()
  }
}

const storageKeys = { access: "licensing.token", id: "licensing.id-token" } as const

const keptIn = (place: string): Secret | undefined => {
  const kept = sessionStorage.getItem(place)
  return kept === null ? undefined : Redacted.make(kept)
}

const keptSession = (): Session => {
  const [access, id] = [keptIn(storageKeys.access), keptIn(storageKeys.id)]
  if (access === undefined) return new Session()
  return new Session({ tokens: id === undefined ? { access } : { access, id } })
}

const keep = ({ access, id }: Tokens): void => {
  sessionStorage.setItem(storageKeys.access, Redacted.value(access))
  if (id !== undefined) sessionStorage.setItem(storageKeys.id, Redacted.value(id))
}

const isKept = () => sessionStorage.getItem(storageKeys.access) !== null

const forTabs = ({ access, id }: Tokens) => ({
  access: Redacted.value(access),
  ...(id === undefined ? {} : { id: Redacted.value(id) })
})

let current = keptSession()
const listeners = new Set<() => void>()

export const currentSession = (): Session => current

/** Calls back whenever another session has begun. */
export const onSession = (notify: () => void) => {
  listeners.add(notify)
  return () => void listeners.delete(notify)
}

const begin = (next: Session): void => {
  const before = current
  current = next
  before.end()
  for (const notify of listeners) notify()
}

export const signIn = (tokens: Tokens, isKept: boolean): void => {
  if (isKept) {
    keep(tokens)
    share({ tokens })
  }
  begin(new Session({ tokens }))
}

const share = ({ tokens }: Holder): void => tellTabs({ kind: "here", ...forTabs(tokens) })

/** Replaces a session's tokens by renewed ones. */
export const renew = (holder: Holder, tokens: Tokens): void => {
  const before = Redacted.value(holder.tokens.access)
  holder.tokens = tokens
  // Meanwhile somebody else may have signed in.
  if (current.holder !== holder || !isKept()) return
  keep(tokens)
  tellTabs({ kind: "renewed", before, access: Redacted.value(tokens.access) })
}

const forget = (reason?: string): void => {
  for (const key of Object.values(storageKeys)) sessionStorage.removeItem(key)
  begin(new Session(undefined, reason))
}

/** Ends the session, also in the tabs that share its sign-in. */
export const signOut = (reason?: string): void => {
  const { holder } = current
  if (holder !== undefined && isKept())
    tellTabs({
      kind: "end",
      access: Redacted.value(holder.tokens.access),
      ...(reason === undefined ? {} : { reason })
    })
  forget(reason)
}

type Renewing = (holder: Holder, renewed: () => void) => void

let renewing: Renewing | undefined

/** What is done when the sign-in has expired in another tab, and this one has what renews it. */
export const renewBy = (renew: Renewing): void => {
  renewing = renew
}

onTabs((message) => {
  const { holder } = current
  if (message.kind === "here") {
    if (holder !== undefined) return
    const { access, id } = message
    const tokens = { access: Redacted.make(access), ...(id === undefined ? {} : { id: Redacted.make(id) }) }
    keep(tokens)
    return begin(new Session({ tokens }))
  }
  if (holder === undefined || !isKept()) return
  if (message.kind === "ask") return share(holder)
  const mine = Redacted.value(holder.tokens.access)
  if (message.kind === "end" && message.access === mine) {
    if (message.reason === undefined || holder.tokens.refresh === undefined) return forget(message.reason)
    return renewing?.(holder, () => current.holder === holder && share(holder))
  }
  if (message.kind !== "renewed" || message.before !== mine) return
  holder.tokens = { ...holder.tokens, access: Redacted.make(message.access) }
  keep(holder.tokens)
})

if (current.holder === undefined) tellTabs({ kind: "ask" })
