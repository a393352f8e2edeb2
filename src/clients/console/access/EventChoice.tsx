/** The choice of the events that a webhook gets, from a list that one searches. */
import { useState } from "react"
import { eventTypes } from "../../../ledger/events/EventType.ts"
import type { ControlProps, Field } from "../parts/Fields.tsx"
import { nameOfEvent, wordsOf } from "../parts/Format.ts"

const nounOf = (type: string) => type.slice(0, type.indexOf("."))

/** By noun: all of its types, and each. */
const groups = [...new Set(eventTypes.map(nounOf))].map((noun) => ({
  noun,
  all: `${noun}.*`,
  types: eventTypes.filter((type) => nounOf(type) === noun)
}))

/** As the names of their events say it. */
const nouns: Readonly<Record<string, string>> = { lease: "floating seat", portal: "customer’s page" }

/** What a webhook gets, in words: one type of events, or all of a noun. */
export const nameOfType = (type: string): string =>
  type.endsWith(".*") ? `All ${nouns[nounOf(type)] ?? wordsOf(nounOf(type))} events` : nameOfEvent(type)

/** Shows the code on hover. */
export const TypeName = ({ of }: { readonly of: string }) => <span title={of}>{nameOfType(of)}</span>

export const eventTypesField: Field<ReadonlyArray<string>> = {
  label: "Events",
  hint: "None chosen: all events, also those of later versions.",
  control: { kind: "own", isGroup: true, show: (props) => <EventTypes {...props} /> },
  read: (texts) => texts,
  write: (types) => types
}

const EventTypes = ({ state, texts }: ControlProps) => {
  const [sought, setSought] = useState("")
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set(texts))
  const words = sought.toLowerCase().split(/[\s._]+/)
  const matches = (text: string) => words.every((word) => text.toLowerCase().includes(word))
  const toggle = (type: string, isChosen: boolean) => {
    const next = new Set(chosen)
    if (isChosen) next.add(type)
    else next.delete(type)
    setChosen(next)
  }
  const box = (type: string, isIncluded: boolean) => (
    <label key={type} className="check">
      <input
        type="checkbox"
        checked={isIncluded || chosen.has(type)}
        disabled={isIncluded}
        onChange={({ currentTarget }) => toggle(type, currentTarget.checked)}
      />
      <TypeName of={type} />
      {type.endsWith(".*") && <code>{type}</code>}
    </label>
  )
  return (
    <div className="picks">
      {/* What the search hides stays chosen. */}
      {[...chosen].map((type) => (
        <input key={type} type="hidden" {...state} value={type} />
      ))}
      <input
        type="search"
        aria-label="Search events"
        placeholder="Search events"
        value={sought}
        onChange={({ currentTarget }) => setSought(currentTarget.value)}
        // Enter would send the form.
        onKeyDown={(event) => event.key === "Enter" && event.preventDefault()}
      />
      <div className="scrolls">
        {groups.map(({ all, noun, types }) => {
          const shown = types.filter((type) => matches(`${type} ${nameOfEvent(type)}`))
          return shown.length === 0 ? null : (
            <div key={noun}>
              {shown.length === types.length && box(all, false)}
              <div className="inset">{shown.map((type) => box(type, chosen.has(all)))}</div>
            </div>
          )
        })}
      </div>
      <small role="status">{chosen.size === 0 ? "All events" : [...chosen].map(nameOfType).join(", ")}</small>
    </div>
  )
}
