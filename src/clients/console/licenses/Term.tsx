/** Terms of the calendar: a year later is the same day of the next year. */
import { useState } from "react"
import type { ControlProps, Field } from "../parts/Fields.tsx"
import { dayOf } from "../parts/Format.ts"
import { useDraft } from "../service/Drafts.ts"

type Term = "month" | "quarter" | "year" | "two_years"

const months: Readonly<Record<Term, number>> = { month: 1, quarter: 3, year: 12, two_years: 24 }

const names: Readonly<Record<Term, string>> = {
  month: "1 month",
  quarter: "3 months",
  year: "1 year",
  two_years: "2 years"
}

/** The same day and time so much later; the last day of a shorter month. */
const afterTerm = (from: number, term: Term): number => {
  const begin = new Date(from)
  const later = new Date(from)
  later.setMonth(begin.getMonth() + months[term])
  if (later.getDate() !== begin.getDate()) later.setDate(0)
  return later.getTime()
}

const all = Object.keys(months) as ReadonlyArray<Term>

/** All terms in sight, each with the day to which it leads. The value is the expiry. */
export const termField = (from: number, first: Term = "month"): Field<number> => ({
  label: "Extend by",
  control: { kind: "own", isGroup: true, show: (props) => <Terms {...props} from={from} first={first} /> },
  read: ([chosen]) => (chosen === undefined ? undefined : Number(chosen)),
  write: (value) => [String(value)]
})

const Terms = ({ first, from, state, texts }: ControlProps & { readonly from: number; readonly first: Term }) => {
  // A form whose response was lost must send the same again, though the license has another expiry then.
  const kept: number | undefined = useDraft<number>(`begin of ${state.name}`, () => begin)
  const [begin] = useState(kept ?? from)
  const [chosen] = texts
  return (
    <div className="segments">
      {all.map((term) => {
        const end = afterTerm(begin, term)
        return (
          <label key={term}>
            <input
              type="radio"
              {...state}
              value={end}
              defaultChecked={kept === undefined ? term === first : chosen === String(end)}
            />
            <span>{names[term]}</span>
            <small>→ {dayOf(end)}</small>
          </label>
        )
      })}
    </div>
  )
}
