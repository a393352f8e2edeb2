/** Choices among listed records. They say if the list cannot be read or has more records; a field also if it is empty. */
import type { AsyncResult } from "effect/reactivity"
import type { ReactNode } from "react"
import { type Choice, choice, type Field } from "../parts/Fields.tsx"
import { Unread, Waiting } from "../parts/Show.tsx"
import { causeOf, lastOf, useAsk } from "../service/Hooks.ts"
import { rememberProduct } from "../service/Recent.ts"
import { Filter, useNarrow } from "./List.tsx"

interface Records {
  readonly items: ReadonlyArray<Choice>
  readonly next?: unknown
}

type ListResult = AsyncResult.AsyncResult<Records, unknown>

interface Options {
  readonly required?: true
  /** What is said if there is nothing to choose. */
  readonly empty: ReactNode
  /** A record that is not offered. */
  readonly without?: string
}

const Note = (props: { readonly of: ListResult; readonly empty: ReactNode; readonly count: number }) => {
  const { count, empty, of } = props
  const [cause, last] = [causeOf(of), lastOf(of)]
  if (last === undefined) return cause === undefined ? <Waiting /> : <Unread cause={cause} />
  if (count === 0) return empty === "" ? null : <p className="empty">{empty}</p>
  return last.next === undefined ? null : <small>Only the first {count} are offered here.</small>
}

/** One of the records of a list. */
export const listField = (label: string, of: ListResult, { empty, required, without }: Options): Field<string> => {
  const choices = (lastOf(of)?.items ?? []).filter(({ id }) => id !== without)
  const note = <Note of={of} empty={empty} count={choices.length} />
  const field = choice(label, choices, required === undefined ? {} : { required })
  return { ...field, control: { kind: "choice", choices, note } }
}

/** A field for some of the records of a list. */
export const withListNote = <A,>(field: Field<A>, of: ListResult): Field<A> => {
  if (field.control.kind !== "checks") return field
  const { control } = field
  return { ...field, control: { ...control, note: <Note of={of} empty="" count={control.choices.length} /> } }
}

/** A field that is not sent before the records are there to be chosen. */
export const requireRead = <A,>(field: Field<A>, of: ListResult): Field<A> => ({
  ...field,
  check: () => (lastOf(of) === undefined ? "These could not be read yet: try again first." : undefined)
})

/** Narrows a screen to a product. */
export const ProductFilter = (props: {
  readonly value: string | undefined
  /** One is always chosen. */
  readonly needed?: true
  /** Filters that hold for one product only. */
  readonly cleared?: Readonly<Record<string, undefined>>
}) => {
  const { cleared, needed, value } = props
  const narrow = useNarrow()
  const products = useAsk("listProducts", { query: { limit: 200, sort: "code" } })
  const [cause, last] = [causeOf(products), lastOf(products)]
  const choices = last?.items ?? []
  // The address may name one that is not among them.
  const isOffered = value === undefined || choices.some(({ id }) => id === value)
  return (
    <div className="row">
      <Filter
        label="Product"
        value={value}
        choices={isOffered || last === undefined ? choices : [...choices, { id: value, name: value }]}
        {...(needed && { needed })}
        records
        onChange={(product_id) => {
          if (needed) rememberProduct(product_id)
          narrow({ product_id, ...cleared })
        }}
      />
      {last === undefined && cause !== undefined && <small className="failed">The products could not be read.</small>}
      {last?.next !== undefined && <small>Only the first {choices.length} are offered here.</small>}
    </div>
  )
}
