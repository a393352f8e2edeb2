/** What the reader keeps in this browser: columns and views of lists. */
import { Option, Schema } from "effect"
import { useMemo, useSyncExternalStore } from "react"

const listeners = new Set<() => void>()
const nameOf = (name: string) => `licensing.console.${name}`

const write = (name: string, values: ReadonlyArray<unknown>): void => {
  if (values.length === 0) localStorage.removeItem(nameOf(name))
  else localStorage.setItem(nameOf(name), JSON.stringify(values))
  for (const notify of listeners) notify()
}

/** Other tabs of the browser tell of theirs, too. */
const subscribe = (notify: () => void) => {
  listeners.add(notify)
  addEventListener("storage", notify)
  return () => {
    listeners.delete(notify)
    removeEventListener("storage", notify)
  }
}

const parse = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Array(Schema.Unknown)))

/** A list of values; what is stored and is none of them is left out. */
export const useKept = <A>(name: string, isValue: (value: unknown) => value is A) => {
  const text = useSyncExternalStore(subscribe, () => localStorage.getItem(nameOf(name)))
  const values = useMemo(
    () => Option.getOrElse(parse(text ?? "[]"), (): ReadonlyArray<unknown> => []).filter(isValue),
    [text, isValue]
  )
  return [values, (next: ReadonlyArray<A>) => write(name, next)] as const
}
