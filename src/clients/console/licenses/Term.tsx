/** Terms of the calendar: a year later is the same day of the next year. */
import type { Field } from "../parts/Fields.tsx"
import { dayOf } from "../parts/Format.ts"

export type Term = "month" | "quarter" | "year" | "two_years"

const months: Readonly<Record<Term, number>> = { month: 1, quarter: 3, year: 12, two_years: 24 }

const names: Readonly<Record<Term, string>> = {
  month: "1 month",
  quarter: "3 months",
  year: "1 year",
  two_years: "2 years"
}

/** The same day and time so much later; the last day of a shorter month. */
export const afterTerm = (from: number, term: Term): number => {
  const begin = new Date(from)
  const later = new Date(from)
  later.setMonth(begin.getMonth() + months[term])
  if (later.getDate() !== begin.getDate()) later.setDate(0)
  return later.getTime()
}

const all = Object.keys(months) as ReadonlyArray<Term>

/** All terms in sight, each with the day to which it leads. */
export const termField = (from: number): Field<Term> => ({
  label: "Extend by",
  control: {
    kind: "own",
    isGroup: true,
    show: ({ state, texts }) => (
      <div className="segments">
        {all.map((term) => (
          <label key={term}>
            <input type="radio" {...state} value={term} defaultChecked={texts[0] === term} />
            <span>{names[term]}</span>
            <small>→ {dayOf(afterTerm(from, term))}</small>
          </label>
        ))}
      </div>
    )
  },
  read: ([chosen]) => chosen as Term | undefined,
  write: (value) => [value]
})
