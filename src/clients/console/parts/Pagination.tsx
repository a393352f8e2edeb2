/** Pages of a list within a screen, which the address does not name. */
import { useState } from "react"
import type { Keyset, Page } from "../../../contract/api/Paging.ts"

export const usePages = () => {
  const [cursors, setCursors] = useState<ReadonlyArray<Keyset>>([])
  const cursor = cursors.at(-1)
  return {
    query: { limit: 20, ...(cursor === undefined ? {} : { cursor }) },
    earlier: cursors.length > 0,
    back: () => setCursors((before) => before.slice(0, -1)),
    // The page before is shown until the next one is there.
    forward: (next: Keyset) => setCursors((before) => (before.at(-1) === next ? before : [...before, next]))
  }
}

/** Both buttons stay, because one of them may have the focus. */
export const Pagination = (props: {
  readonly page: Page<unknown>
  readonly earlier: boolean
  readonly back: () => void
  readonly forward: (next: Keyset) => void
}) => {
  const { next } = props.page
  if (next === undefined && !props.earlier) return null
  return (
    <div className="row end">
      <button type="button" aria-disabled={!props.earlier} onClick={() => props.earlier && props.back()}>
        Back
      </button>
      <button
        type="button"
        aria-disabled={next === undefined}
        onClick={() => next !== undefined && props.forward(next)}
      >
        More
      </button>
    </div>
  )
}

/** The pages of what happened, from the newest backwards. Both buttons stay here, too. */
export const HistoryPagination = (props: {
  readonly cursor: number | undefined
  readonly next: number | undefined
  readonly onChange: (cursor: number | undefined) => void
}) =>
  props.cursor === undefined && props.next === undefined ? null : (
    <div className="row end">
      <button
        type="button"
        aria-disabled={props.cursor === undefined}
        onClick={() => props.cursor !== undefined && props.onChange(undefined)}
      >
        Newest
      </button>
      <button
        type="button"
        aria-disabled={props.next === undefined}
        onClick={() => props.next !== undefined && props.onChange(props.next)}
      >
        Earlier
      </button>
    </div>
  )
