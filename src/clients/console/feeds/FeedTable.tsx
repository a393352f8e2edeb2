/** The entries of a feed in rows, each of which opens to its facts. */
import { memo, type ReactNode } from "react"
import type { Entry } from "./Feed.ts"

export interface FeedColumn<A> {
  readonly title: string
  readonly show: (entry: A) => ReactNode
}

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
  // biome-ignore lint/a11y/useSemanticElements: a table is not a group of fields.
  // biome-ignore lint/a11y/noNoninteractiveTabindex: without it the keyboard cannot scroll.
  <div className="scrolling" role="group" aria-label={props.caption} tabIndex={0}>
    <table className="feed">
      <thead>
        <tr>
          <th scope="col">What</th>
          {props.columns.map(({ title }) => (
            <th key={title} scope="col">
              {title}
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
        {columns.map(({ show, title }) => (
          <td key={title}>{show(entry)}</td>
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
