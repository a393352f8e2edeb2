/** Fields of forms: each knows its control, how its value is read from it, and how a value is shown in it. */
import { type ReactNode, useId } from "react"
import {
  afterInputDay,
  endOfInputDay,
  inputDayOf,
  inputInstantOf,
  readerZone,
  sentenceOf,
  startOfInputDay
} from "./Format.ts"

export interface Choice<A extends string = string> {
  readonly id: A
  readonly name: string
}

/** What a control is made from: the id that its label names, and the attributes of the input whose text is read. */
export interface ControlProps {
  readonly id: string
  readonly texts: ReadonlyArray<string>
  readonly state: { readonly name: string }
}

type Control =
  | { readonly kind: "input"; readonly type: string; readonly min?: number }
  | { readonly kind: "own"; readonly show: (props: ControlProps) => ReactNode; readonly isGroup?: true }
  | { readonly kind: "flag" }
  | { readonly kind: "lines" }
  | { readonly kind: "choice" | "checks"; readonly choices: ReadonlyArray<Choice>; readonly note?: ReactNode }

interface Options {
  readonly required?: true
  readonly hint?: string
  /** What is wrong with the texts, before they are sent. */
  readonly check?: (texts: ReadonlyArray<string>) => string | undefined
}

export interface Field<A> extends Options {
  readonly label: string
  readonly control: Control
  /** The value, or undefined if none is given. */
  readonly read: (texts: ReadonlyArray<string>) => A | undefined
  readonly write: (value: A) => ReadonlyArray<string>
}

type RequiredKey<P, K extends keyof P> = Record<never, never> extends Pick<P, K> ? never : K

/** A field for each member that a request needs, and for any of the others. A renamed member no longer compiles. */
export type FieldsOf<P> = {
  readonly [K in keyof P as RequiredKey<P, K>]: Field<NonNullable<P[K]>>
} & { readonly [K in keyof P]?: Field<NonNullable<P[K]>> }

/** Fields of a change, which needs none. */
export type ChangeFieldsOf<P> = { readonly [K in keyof P]?: Field<NonNullable<P[K]>> }

const first = ([text = ""]: ReadonlyArray<string>) => (text.trim() === "" ? undefined : text.trim())

const input = (label: string, type: string, options?: Options): Field<string> => ({
  label,
  control: { kind: "input", type },
  read: first,
  write: (value) => [value],
  ...options
})

export const text = (label: string, options?: Options) => input(label, "text", options)
export const email = (label: string, options?: Options) => input(label, "email", options)
export const url = (label: string, options?: Options) => input(label, "url", options)

export const number = (label: string, options?: Options): Field<number> => ({
  label,
  control: { kind: "input", type: "number", min: 0 },
  read: (texts) => {
    const given = first(texts)
    return given === undefined ? undefined : Number(given)
  },
  write: (value) => [String(value)],
  ...options
})

/** A whole number of either sign. */
export const integer = (label: string, options?: Options): Field<number> => ({
  ...number(label),
  control: { kind: "input", type: "number" },
  check: (texts) =>
    Number.isSafeInteger(Number(first(texts) ?? 0)) ? undefined : "This is no whole number, or too large a one.",
  ...options
})

/** Whole numbers with commas between them; an empty text is an empty list. */
export const numbers = (label: string, options?: Options): Field<ReadonlyArray<number>> => ({
  label,
  control: { kind: "input", type: "text" },
  read: numbersIn,
  write: (values) => [values.join(", ")],
  check: (texts) =>
    numbersIn(texts).every(Number.isSafeInteger) ? undefined : "Give whole numbers with commas between them.",
  ...options
})

const numbersIn = ([text = ""]: ReadonlyArray<string>) => (text.match(/[^\s,;]+/g) ?? []).map(Number)

/** A day or an instant is one of the reader's zone, and says so. */
const inZone = ({ hint, ...options }: Options = {}): Options => ({
  hint: [...(hint === undefined ? [] : [hint]), `Time zone: ${readerZone}.`].join(" "),
  ...options
})

/** An instant in the reader's zone. */
export const instant = (label: string, options?: Options): Field<number> => ({
  label,
  control: { kind: "input", type: "datetime-local" },
  read: (texts) => {
    const given = first(texts)
    return given === undefined ? undefined : Date.parse(given)
  },
  write: (value) => [inputInstantOf(value)],
  ...inZone(options)
})

/** Yes, no, or neither. */
export const answer = (label: string, options?: Options): Field<boolean> => ({
  label,
  control: {
    kind: "choice",
    choices: [
      { id: "yes", name: "Yes" },
      { id: "no", name: "No" }
    ]
  },
  read: (texts) => {
    const given = first(texts)
    return given === undefined ? undefined : given === "yes"
  },
  write: (value) => [value ? "yes" : "no"],
  ...options
})

