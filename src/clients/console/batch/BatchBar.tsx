/** What can be done with the chosen licenses. */
import { useRef, useState } from "react"
import type { Page } from "../../../contract/api/Paging.ts"
import type { License } from "../../../licensing/model/License.ts"
import { countOf } from "../parts/Format.ts"
import { BatchDialog, batchMax } from "./BatchDialog.tsx"
import { ExportCsv } from "./ExportCsv.tsx"
import { type LicenseChange, licenseChanges } from "./LicenseChanges.ts"
import { licenseCount } from "./LicenseName.ts"
import type { Filters } from "./ReadAll.ts"
import { nothingChosen, type Selection } from "./Selection.tsx"

interface Props {
  readonly selection: Selection
  readonly set: (selection: Selection) => void
  readonly page: Page<License>
  readonly filters: Filters
  readonly mayChange: boolean
}

export const BatchBar = (props: Props) => {
  const { filters, mayChange, selection, set } = props
  const [change, setChange] = useState<LicenseChange>()
  const bar = useRef<HTMLElement>(null)
  const rows = [...selection.rows.values()]
  const chosen = selection.all ? { filters } : rows
  const isChosen = selection.all || rows.length > 0
  const close = (isDone: boolean) => {
    setChange(undefined)
    if (!isDone) return
    set(nothingChosen)
    // The button that opened the dialog leaves the page.
    bar.current?.focus()
  }
  return (
    <section className="chosen row" aria-label="Chosen licenses" ref={bar} tabIndex={-1}>
      <Count {...props} />
      {isChosen && (
        <>
          {mayChange &&
            licenseChanges.map((each) => (
              <button key={each.label} type="button" onClick={() => setChange(each)}>
                {each.label}
              </button>
            ))}
          <ExportCsv label="Export chosen as CSV" chosen={chosen} />
          <button type="button" className="quiet" onClick={() => set(nothingChosen)}>
            Choose none
          </button>
        </>
      )}
      {change !== undefined && <BatchDialog change={change} chosen={chosen} onClose={close} />}
    </section>
  )
}

const Count = ({ page, selection, set }: Props) => {
  const { items, total = items.length, total_is_capped = false } = page
  const isWholePage = items.length > 0 && items.every(({ id }) => selection.rows.has(id))
  const count = selection.all ? total : selection.rows.size
  const isMore = isWholePage && !selection.all && (total_is_capped || total > selection.rows.size)
  return (
    <>
      <p role="status">{count === 0 ? "" : `${licenseCount(count)} chosen`}</p>
      {isMore && !total_is_capped && (
        <button type="button" className="quiet" onClick={() => set({ all: true, rows: new Map() })}>
          Choose all {countOf(total)} that match
        </button>
      )}
      {isMore && total_is_capped && (
        <p className="quiet">Narrow the filters to {countOf(batchMax)} licenses or fewer to choose all.</p>
      )}
    </>
  )
}
