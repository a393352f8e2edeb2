/** What is typed to search for. Several terms together narrow: a customer, and the last four characters of a key. */
import { Atom } from "effect/reactivity"
import { freshKey } from "../service/Hooks.ts"
import { currentSession } from "../service/Session.ts"

export interface Combined {
  readonly q: string
  readonly license_key_last4: string
}

/** Also a short word of a name; then nothing is found, and the terms are sought as one. */
const last4 = /^[\dA-Za-z]{4}$/

/** Undefined for one term, or if none may be the end of a key. */
export const combinedOf = (text: string): Combined | undefined => {
  const terms = text.trim().split(/\s+/)
  const end = terms.findLastIndex((term) => last4.test(term))
  if (terms.length < 2 || end === -1) return undefined
  return { q: terms.filter((_, place) => place !== end).join(" "), license_key_last4: terms[end]!.toUpperCase() }
}

/** Keys of vendors have eight characters or more, nearly always with a digit: no such text gets into the address. */
const mayBeVendorKey = /^(?=.*\d)[^\s@]{8,}$|^[^\s@]{20,}$/
/** The service finds a generated key also if it is typed with spaces, and reads I and L as 1. */
const mayBeGeneratedKey = /^[LI1]K(?=.*\d)[\dA-Z]{12,}$/i

const mayHaveKey = (q: string): boolean =>
  q.split(/\s+/).some((term) => mayBeVendorKey.test(term)) || mayBeGeneratedKey.test(q.replaceAll(/[\s-]/g, ""))

/** By the keys that the history has in their place. */
const secrets = Atom.keepAlive(Atom.make<ReadonlyMap<string, string>>(new Map()))

/**
 * Where the results of a text are. What may be a license key is neither in the address nor in the history, which browsers keep on
 * disk: the session knows it.
 */
export const placeOf = (q: string) => {
  if (!mayHaveKey(q)) return { to: "/search" as const, search: { q } }
  const sought = freshKey()
  currentSession().registry.update(secrets, (before) => new Map([...before, [sought, q]]))
  return { to: "/search" as const, state: { sought } as never }
}

/** The text of an entry of the history; undefined if it is of another session. */
export const textOf = (state: object): string | undefined =>
  currentSession()
    .registry.get(secrets)
    .get((state as { readonly sought?: string }).sought ?? "")
