/** What can be done with the chosen licenses. */
import type { ReactNode } from "react"
import type { Page } from "../../../contract/api/Paging.ts"
import type { License } from "../../../licensing/model/License.ts"
import type { Filters } from "../batch/Chosen.ts"
import { ExportLicenses } from "../batch/LicenseFile.tsx"
import { Icon } from "../look/Icon.tsx"
import { cappedOf, countOf } from "../parts/Format.ts"
import { licenseCount } from "../parts/LicenseName.ts"
import { Menu } from "../parts/Menu.tsx"
import { useKeptState } from "../service/Drafts.ts"
import { useMay } from "../service/Hooks.ts"
import { type BulkChange, bulkChanges } from "./BulkChanges.ts"
import { BulkDialog } from "./BulkDialog.tsx"
import { nothingChosen, type Selection } from "./Selection.tsx"

interface Props {
  readonly selection: Selection
  readonly set: (selection: Selection) => void
  readonly page: Page<License>
  readonly filters: Filters
}

export const ChosenBar = (props: Props) => {
  const { filters, selection, set } = props
  const [action, setAction] = useKeptState<BulkChange["action"]>("change of chosen rows")
  const change = bulkChanges.find((offered) => offered.action === action)
  const rows = [...selection.rows.values()]
  const chosen = selection.all ? { filters } : rows
  return (
    <section className="chosen row" aria-label="Chosen licenses">
      <Count {...props} />
      {(selection.all || rows.length > 0) && (
        <>
          <Actions onChosen={({ action }) => setAction(action)}>
            <ExportLicenses label="Export chosen as CSV" chosen={chosen} />
          </Actions>
          <button type="button" className="quiet none" aria-label="Choose none" onClick={() => set(nothingChosen)}>
            <span>Choose none</span>
            <Icon name="close" />
          </button>
        </>
      )}
      {change !== undefined && <BulkDialog change={change} chosen={chosen} onClose={() => setAction(undefined)} />}
    </section>
  )
}

interface ActionsProps {
  readonly onChosen: (change: BulkChange) => void
  /** What changes nothing. */
  readonly children: ReactNode
}

const Actions = ({ children, onChosen }: ActionsProps) => {
  const may = useMay()
  if (!may("license:write")) return children
  const offered = bulkChanges.filter(({ action }) => action !== "policy" || may("product:read"))
  const button = (change: BulkChange) => (
    <button
      key={change.action}
      type="button"
      {...(change.danger && !change.isFrequent ? { className: "risky" } : {})}
      onClick={({ currentTarget }) => {
        // The menu closes first, so that the dialog gives the focus back to the menu's button.
        currentTarget.closest<HTMLElement>("[popover]")?.hidePopover()
        onChosen(change)
      }}
    >
      {change.label}
    </button>
  )
  return (
    <>
      {offered.filter(({ isFrequent }) => isFrequent).map(button)}
      <Menu label="Other actions">
        {children}
        {offered.filter(({ isFrequent }) => !isFrequent).map(button)}
      </Menu>
    </>
  )
}

const withAll = ({ rows }: Selection, page: ReadonlyArray<License>) =>
  new Map([...rows, ...page.map((license) => [license.id, license] as const)])

const Count = ({ page, selection, set }: Props) => {
  const { items, total = items.length, total_is_capped = false } = page
  const isWholePage = items.length > 0 && items.every(({ id }) => selection.rows.has(id))
  const count = selection.all ? total : selection.rows.size
  const isCapped = selection.all && total_is_capped
  const isMore = isWholePage && !selection.all && (total_is_capped || total > selection.rows.size)
  return (
    <>
      <p role="status">
        {count === 0 ? "" : `${isCapped ? `${countOf(count)}+ licenses` : licenseCount(count)} chosen`}
      </p>
      {count > 0 && !isWholePage && !selection.all && (
        // On a phone the table has no heading, whose box does the same.
        <button
          type="button"
          className="quiet on-phones"
          onClick={() => set({ all: false, rows: withAll(selection, items) })}
        >
          Choose all on this page
        </button>
      )}
      {isMore && (
        <button type="button" className="quiet" onClick={() => set({ all: true, rows: new Map() })}>
          Choose all {cappedOf({ total, total_is_capped })} that match
        </button>
      )}
    </>
  )
}
