/** Fields that link a record to another: what is typed is searched for, and the browser suggests what was found. */
import { Fragment, type ReactNode, useState } from "react"
import type { ControlProps, Field } from "../parts/Fields.tsx"

export interface Suggestion {
  readonly id: string
  /** What the input shows. */
  readonly name: string
  /** A shorter text that names the record as well. */
  readonly alias: string | undefined
}

/** Tells the suggestions, and whether there are no others; undefined: they cannot be read. */
export type Found = (suggestions: ReadonlyArray<Suggestion> | undefined, isAll: boolean) => void

export interface Source {
  readonly noun: string
  /** Finds the record that is linked. */
  readonly named: (id: string, found: Found) => ReactNode
  /** Finds records that match a text. */
  readonly matching: (text: string, found: Found) => ReactNode
}

/** Stand in the form before a text that names no record, that is still looked for, or that could not be looked for. */
const [unknown, sought, unread] = ["?", "…", "!"]

const textOf = ([id = ""]: ReadonlyArray<string>) => (id === "" ? undefined : id)

const isText = (id: string) => [unknown, sought, unread].includes(id.charAt(0))

const faultOf = (noun: string, given = "") => {
  const id = given.charAt(0)
  if (id === unread) return `The ${noun} could not be looked for: the reason is below.`
  if (id === sought) return `The ${noun} is still looked for: wait a moment and try again.`
  return id === unknown ? `No ${noun} is chosen: pick one of the suggestions.` : undefined
}

export const picker = (label: string, source: Source, isRequired = false): Field<string> => ({
  label,
  hint: isRequired ? "Type to search." : "Type to search. Leave empty for none.",
  ...(isRequired ? { required: true } : {}),
  control: { kind: "own", show: (props) => <Picker {...props} source={source} /> },
  read: textOf,
  write: (id) => [id],
  check: ([id]) => faultOf(source.noun, id)
})

/** The only record whose suggestion was chosen. */
export const chosenBy = (typed: string, suggestions: ReadonlyArray<Suggestion>): string | undefined => {
  const [only, other] = suggestions.filter(({ name }) => name === typed)
  return other === undefined ? only?.id : undefined
}

/**
 * The only record that a text names: two systems may have the same number. Only all records that match the text tell that, not
 * those that were suggested before it was typed.
 */
export const namedBy = (text: string, matching: ReadonlyArray<Suggestion>, isAll: boolean): string | undefined => {
  const chosen = chosenBy(text, matching)
  if (chosen !== undefined || !isAll) return chosen
  const [only, other] = matching.filter(({ alias }) => alias?.toLowerCase() === text.toLowerCase())
  return other === undefined ? only?.id : undefined
}

const Picker = ({ id, source, state, texts }: ControlProps & { readonly source: Source }) => {
  const given = textOf(texts)
  const isTyped = given !== undefined && isText(given)
  const linked = isTyped ? undefined : given
  const [text, setText] = useState(isTyped ? given.slice(1) : "")
  const [chosen, setChosen] = useState(linked)
  const [suggestions, setSuggestions] = useState<ReadonlyArray<Suggestion>>([])
  /** The text that was looked for, and whether anything could be read. */
  const [found, setFound] = useState<readonly [text: string, state: string]>()
  const { name, ...described } = state
  const type = (typed: string) => {
    setText(typed)
    setChosen(chosenBy(typed, suggestions))
  }
  const wanted = text.trim()
  const foundMatching: Found = (matching, isAll) => {
    setFound([wanted, matching === undefined ? unread : unknown])
    if (matching === undefined) return
    setSuggestions(matching)
    if (chosen === undefined && wanted !== "") setChosen(namedBy(wanted, matching, isAll))
  }
  const showLinked: Found = ([suggestion] = []) => suggestion !== undefined && setText(suggestion.name)
  const missing = wanted === "" ? "" : `${found?.[0] === wanted ? found[1] : sought}${wanted}`
  return (
    <>
      <input
        id={id}
        {...described}
        list={`${id}-suggestions`}
        value={text}
        autoComplete="off"
        onChange={({ currentTarget: { value } }) => type(value)}
      />
      <datalist id={`${id}-suggestions`}>
        {suggestions.map((suggestion) => (
          <option key={suggestion.id} value={suggestion.name} />
        ))}
      </datalist>
      <input type="hidden" name={name} value={chosen ?? missing} />
      {linked !== undefined && chosen === linked && source.named(linked, showLinked)}
      {chosen === undefined && <Fragment key={wanted}>{source.matching(wanted, foundMatching)}</Fragment>}
    </>
  )
}
