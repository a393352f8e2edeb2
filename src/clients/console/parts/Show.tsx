/** How values, waiting and failures appear. */
import { useRouterState } from "@tanstack/react-router"
import { Cause, Option } from "effect"
import { AsyncResult } from "effect/reactivity"
import { memo, type ReactNode, type SyntheticEvent, useEffect } from "react"
import type { IconName } from "../look/Icon.tsx"
import { title } from "../service/Address.ts"
import { inWords, isFinal, type Told, tell } from "../service/Failures.ts"
import { causeOf, refresh } from "../service/Hooks.ts"
import { rememberRecord } from "../service/Recent.ts"
import { Empty } from "./Empty.tsx"
import { dayOf, instantOf, sentenceOf, zonedOf } from "./Format.ts"
import { Menu } from "./Menu.tsx"

export const Status = ({ of }: { readonly of: string }) => <span className={`status ${of}`}>{sentenceOf(of)}</span>

/** The heading of a screen, with what can be done there; it is the title of the page, too. */
export const Heading = (props: {
  readonly title: string
  /** Under the title: the state of a record, or what the screen is for. */
  readonly about?: ReactNode
  /** Actions of which at most one is primary. */
  readonly children?: ReactNode
  /** All other actions, those that cannot be undone at the end. */
  readonly more?: ReactNode
}) => {
  const path = useRouterState({ select: ({ location }) => location.pathname })
  useEffect(() => {
    document.title = `${props.title} · ${title}`
    rememberRecord({ path, title: props.title })
  }, [props.title, path])
  return (
    <div className="heading">
      <div>
        <h1>{props.title}</h1>
        {props.about !== undefined && <div className="about">{props.about}</div>}
      </div>
      <div className="row">
        {props.more !== undefined && <Menu label="More">{props.more}</Menu>}
        {props.children}
      </div>
    </div>
  )
}

/** An instant in the reader's zone, with its name and UTC on hover. */
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
    <time dateTime={new Date(at).toISOString()} title={zonedOf(at)}>
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

/** In place of what loads: rows without text, and a word for screen readers. */
export const Waiting = () => (
  <div className="waiting skeleton" role="status">
    <span className="hidden">Loading…</span>
  </div>
)

/** Why something could not be read, and a button that reads it again unless the service refused it for good. */
export const Unread = (props: {
  readonly cause: Cause.Cause<unknown>
  /** Reads it, if not the cache of the session does. */
  readonly again?: () => void
}) => (
  <div className="row unread">
    <Fault told={tell(props.cause)} />
    {!isFinal(Cause.squash(props.cause)) && (
      <button type="button" onClick={props.again ?? (() => void refresh())}>
        Try again
      </button>
    )}
  </div>
)

/**
 * What was asked for: empty rows while it loads, a sentence if it failed, its content once it is there. Content that cannot be read again
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

type NamedValues = ReadonlyArray<readonly [name: string, value: ReactNode]>

export const Facts = ({ of }: { readonly of: NamedValues }) => <Lines className="facts" of={of} />

/** What is told in lines, each with its name. */
export const Lines = ({ className, of }: { readonly className?: string; readonly of: NamedValues }) => (
  <dl className={className}>
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
  /** The column goes where the table has little, less or least room; such a table never scrolls sideways. */
  readonly goes?: "first" | "next" | "last"
  /** Text that is read in full: it wraps. */
  readonly wraps?: true
}

/** A column before the others, in which rows are chosen. */
export interface Choice<A> {
  readonly heading: ReactNode
  readonly has: (row: A) => boolean
  /** It stays the same function: a row is drawn again only if it changes. */
  readonly show: (row: A, isChosen: boolean) => ReactNode
}

const isCut = ({ clientWidth, scrollWidth }: Element) => scrollWidth > clientWidth

