/**
 * Maps that mostly stay empty. A draft has ten of them and lives for some milliseconds, and what is held of each license has
 * four more, so they are made only when something is put into them.
 */

const none: ReadonlyMap<string, never> = new Map<string, never>()

/** No entries yet. */
export const noEntries = <V>(): ReadonlyMap<string, V> => none

/** The map with the entry: the same one, or a new one where there was none. */
export const put = <V>(map: ReadonlyMap<string, V>, key: string, value: V): ReadonlyMap<string, V> => {
  if (map === none) return new Map([[key, value]])
  ;(map as Map<string, V>).set(key, value)
  return map
}

/** The map without the entry. */
export const drop = <V>(map: ReadonlyMap<string, V>, key: string): ReadonlyMap<string, V> => {
  if (map.has(key)) (map as Map<string, V>).delete(key)
  return map
}
