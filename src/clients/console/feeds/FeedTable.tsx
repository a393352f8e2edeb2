/** The entries of a feed in rows, each of which opens to its facts. */
import { memo, type ReactNode } from "react"
import { tellCut } from "../parts/Show.tsx"
import type { Entry } from "./Feed.ts"

export interface FeedColumn<A> {
  readonly title: string
  readonly show: (entry: A) => ReactNode
  /** Goes where the table has little room, as in other tables. */
  readonly goes?: "first" | "next" | "last"
}

const styleOf = ({ goes }: { readonly goes?: string }) => (goes === undefined ? {} : { className: `goes-${goes}` })

interface Props<A extends Entry> {
  readonly caption: string
  readonly entries: ReadonlyArray<A>
  /** What happened; it names the row. */
  readonly what: (entry: A) => string
  readonly columns: ReadonlyArray<FeedColumn<A>>
  readonly facts: (entry: A) => ReactNode
  readonly open: number | undefined
  /** Opens an entry, or closes it. It stays the same function. */
  readonly onToggle: (sequence: number) => void
}

export const FeedTable = <A extends Entry>(props: Props<A>) => (
  <div className="listing fitted">
    <table className="feed" aria-label={props.caption} onPointerOver={tellCut} onFocus={tellCut}>
      <thead>
        <tr>
          <th scope="col">What</th>
          {props.columns.map((column) => (
            <th key={column.title} scope="col" {...styleOf(column)}>
              {column.title}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {props.entries.map((entry) => (
          <Row
            key={entry.sequence}
            entry={entry}
            what={props.what as (entry: Entry) => string}
            columns={props.columns as ReadonlyArray<FeedColumn<Entry>>}
            facts={props.facts as (entry: Entry) => ReactNode}
            isOpen={props.open === entry.sequence}
            onToggle={props.onToggle}
          />
        ))}
      </tbody>
    </table>
  </div>
)

interface RowProps {
  readonly entry: Entry
  readonly what: (entry: Entry) => string
  readonly columns: ReadonlyArray<FeedColumn<Entry>>
  readonly facts: (entry: Entry) => ReactNode
  readonly isOpen: boolean
  readonly onToggle: (sequence: number) => void
}

/** Hundreds of rows stay as they are while one opens or a new one comes. */
const Row = memo(({ columns, entry, facts, isOpen, onToggle, what }: RowProps) => {
  const id = `entry-${entry.sequence}`
  return (
    <>
      <tr className={isOpen ? "open" : undefined}>
        <th scope="row">
          <button
            type="button"
            className="opener"
            aria-expanded={isOpen}
            {...(isOpen ? { "aria-controls": id } : {})}
            onClick={() => onToggle(entry.sequence)}
          >
            {what(entry)}
          </button>
        </th>
        {columns.map((column) => (
          <td key={column.title} {...styleOf(column)}>
            {column.show(entry)}
          </td>
        ))}
      </tr>
      {isOpen && (
        <tr className="opened">
          <td id={id} colSpan={columns.length + 1}>
            {facts(entry)}
          </td>
        </tr>
      )}
    </>
  )
})
