/**
 * Metadata: entries that the vendor keeps with a record. Each entry is a text, a number, yes or no, nothing, or JSON; what is wrong
 * with an entry is said beside it.
 */
import { Option, Schema } from "effect"
import { useId, useRef, useState } from "react"
import type { Metadata as MetadataObject } from "../../../contract/api/Metadata.ts"
import type { ControlProps, Field } from "./Fields.tsx"
import { Facts, Section } from "./Show.tsx"

const kinds = { text: "Text", number: "Number", answer: "Yes or no", nothing: "Nothing", json: "JSON" } as const
type Kind = keyof typeof kinds

interface Entry {
  /** Identifies the entry while its key is being typed. */
  readonly number: number
  readonly key: string
  readonly kind: Kind
  readonly text: string
}

const entriesMax = 64

/** Stands in the form before entries of which some are not valid. */
const invalid = "invalid"

const decodeJson = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Json))
const decodeObject = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Record(Schema.String, Schema.Json)))

const metadataOf = ([text = "{}"]: ReadonlyArray<string>): MetadataObject =>
  Option.getOrElse(decodeObject(text), () => ({}))

/** The field of a form that edits the metadata of a record. */
export const metadata = (): Field<MetadataObject> => ({
  label: "Metadata",
  hint: `At most ${entriesMax} entries and 16 KiB. Visible to everyone who can read the record.`,
  control: { kind: "own", show: (props) => <Editor {...props} />, isGroup: true },
  read: metadataOf,
  write: (value) => [JSON.stringify(value)],
  check: ([text]) => (text?.startsWith(invalid) ? "Correct the entries that are marked." : undefined)
})

const kindOf = (value: Schema.Json): Kind => {
  if (value === null) return "nothing"
  if (typeof value === "string") return "text"
  if (typeof value === "number") return "number"
  return typeof value === "boolean" ? "answer" : "json"
}

const textOf = (value: Schema.Json): string => {
  if (value === null) return ""
  if (typeof value === "boolean") return value ? "yes" : "no"
  return typeof value === "object" ? JSON.stringify(value) : String(value)
}

const valueOf = ({ kind, text }: Entry): Schema.Json | undefined => {
  switch (kind) {
    case "text":
      return text
    case "number":
      return text.trim() !== "" && Number.isFinite(Number(text)) ? Number(text) : undefined
    case "answer":
      return text === "yes"
    case "nothing":
      return null
    case "json":
      return Option.getOrUndefined(decodeJson(text))
  }
}

const keyFault = ({ key, number }: Entry, entries: ReadonlyArray<Entry>): string | undefined => {
  if (key === "") return "The entry needs a key."
  if (key === "__proto__" || /[\\\0]/.test(key)) return "A key has no backslash, and is not __proto__."
  return entries.some((other) => other.key === key && other.number < number)
    ? "Another entry has this key already."
    : undefined
}

const valueFault = (entry: Entry): string | undefined => {
  if (valueOf(entry) !== undefined) return undefined
  return entry.kind === "number" ? "This is no number." : `This is no JSON: try ["a", 1] or {"a": true}.`
}

const faultOf = (entry: Entry, entries: ReadonlyArray<Entry>) => keyFault(entry, entries) ?? valueFault(entry)

const entriesOf = (texts: ReadonlyArray<string>): ReadonlyArray<Entry> =>
  texts[0]?.startsWith(invalid) ? JSON.parse(texts[0].slice(invalid.length)) : entriesIn(texts)

const entriesIn = (texts: ReadonlyArray<string>): ReadonlyArray<Entry> =>
  Object.entries(metadataOf(texts)).map(([key, value], number) => ({
    number,
    key,
    kind: kindOf(value),
    text: textOf(value)
  }))

/** What the form sends: an object is made only from entries that are all valid. */
const writtenOf = (entries: ReadonlyArray<Entry>): string =>
  entries.some((entry) => faultOf(entry, entries) !== undefined)
    ? `${invalid}${JSON.stringify(entries)}`
    : JSON.stringify(Object.fromEntries(entries.map((entry) => [entry.key, valueOf(entry)])))

