/** Lists in pages. What a list is narrowed by, its sort and its page are in the address, so that they can be sent to a colleague. */
import { Link, useNavigate } from "@tanstack/react-router"
import { AsyncResult } from "effect/reactivity"
import { type FormEvent, type ReactNode, useEffect, useId, useRef } from "react"
import { keysetOf, nextCursorOf, type Page } from "../../../contract/api/Paging.ts"
import { focusContent } from "../look/Focus.ts"
import { Icon, type IconName } from "../look/Icon.tsx"
import { cappedOf, countOf, sentenceOf } from "../parts/Format.ts"
import { type Choice, type Column, Loaded, Table } from "../parts/Show.tsx"
import type { Asked } from "../service/Hooks.ts"
import { useColumns } from "./ColumnMenu.tsx"

export interface ListSearch {
  readonly cursor?: string | undefined
  readonly sort?: string
}

type Change = Readonly<Record<string, string | number | undefined>>

/** The query for the page that the address names, with its filters and sort. */
export const pageOf = <S extends ListSearch>({ cursor, ...filters }: S) => {
  const keyset = cursor === undefined ? undefined : keysetOf(cursor)
  return { ...filters, limit: 100, include_total: "true" as const, ...(keyset !== undefined && { cursor: keyset }) }
}

/** Whether a list is less than all of its records. */
export const isPart = (search: object): boolean =>
  Object.entries(search).some(([name, value]) => name !== "sort" && value !== undefined)

/** Another page, sort or filter in place of the address's; the type is that of every list, not of one route. */
export const changed = (change: Change) =>
  ((before: Change) =>
    Object.fromEntries(
      Object.entries({ ...before, ...change }).filter(([, value]) => value !== undefined && value !== "")
    )) as never

/** Narrows the list by a filter, from its first page on. */
export const useNarrow = () => {
  const navigate = useNavigate()
  return (change: Change) =>
    void navigate({ to: ".", search: changed({ cursor: undefined, ...change }), replace: true })
}

interface ListProps<A> {
  readonly caption: string
  readonly noun: string
  readonly empty: ReactNode
  readonly icon?: IconName
  readonly columns: ReadonlyArray<Column<A>>
  readonly page: Asked<never> | { readonly _tag: string }
  readonly search: ListSearch
  readonly choice?: Choice<A> | undefined
}

/** While the same rows are read in another order, those from before stay, so that the headings keep the focus. */
const useSorted = ({ page, search }: Pick<ListProps<never>, "page" | "search">) => {
  const asked = page as Asked<never>
  const { cursor: _, sort, ...filters } = search
  const key = JSON.stringify(filters)
  const last = useRef({ asked, key, sort })
  if (!AsyncResult.isInitial(asked)) last.current = { asked, key, sort }
  const isOlder = last.current.key === key && last.current.sort !== sort
  return AsyncResult.isInitial(asked) && isOlder
    ? { asked: AsyncResult.waiting(last.current.asked), sort: last.current.sort }
    : { asked, sort }
}

export const List = <A extends { readonly id: string }>(props: ListProps<A>) => {
  const { menu, shown } = useColumns(props.caption, props.columns)
  // The headings tell the order of the rows that are shown.
  const { asked, sort } = useSorted(props)
  return (
    <Loaded of={asked as never}>
      {(page: Page<A>) => (
        <>
          <Table
            caption={props.caption}
            columns={shown}
            list={props.caption}
            picks={menu}
            rows={page.items}
            keyOf={({ id }) => id}
            empty={props.empty}
            {...(props.icon && { icon: props.icon })}
            heading={(column) => <SortLink column={column} sort={sort} />}
            choice={props.choice}
            sorted={(column) => directionOf(column.sort, sort)}
          />
          <div className="row spread foot">
            <p
              className="quiet"
              role="status"
              title={page.total_is_capped ? `Lists are counted up to ${countOf(page.total ?? 0)}.` : undefined}
            >
              {totalOf(page, props.noun)}
            </p>
            <Pages page={page} search={props.search} />
          </div>
        </>
      )}
    </Loaded>
  )
}

const totalOf = (page: Page<unknown>, noun: string): string => {
  // What stands in the place of rows says that there are none.
  if (page.total === undefined || page.total === 0) return ""
  return `${cappedOf(page)} ${noun}${page.total === 1 ? "" : "s"}`
}

const newestFirst = "-created_at"

const directionOf = (field: string | undefined, sort = newestFirst) => {
  if (field === undefined) return undefined
  return sort === field ? "ascending" : sort === `-${field}` ? "descending" : undefined
}

const SortLink = <A,>({
  column,
  sort
}: {
  readonly column: Column<A>
  readonly sort: string | undefined
}): ReactNode => {
  const field = column.sort
  if (field === undefined) return column.title
  const direction = directionOf(field, sort)
  const next = direction === "descending" ? field : `-${field}`
  return (
    <Link to="." search={changed({ cursor: undefined, sort: next })} replace>
      {column.title}
      <span aria-hidden="true">{direction === "ascending" ? " ↑" : direction === "descending" ? " ↓" : ""}</span>
    </Link>
  )
}

