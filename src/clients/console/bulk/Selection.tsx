/** Choosing rows of the list of licenses: some, all of a page, or all that the filters choose. */
import { useCallback, useRef } from "react"
import type { License } from "../../../licensing/model/License.ts"
import { licenseName } from "../parts/LicenseName.ts"
import type { Choice } from "../parts/Show.tsx"
import { useKeptState } from "../service/Drafts.ts"

export interface Selection {
  /** All that the filters choose, also those on other pages. */
  readonly all: boolean
  readonly rows: ReadonlyMap<string, License>
  /** The row that was chosen last: with the shift key, all rows from there on follow. */
  readonly last?: string
}

const none: Selection = { all: false, rows: new Map() }

/** What is chosen stays over the pages of a list, and is forgotten with other filters. */
export const useSelection = (filters: object) => {
  const key = JSON.stringify(filters)
  const [kept, setKept] = useKeptState<{ readonly key: string; readonly selection: Selection }>("chosen rows")
  const selection = kept?.key === key ? kept.selection : none
  const set = (next: Selection) => setKept({ key, selection: next })
  return [selection, set] as const
}

interface Chooser {
  readonly selection: Selection
  readonly set: (selection: Selection) => void
  readonly rows: ReadonlyArray<License>
}

const isChosen = ({ all, rows }: Selection, { id }: License) => all || rows.has(id)

/** The rows from the one that was chosen last to this one. */
const rangeTo = (license: License, { rows, selection }: Chooser): ReadonlyArray<License> => {
  const [from, to] = [rows.findIndex(({ id }) => id === selection.last), rows.indexOf(license)]
  return from === -1 ? [license] : rows.slice(Math.min(from, to), Math.max(from, to) + 1)
}

const toggle = (
  { rows, selection, set }: Chooser,
  licenses: ReadonlyArray<License>,
  chosen: boolean,
  last?: string
) => {
  // When one row is excluded from all that the filters choose, the other rows of the page stay chosen, and nothing beyond it.
  const next = new Map(selection.all ? rows.map((row) => [row.id, row]) : selection.rows)
  for (const license of licenses) {
    if (chosen) next.set(license.id, license)
    else next.delete(license.id)
  }
  set({ all: false, rows: next, ...(last === undefined ? {} : { last }) })
}

/** The column with a box for each row, and one for all rows of the page. */
export const useChoice = (chooser: Chooser): Choice<License> => {
  const { rows, selection } = chooser
  // A row that stays as it is keeps its box, which must know what was chosen since.
  const latest = useRef(chooser)
  latest.current = chooser
  const show = useCallback(
    (license: License, isChosen: boolean) => (
      <input
        type="checkbox"
        aria-label={`Choose ${licenseName(license)}, …${license.license_key_last4}`}
        checked={isChosen}
        onChange={({ currentTarget, nativeEvent }) => {
          const isRange = nativeEvent instanceof MouseEvent && nativeEvent.shiftKey
          const licenses = isRange ? rangeTo(license, latest.current) : [license]
          toggle(latest.current, licenses, currentTarget.checked, license.id)
        }}
      />
    ),
    []
  )
  const chosen = rows.filter((row) => isChosen(selection, row)).length
  return {
    heading: (
      <input
        type="checkbox"
        aria-label="Choose all on this page"
        checked={chosen > 0 && chosen === rows.length}
        ref={(box) => {
          if (box !== null) box.indeterminate = chosen > 0 && chosen < rows.length
        }}
        onChange={({ currentTarget }) => toggle(chooser, rows, currentTarget.checked)}
      />
    ),
    has: (license) => isChosen(selection, license),
    show
  }
}

export const nothingChosen = none
