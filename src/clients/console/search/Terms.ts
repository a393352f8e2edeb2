/** What is typed to search for. Several terms together narrow: a customer, and the last four characters of a key. */

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

/** Where the results of a text are. What may be a license key stays out of the address, which others see and browsers keep. */
export const placeOf = (q: string) =>
  mayHaveKey(q) ? { to: "/search" as const, state: { q } as never } : { to: "/search" as const, search: { q } }