const Pages = ({ page, search }: { readonly page: Page<unknown>; readonly search: ListSearch }) => (
  <nav aria-label="Pages" className="row end">
    {search.cursor !== undefined && <PageLink change={{ cursor: undefined }}>First page</PageLink>}
    {page.next !== undefined && <PageLink change={{ cursor: nextCursorOf(page) ?? undefined }}>Next page</PageLink>}
  </nav>
)

/** Leads to another page of the screen's list. It may go with the page before, so the focus goes to the top, as the view does. */
export const PageLink = ({ change, children }: { readonly change: Change; readonly children: string }) => (
  <Link to="." search={changed(change)} className="button" onClick={focusContent}>
    {children}
  </Link>
)

/** Leads the focus to the first control of a filter or of those after it, or else to the last one. */
export const focusFrom = (filter: Element | null | undefined) => {
  const line = filter?.closest(".filters") ?? filter
  const controls = [...(line?.querySelectorAll<HTMLElement>("select, input") ?? [])]
  const isAfter = (control: Element) => filter!.compareDocumentPosition(control) & Node.DOCUMENT_POSITION_FOLLOWING
  const next = controls.find(isAfter) ?? controls.at(-1)
  next?.focus()
}

interface RemoveProps {
  readonly label: string
  readonly onRemove: () => void
}

/** The button of a chip that is set. It goes with what it removes, so the focus moves on first. */
export const RemoveFilter = ({ label, onRemove }: RemoveProps) => (
  <button
    type="button"
    className="icon-only quiet"
    aria-label={`Remove the filter ${label}`}
    onClick={({ currentTarget }) => {
      focusFrom(currentTarget.parentElement)
      onRemove()
    }}
  >
    <Icon name="close" />
  </button>
)

/** An input whose text is the value again whenever that changes. It stays the same input, which keeps the focus. */
export const useInputOf = (value = "") => {
  const input = useRef<HTMLInputElement>(null)
  useEffect(() => {
    if (input.current !== null) input.current.value = value
  }, [value])
  return input
}

/** A filter of a list: one of a few values. */
export const Filter = (props: {
  readonly label: string
  readonly value: string | undefined
  readonly choices: ReadonlyArray<{ readonly id: string; readonly name: string }>
  /** The text if none is chosen. */
  readonly none?: string
  /** One of them is always chosen. */
  readonly needed?: true
  /** The choices are records, whose names are shown unchanged. */
  readonly records?: true
  readonly onChange: (value: string | undefined) => void
}) => {
  const id = useId()
  const none = props.none ?? "Any"
  const nameOf = ({ name }: { readonly name: string }) => (props.records ? name : sentenceOf(name))
  const chosen = props.choices.find((choice) => choice.id === props.value)
  return (
    // The select lies over the chip, unseen: keyboard, touch and screen readers use the browser's own.
    <div className={chosen === undefined ? "chip" : "chip set"}>
      {chosen === undefined && !props.needed && <Icon name="plus" />}
      <label htmlFor={id}>{props.label}</label>
      {chosen !== undefined && <strong aria-hidden="true">{nameOf(chosen)}</strong>}
      <select
        id={id}
        value={props.value ?? ""}
        onChange={({ currentTarget: { value } }) => props.onChange(value === "" ? undefined : value)}
      >
        {(!props.needed || props.value === undefined) && <option value="">{props.needed ? "Choose" : none}</option>}
        {props.choices.map((choice) => (
          <option key={choice.id} value={choice.id}>
            {nameOf(choice)}
          </option>
        ))}
      </select>
      {props.needed || chosen === undefined ? (
        props.needed && <Icon name="down" />
      ) : (
        <RemoveFilter label={props.label} onRemove={() => props.onChange(undefined)} />
      )}
    </div>
  )
}

/** A filter of a list by text: it holds once Enter is pressed. */
export const TextFilter = (props: {
  readonly label: string
  readonly value: string | undefined
  readonly onChange: (value: string | undefined) => void
}) => {
  const id = useId()
  const input = useInputOf(props.value)
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    const text = String(new FormData(event.currentTarget).get("text")).trim()
    props.onChange(text === "" ? undefined : text)
  }
  return (
    <form className={props.value === undefined ? "chip text" : "chip text set"} onSubmit={submit}>
      <Icon name="search" />
      <label htmlFor={id} className="hidden">
        {props.label}
      </label>
      <input
        ref={input}
        id={id}
        name="text"
        type="search"
        defaultValue={props.value}
        placeholder={props.label}
        autoComplete="off"
      />
      {props.value !== undefined && <RemoveFilter label={props.label} onRemove={() => props.onChange(undefined)} />}
    </form>
  )
}