const Editor = ({ id, state, texts }: ControlProps) => {
  const [entries, setEntries] = useState(() => entriesOf(texts))
  /** Entries from this number on are new. */
  const opened = useRef(Math.max(-1, ...entries.map(({ number }) => number)) + 1).current
  const next = useRef(opened)
  const add = useRef<HTMLButtonElement>(null)
  const append = () => setEntries([...entries, { number: next.current++, key: "", kind: "text", text: "" }])
  const replace = (changed: Entry) =>
    setEntries(entries.map((entry) => (entry.number === changed.number ? changed : entry)))
  const remove = ({ number }: Entry) => {
    setEntries(entries.filter((entry) => entry.number !== number))
    add.current?.focus()
  }
  return (
    <>
      <input type="hidden" name={state.name} value={writtenOf(entries)} />
      {entries.map((entry) => (
        <EntryView
          key={entry.number}
          entry={entry}
          isNew={entry.number >= opened}
          fault={"aria-invalid" in state || isTyped(entry) ? faultOf(entry, entries) : undefined}
          onChange={replace}
          onRemove={remove}
        />
      ))}
      {entries.length < entriesMax && (
        <button ref={add} id={id} type="button" className="add" onClick={append}>
          Add an entry
        </button>
      )}
    </>
  )
}

/** What is still empty is no fault until the form is sent. */
const isTyped = ({ key, kind, text }: Entry) => key !== "" && (text !== "" || kind === "text")

const EntryView = (props: {
  readonly entry: Entry
  readonly isNew: boolean
  readonly fault: string | undefined
  readonly onChange: (entry: Entry) => void
  readonly onRemove: (entry: Entry) => void
}) => {
  const { entry, fault, isNew, onChange, onRemove } = props
  const id = useId()
  const name = entry.key === "" ? "new entry" : entry.key
  const described = fault === undefined ? {} : { "aria-invalid": true as const, "aria-describedby": id }
  return (
    <div className="entry">
      <input
        aria-label={`Key of ${name}`}
        placeholder="Key"
        autoComplete="off"
        // biome-ignore lint/a11y/noAutofocus: who adds an entry types its key next.
        autoFocus={isNew}
        value={entry.key}
        {...described}
        onChange={({ currentTarget: { value } }) => onChange({ ...entry, key: value })}
      />
      <select
        aria-label={`Type of ${name}`}
        value={entry.kind}
        onChange={({ currentTarget: { value } }) => onChange({ ...entry, kind: value as Kind })}
      >
        {Object.entries(kinds).map(([kind, title]) => (
          <option key={kind} value={kind}>
            {title}
          </option>
        ))}
      </select>
      <ValueView entry={entry} label={`Value of ${name}`} described={described} onChange={onChange} />
      <button type="button" aria-label={`Remove ${name}`} title={`Remove ${name}`} onClick={() => onRemove(entry)}>
        ×
      </button>
      {fault !== undefined && (
        <span id={id} className="fault">
          {fault}
        </span>
      )}
    </div>
  )
}

const ValueView = (props: {
  readonly entry: Entry
  readonly label: string
  readonly described: object
  readonly onChange: (entry: Entry) => void
}) => {
  const { described, entry, label, onChange } = props
  if (entry.kind === "nothing") return <span className="quiet">nothing</span>
  if (entry.kind === "answer")
    return (
      <select
        aria-label={label}
        value={entry.text === "yes" ? "yes" : "no"}
        onChange={({ currentTarget: { value } }) => onChange({ ...entry, text: value })}
      >
        <option value="yes">Yes</option>
        <option value="no">No</option>
      </select>
    )
  return (
    <input
      aria-label={label}
      placeholder="Value"
      autoComplete="off"
      inputMode={entry.kind === "number" ? "decimal" : undefined}
      value={entry.text}
      {...described}
      onChange={({ currentTarget: { value } }) => onChange({ ...entry, text: value })}
    />
  )
}

/** The metadata of a record, where it has any. */
export const Metadata = ({ of }: { readonly of: MetadataObject }) => {
  const entries = Object.entries(of)
  if (entries.length === 0) return null
  return (
    <Section id="metadata" title="Metadata">
      <Facts of={entries.map(([key, value]) => [key, value === null ? "nothing" : textOf(value)])} />
    </Section>
  )
}