/** Shows a truncated text in full on hover: that of a cell, of a button in it, or of a line. */
export const tellCut = ({ target }: SyntheticEvent<HTMLElement>) => {
  const cell = target instanceof Element ? target.closest<HTMLElement>("td, th, .attention a") : null
  if (cell === null || cell.title !== "") return
  if (isCut(cell) || isCut(target as Element)) cell.title = cell.textContent ?? ""
}

/** A table; the first column names the row. */
export const Table = <A,>(props: {
  readonly caption: string
  readonly columns: ReadonlyArray<Column<A>>
  readonly rows: ReadonlyArray<A>
  readonly keyOf: (row: A) => string
  readonly empty: ReactNode
  readonly icon?: IconName
  readonly heading?: (column: Column<A>) => ReactNode
  readonly sorted?: (column: Column<A>) => "ascending" | "descending" | undefined
  readonly choice?: Choice<A> | undefined
  /** It is the list of a screen, by this name. */
  readonly list?: string
  /** Where its columns are chosen. */
  readonly picks?: ReactNode
}) => {
  if (props.rows.length === 0)
    return typeof props.empty === "string" ? <Empty icon={props.icon ?? "table"} title={props.empty} /> : props.empty
  const isFitted = props.columns.some(({ goes }) => goes !== undefined)
  return (
    // A wide table scrolls inside its own box, which the keyboard can reach.
    <div
      className={[
        "listing",
        isFitted ? "fitted" : "scrolling",
        props.picks && "picked",
        props.choice && "choosing",
        props.columns.some(({ quiet }) => quiet) && "acting",
        props.columns.some(({ wraps }) => wraps) && "telling"
      ]
        .filter(Boolean)
        .join(" ")}
      data-list={props.list}
      {...(isFitted ? {} : { role: "group", "aria-label": props.caption, tabIndex: 0 })}
    >
      <table aria-label={props.caption} onPointerOver={tellCut} onFocus={tellCut}>
        <thead>
          <tr>
            {props.choice !== undefined && <td className="chooses">{props.choice.heading}</td>}
            {props.columns.map((column) => (
              <th key={column.title} scope="col" {...styleOf(column)} aria-sort={props.sorted?.(column)}>
                {column.quiet ? (
                  <span className="hidden">{column.title}</span>
                ) : (
                  (props.heading?.(column) ?? column.title)
                )}
              </th>
            ))}
            {props.picks && <td className="picks">{props.picks}</td>}
          </tr>
        </thead>
        <tbody>
          {props.rows.map((row) => (
            <Row
              key={props.keyOf(row)}
              columns={props.columns}
              row={row}
              isChosen={props.choice?.has(row) === true}
              choose={props.choice?.show}
            />
          ))}
        </tbody>
      </table>
    </div>
  )
}

const styleOf = ({ goes, number, quiet, wraps }: Omit<Column<never>, "show">) => {
  const names = [number && "number", goes && `goes-${goes}`, quiet && "acts", wraps && "wraps"].filter(Boolean)
  return names.length === 0 ? {} : { className: names.join(" ") }
}

interface CellsProps<A> {
  readonly columns: ReadonlyArray<Column<A>>
  readonly row: A
}

interface RowProps<A> extends CellsProps<A> {
  readonly isChosen: boolean
  readonly choose: Choice<A>["show"] | undefined
}

const cellsOf = <A,>({ columns: [first, ...others], row }: CellsProps<A>) => (
  <>
    <th scope="row">{first?.show(row)}</th>
    {others.map((column) => (
      <td key={column.title} {...styleOf(column)} data-title={column.title}>
        {column.show(row)}
      </td>
    ))}
  </>
)

/** Choosing a row renders its box, and neither its cells nor other rows. */
const Cells = memo(cellsOf) as typeof cellsOf

const rowOf = <A,>({ choose, columns, isChosen, row }: RowProps<A>) => (
  <tr data-chosen={isChosen || undefined}>
    {choose !== undefined && <td className="chooses">{choose(row, isChosen)}</td>}
    <Cells columns={columns} row={row} />
  </tr>
)

const Row = memo(rowOf) as typeof rowOf
