/**
 * The keyboard in tables: the arrows, Home and End move from row to row, Enter opens a row, and x chooses it. Inputs, menus and dialogs
 * keep their own keys.
 */
const isTextual = (target: Element) =>
  target.closest("textarea, select, input:not([type=checkbox]), [contenteditable], [popover], dialog") !== null

const rowsOf = (table: Element | null): ReadonlyArray<HTMLElement> =>
  table === null ? [] : [...table.querySelectorAll<HTMLElement>("tbody > tr")]

/** The table that has the focus; if nothing has it, the list of the screen. */
const tableOf = (target: Element): Element | null => {
  const isUnfocused = target === document.body || target.id === "content"
  return isUnfocused
    ? document.querySelector("#content .listing[data-list] > table")
    : target.closest(".listing > table")
}

const placeAfter = (key: string, place: number, count: number): number | undefined => {
  if (key === "ArrowDown") return Math.min(place + 1, count - 1)
  if (key === "ArrowUp") return Math.max(place - 1, 0)
  if (key === "Home") return 0
  return key === "End" ? count - 1 : undefined
}

const focusRow = (row: HTMLElement) => {
  // A row has the focus only by the arrows; Tab moves between links and buttons.
  row.tabIndex = -1
  row.focus()
}

const toggle = (row: HTMLElement, { shiftKey }: KeyboardEvent) =>
  row
    .querySelector(".chooses input")
    ?.dispatchEvent(new MouseEvent("click", { bubbles: true, cancelable: true, shiftKey }))

const act = (event: KeyboardEvent): boolean => {
  const { key, target } = event
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return false
  if (!(target instanceof Element) || isTextual(target)) return false
  if (document.querySelector("dialog[open], :popover-open") !== null) return false
  const rows = rowsOf(tableOf(target))
  const row = target.closest<HTMLElement>("tbody > tr")
  const place = row === null ? -1 : rows.indexOf(row)
  // Outside of the rows, only the arrow down is about them.
  if (place === -1 && key !== "ArrowDown") return false
  const next = placeAfter(key, place, rows.length)
  if (next !== undefined) {
    const found = rows[next]
    if (found !== undefined) focusRow(found)
    return found !== undefined
  }
  if (row === null) return false
  if (key === "Enter" && target === row) {
    row.querySelector<HTMLElement>("th a, td a")?.click()
    return true
  }
  return key.toLowerCase() === "x" && toggle(row, event) !== undefined
}

const listen = (event: KeyboardEvent) => {
  if (act(event)) event.preventDefault()
}

/** One listener serves all tables. */
export const followRowKeys = () => {
  document.addEventListener("keydown", listen)
  return () => document.removeEventListener("keydown", listen)
}