const dayAt =
  (instantIn: (day: string) => number, dayOf: (instant: number) => string) =>
  (label: string, options?: Options): Field<number> => ({
    label,
    control: { kind: "input", type: "date" },
    read: (texts) => {
      const given = first(texts)
      return given === undefined ? undefined : instantIn(given)
    },
    write: (value) => [dayOf(value)],
    ...inZone(options)
  })

/** A day with which something begins; the instant is its start. */
export const firstDay = dayAt(startOfInputDay, inputDayOf)

/** A day with which something ends; the instant is its last second. */
export const lastDay = dayAt(endOfInputDay, inputDayOf)

/** The last day of a period; the instant is the first that the period does not have. */
export const lastDayOfPeriod = dayAt(afterInputDay, (instant) => inputDayOf(instant - 1))

export const flag = (label: string, options?: Options): Field<boolean> => ({
  label,
  control: { kind: "flag" },
  read: (texts) => texts.length > 0,
  write: (value) => (value ? ["on"] : []),
  ...options
})

/** A text in each line. */
export const lines = (label: string, options?: Options): Field<ReadonlyArray<string>> => ({
  label,
  control: { kind: "lines" },
  read: ([text = ""]) =>
    text
      .split("\n")
      .map((line) => line.trim())
      .filter((line) => line !== ""),
  write: (value) => [value.join("\n")],
  ...options
})

/** One of a few. */
export const choice = <A extends string>(
  label: string,
  choices: ReadonlyArray<Choice<A>>,
  options?: Options
): Field<A> => ({
  label,
  control: { kind: "choice", choices },
  read: (texts) => first(texts) as A | undefined,
  write: (value) => [value],
  ...options
})

/** Some of a few. */
export const checks = <A extends string>(
  label: string,
  choices: ReadonlyArray<Choice<A>>,
  options?: Options
): Field<ReadonlyArray<A>> => ({
  label,
  control: { kind: "checks", choices },
  read: (texts) => texts as ReadonlyArray<A>,
  write: (value) => value,
  ...options
})

/** The values of an enumeration as choices. */
export const choicesOf = <A extends string>(literals: ReadonlyArray<A>): ReadonlyArray<Choice<A>> =>
  literals.map((id) => ({ id, name: sentenceOf(id) }))

interface Shown {
  readonly name: string
  readonly field: Pick<Field<unknown>, "label" | "hint" | "control">
  readonly texts: ReadonlyArray<string>
  readonly fault: string | undefined
}

/** A field with its label, its hint, and beside it what is wrong with it. */
export const FieldView = ({ fault, field, name, texts }: Shown) => {
  const id = useId()
  const described = [field.hint && `${id}-hint`, fault && `${id}-fault`].filter(Boolean).join(" ")
  const state = {
    name,
    ...(fault === undefined ? {} : { "aria-invalid": true as const }),
    ...(described === "" ? {} : { "aria-describedby": described })
  }
  const isGroup = field.control.kind === "checks" || (field.control.kind === "own" && field.control.isGroup === true)
  const Box = isGroup ? "fieldset" : "div"
  const label = isGroup ? <legend>{field.label}</legend> : <label htmlFor={id}>{field.label}</label>
  return (
    <Box className={`field ${field.control.kind}`}>
      {label}
      <ControlView id={id} control={field.control} texts={texts} state={state} />
      {"note" in field.control && field.control.note}
      {field.hint !== undefined && <small id={`${id}-hint`}>{field.hint}</small>}
      {fault !== undefined && (
        <span id={`${id}-fault`} className="fault">
          {fault}
        </span>
      )}
    </Box>
  )
}

/** More boxes scroll, so that the rest of the form stays in reach. */
const checksMax = 12

const ControlView = (props: ControlProps & { readonly control: Control }) => {
  const { control, id, state, texts } = props
  const value = texts[0] ?? ""
  switch (control.kind) {
    case "input":
      return (
        <input
          id={id}
          {...state}
          type={control.type}
          min={control.min}
          defaultValue={value}
          autoComplete="off"
          step="any"
        />
      )
    case "flag":
      return <input id={id} {...state} type="checkbox" defaultChecked={texts.length > 0} />
    case "lines":
      return <textarea id={id} {...state} rows={3} defaultValue={value} />
    case "choice":
      return (
        // A choice that is read later is made then.
        <select key={String(control.choices.some((each) => each.id === value))} id={id} {...state} defaultValue={value}>
          <option value="">Choose…</option>
          {control.choices.map((each) => (
            <option key={each.id} value={each.id}>
              {each.name}
            </option>
          ))}
        </select>
      )
    case "own":
      return control.show({ id, texts, state })
    case "checks": {
      const boxes = control.choices.map((each) => (
        <label key={each.id} className="check">
          <input {...state} type="checkbox" value={each.id} defaultChecked={texts.includes(each.id)} /> {each.name}
        </label>
      ))
      return boxes.length > checksMax ? <div className="scrolls">{boxes}</div> : boxes
    }
  }
}
