/** Pages of a list within a screen, which the address does not name. */
import { useState } from "react"
import type { Keyset, Page } from "../../../contract/api/Paging.ts"

/** The query for the first page. */
export const firstPage = { limit: 20 } as const

export const usePages = () => {
  const [cursors, setCursors] = useState<ReadonlyArray<Keyset>>([])
  const cursor = cursors.at(-1)
  return {
    query: { ...firstPage, ...(cursor === undefined ? {} : { cursor }) },
    earlier: cursors.length > 0,
    back: () => setCursors((before) => before.slice(0, -1)),
    // The page before is shown until the next one is there.
    forward: (next: Keyset) => setCursors((before) => (before.at(-1) === next ? before : [...before, next]))
  }
}

interface StepProps {
  readonly children: string
  /** Undefined: it leads nowhere. */
  readonly onClick: (() => void) | undefined
}

/** Stays where it leads nowhere, because it may have the focus. */
const Step = ({ children, onClick }: StepProps) => (
  <button type="button" aria-disabled={onClick === undefined} onClick={onClick}>
    {children}
  </button>
)

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
      <Step onClick={props.earlier ? props.back : undefined}>Back</Step>
      <Step onClick={next && (() => props.forward(next))}>More</Step>
    </div>
  )
}

/** The pages of what happened, from the newest backwards. */
export const HistoryPagination = ({
  cursor,
  next,
  onChange
}: {
  readonly cursor: number | undefined
  readonly next: number | undefined
  readonly onChange: (cursor: number | undefined) => void
}) =>
  cursor === undefined && next === undefined ? null : (
    <div className="row end">
      <Step onClick={cursor === undefined ? undefined : () => onChange(undefined)}>Newest</Step>
      <Step onClick={next === undefined ? undefined : () => onChange(next)}>Earlier</Step>
    </div>
  )
