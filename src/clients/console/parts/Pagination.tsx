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
    forward: (next: Keyset) => setCursors((before) => [...before, next])
  }
}

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
      {props.earlier && (
        <button type="button" onClick={props.back}>
          Back
        </button>
      )}
      {next !== undefined && (
        <button type="button" onClick={() => props.forward(next)}>
          More
        </button>
      )}
    </div>
  )
}

/** The pages of what happened, from the newest backwards. */
export const HistoryPagination = (props: {
  readonly cursor: number | undefined
  readonly next: number | undefined
  readonly onChange: (cursor: number | undefined) => void
}) =>
  props.cursor === undefined && props.next === undefined ? null : (
    <div className="row end">
      {props.cursor !== undefined && (
        <button type="button" onClick={() => props.onChange(undefined)}>
          Newest
        </button>
      )}
      {props.next !== undefined && (
        <button type="button" onClick={() => props.onChange(props.next)}>
          Earlier
        </button>
      )}
    </div>
  )
