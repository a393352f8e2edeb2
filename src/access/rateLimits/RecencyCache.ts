/**
 * A bounded map that evicts entries that were not used recently. It has two generations: when the young generation is full, it
 * replaces the old one, whose entries are evicted. Deleting the oldest entry of one Map for each new entry would take 30 µs,
 * because finding the first entry of a Map skips the slots of all deleted entries.
 */

export interface RecencyCache<A> {
  get(key: string): A | undefined
  set(key: string, value: A): void
  delete(key: string): void
  /** Replaces the old generation with the young one before the young one is full. */
  advance(): void
  size(): number
}

export const makeRecencyCache = <A>(entriesMax: number): RecencyCache<A> => {
  let young = new Map<string, A>()
  let old = new Map<string, A>()

  const advance = () => {
    old = young
    young = new Map()
  }
  const set = (key: string, value: A) => {
    if (young.size >= entriesMax / 2) advance()
    young.set(key, value)
  }
  const promote = (key: string) => {
    const value = old.get(key)
    if (value === undefined) return undefined
    old.delete(key)
    set(key, value)
    return value
  }
  return {
    get: (key) => young.get(key) ?? promote(key),
    set,
    delete: (key) => {
      young.delete(key)
      old.delete(key)
    },
    advance,
    size: () => young.size + old.size
  }
}
