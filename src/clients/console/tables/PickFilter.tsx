/** A filter of a list by a record, which one searches for; once it is chosen, the address has its id and a chip its name. */
import { Fragment, useId, useRef, useState } from "react"
import { Icon } from "../look/Icon.tsx"
import { chosenBy, type Found, namedBy, type Source, type Suggestion } from "../pickers/Picker.tsx"
import { focusFrom } from "./List.tsx"

interface Props {
  readonly label: string
  readonly source: Source
  readonly onChange: (id: string) => void
}

export const PickFilter = ({ label, onChange, source }: Props) => {
  const id = useId()
  const [text, setText] = useState("")
  const [isOpen, setOpen] = useState(false)
  const [suggestions, setSuggestions] = useState<ReadonlyArray<Suggestion>>([])
  /** The text with which Enter was pressed; what it names is chosen once it is found. */
  const [entered, setEntered] = useState<string>()
  const [missed, setMissed] = useState<string>()
  const form = useRef<HTMLFormElement>(null)
  const wanted = text.trim()
  const choose = (chosen: string | undefined) => {
    if (chosen === undefined) return setMissed(wanted)
    setText("")
    const { current } = form
    // A chip takes the place of the input.
    if (current?.contains(document.activeElement))
      focusFrom(current.nextElementSibling ?? current.previousElementSibling)
    onChange(chosen)
  }
  const found: Found = (matching = [], isAll) => {
    setSuggestions(matching)
    if (entered === wanted && wanted !== "") choose(namedBy(wanted, matching, isAll) ?? onlyOf(matching, isAll))
  }
  const type = (typed: string) => {
    setText(typed)
    setMissed(undefined)
    const chosen = chosenBy(typed, suggestions)
    if (chosen !== undefined) choose(chosen)
  }
  return (
    <form
      ref={form}
      className="chip text"
      onSubmit={(event) => {
        event.preventDefault()
        if (wanted === "") return
        setMissed(undefined)
        setEntered(wanted)
      }}
    >
      <Icon name="search" />
      <label htmlFor={id} className="hidden">
        {label}
      </label>
      <input
        id={id}
        type="search"
        list={`${id}-suggestions`}
        placeholder={label}
        autoComplete="off"
        value={text}
        onFocus={() => setOpen(true)}
        onChange={({ currentTarget: { value } }) => type(value)}
      />
      <datalist id={`${id}-suggestions`}>
        {suggestions.map((suggestion) => (
          <option key={suggestion.id} value={suggestion.name} />
        ))}
      </datalist>
      {missed === wanted && wanted !== "" && <small role="status">Choose one {source.noun}</small>}
      {/* Enter looks again: the answer for this text may have come before. */}
      {isOpen && <Fragment key={`${wanted} ${entered === wanted}`}>{source.matching(wanted, found)}</Fragment>}
    </form>
  )
}

const onlyOf = (matching: ReadonlyArray<Suggestion>, isAll: boolean) =>
  isAll && matching.length === 1 ? matching[0]!.id : undefined
