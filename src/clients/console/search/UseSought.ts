/** Results as one types: the service is asked once the typing pauses, and what is asked for an earlier text is cancelled. */
import { Effect, Exit } from "effect"
import { useEffect, useState } from "react"
import type { SearchResults } from "../../../insight/search/SearchResults.ts"
import { cancellable, send } from "../service/Service.ts"
import { combinedOf } from "./Terms.ts"

const pause = "150 millis"
/** A shorter text is not sought. */
export const lengthMin = 2

const seek = Effect.fnUntraced(function* (text: string) {
  const combined = combinedOf(text)
  const { items } = combined
    ? yield* send("listLicenses", { query: { ...combined, limit: 20, expand: ["customer"] } })
    : { items: [] }
  // A short word of a name looks like the end of a key.
  if (items.length === 0) return yield* send("search", { query: { q: text } })
  const others = { customers: [], devices: [], orders: [], subscriptions: [], bulk_jobs: [] }
  return { licenses: items, ...others } satisfies SearchResults
})

export interface Sought {
  readonly text: string
  /** Undefined: they could not be read. */
  readonly results: SearchResults | undefined
}

/** Of the newest text for which there are results. */
export const useSought = (typed: string): Sought | undefined => {
  const text = typed.trim()
  const [sought, setSought] = useState<Sought>()
  useEffect(() => {
    if (text.length < lengthMin) return setSought(undefined)
    const asking = new AbortController()
    const asked = Effect.delay(seek(text), pause)
    cancellable(asked, asking.signal, (exit) =>
      setSought({ text, results: Exit.isSuccess(exit) ? exit.value : undefined })
    )
    return () => asking.abort()
  }, [text])
  return sought
}
