/** How values, waiting and failures appear. */
import { Cause, Option } from "effect"
import { AsyncResult } from "effect/reactivity"
import { type ReactNode, useEffect } from "react"
import { inWords, isFinal, type Told, tell } from "../service/Failures.ts"
import { causeOf, refresh } from "../service/Hooks.ts"
import { dayOf, instantOf, utcOf, wordsOf } from "./Format.ts"

export const Status = ({ of }: { readonly of: string }) => <span className={`status ${of}`}>{wordsOf(of)}</span>

/** The heading of a screen, with what can be done there; it is the title of the page, too. */
export const Heading = (props: { readonly title: string; readonly children?: ReactNode }) => {
  useEffect(() => {
    document.title = `${props.title} · Licensing`
  }, [props.title])
  return (
    <div className="row spread">
      <h1>{props.title}</h1>
      <div className="row">{props.children}</div>
    </div>
  )
}

/** An instant in the reader's zone, with UTC on hover. */
export const Time = ({
  at,
  none = "–",
  only
}: {
  readonly at: number | undefined
  readonly none?: string
  readonly only?: "day"
}) =>
  at === undefined ? (
    none
  ) : (
    <time dateTime={new Date(at).toISOString()} title={utcOf(at)}>
      {only === "day" ? dayOf(at) : instantOf(at)}
    </time>
  )

export const Key = ({
  of
}: {
  readonly of: { readonly license_key_prefix: string; readonly license_key_last4: string }
}) => (
  <code>
    {of.license_key_prefix}…{of.license_key_last4}
  </code>
)

export const Fault = ({ told: { code, message } }: { readonly told: Told }) => (
  <p role="alert" className="failed">
    {inWords(message)} {code !== undefined && <code>{code}</code>}
  </p>
)

export const Waiting = () => (
  <p className="waiting" role="status">
    Loading…
  </p>
)

/** Why something could not be read, and a button that reads it again unless the service refused it for good. */
export const Unread = ({ cause }: { readonly cause: Cause.Cause<unknown> }) => (
  <div className="row">
    <Fault told={tell(cause)} />
    {!isFinal(Cause.squash(cause)) && (
      <button type="button" onClick={() => void refresh()}>
        Try again
      </button>
    )}
  </div>
)

/**
 * What was asked for: a word while it loads, a sentence if it failed, its content once it is there. Content that cannot be read again
 * stays under the sentence: a key that is shown once, or a form, must not go because of a read.
 */
export const Loaded = <A, E>({
  children,
  of
}: {
  readonly of: AsyncResult.AsyncResult<A, E>
  readonly children: (value: A) => ReactNode
}) => {
  const cause = causeOf(of)
  const last = AsyncResult.value(of)
  if (Option.isNone(last)) return cause === undefined ? <Waiting /> : <Unread cause={cause} />
  return (
    <div className="loaded" aria-busy={of.waiting}>
      {cause !== undefined && <Unread cause={cause} />}
      {children(last.value)}
    </div>
  )
}

export const Facts = ({ of }: { readonly of: ReadonlyArray<readonly [name: string, value: ReactNode]> }) => (
  <dl className="facts">
    {of.map(([name, value]) => (
      <div key={name}>
        <dt>{name}</dt>
        <dd>{value}</dd>
      </div>
    ))}
  </dl>
)

/** A part of a screen, with its heading. */
export const Section = (props: {
  readonly id: string
  readonly title: string
  readonly actions?: ReactNode
  readonly children: ReactNode
}) => (
  <section aria-labelledby={props.id}>
    <div className="row spread">
      <h2 id={props.id}>{props.title}</h2>
      {props.actions !== undefined && <div className="row">{props.actions}</div>}
    </div>
    {props.children}
  </section>
)

export interface Column<A> {
  readonly title: string
  readonly show: (row: A) => ReactNode
  readonly number?: true
  /** The field by which the list can be sorted. */
  readonly sort?: string
  /** The title is for screen readers only. */
  readonly quiet?: true
}

/** A column before the others, in which rows are chosen. */
export interface Choice<A> {
  readonly heading: ReactNode
  readonly show: (row: A) => ReactNode
}

/** A table; the first column names the row. */
export const Table = <A,>(props: {
  readonly caption: string
  readonly columns: ReadonlyArray<Column<A>>
  readonly rows: ReadonlyArray<A>
  readonly keyOf: (row: A) => string
  readonly empty: string
  readonly heading?: (column: Column<A>) => ReactNode
  readonly sorted?: (column: Column<A>) => "ascending" | "descending" | undefined
  readonly choice?: Choice<A> | undefined
}) => {
  if (props.rows.length === 0) return <p className="empty">{props.empty}</p>
  const [first, ...others] = props.columns
  const style = (column: Column<A>) => (column.number ? { className: "number" } : {})
  return (
    // A wide table scrolls inside its own box, which the keyboard can reach.
    // biome-ignore lint/a11y/useSemanticElements: a table is not a group of fields.
    // biome-ignore lint/a11y/noNoninteractiveTabindex: without it the keyboard cannot scroll.
    <div className="scrolling" role="group" aria-label={props.caption} tabIndex={0}>
      <table>
        <thead>
          <tr>
            {props.choice !== undefined && <td>{props.choice.heading}</td>}
            {props.columns.map((column) => (
              <th key={column.title} scope="col" {...style(column)} aria-sort={props.sorted?.(column)}>
                {column.quiet ? (
                  <span className="hidden">{column.title}</span>
                ) : (
                  (props.heading?.(column) ?? column.title)
                )}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {props.rows.map((row) => (
            <tr key={props.keyOf(row)}>
              {props.choice !== undefined && <td>{props.choice.show(row)}</td>}
              <th scope="row">{first?.show(row)}</th>
              {others.map((column) => (
                <td key={column.title} {...style(column)}>
                  {column.show(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}
