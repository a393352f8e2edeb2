/** Draws tables in a PDF: columns as wide as their texts, numbers aligned right, over as many pages as needed. */
import { Effect } from "effect"
import type { Table } from "./PdfModel.ts"
import type { Pages, Style, TextRenderer } from "./TextRenderer.ts"

const colors = { head: "#1c2733", text: "#27313b", rule: "#9aa5b1", line: "#e3e7eb", note: "#5b6570" }
const cellStyle: Style = { face: "regular", size: 6.5, color: colors.text }
const boldStyle: Style = { ...cellStyle, face: "bold", color: colors.head }
const headingStyle: Style = { face: "bold", size: 9, color: colors.head }
const noteStyle: Style = { face: "regular", size: 7, color: colors.note }

const lineHeight = 8.4
const padding = 2.2
const columnGap = 9
const linesMax = 3
/** All texts of these rows are measured; of the other rows, only the longest text of each column. */
const sampleRowsMax = 300
/** Drawing this many rows takes a few milliseconds; then requests run. */
const rowsPerTurn = 5

interface ColumnLayout {
  readonly x: number
  readonly width: number
  readonly numeric: boolean
}

export const drawTable = Effect.fnUntraced(function* (renderer: TextRenderer, pages: Pages, table: Table) {
  const layouts = columnLayouts(renderer, pages, table)
  const labels = table.columns.map(({ label }) => label)
  const end = layouts.at(-1)!.x + layouts.at(-1)!.width
  const drawHeaderRow = () => {
    drawRow(renderer, pages, layouts, cellLines(renderer, layouts, labels, boldStyle), boldStyle)
    drawRule(renderer, pages, end, colors.rule)
  }
  const drawTextRow = (row: ReadonlyArray<string>, style: Style, color: string) => {
    const lines = cellLines(renderer, layouts, row, style)
    if (pages.reserve(heightOf(lines))) drawHeaderRow()
    drawRow(renderer, pages, layouts, lines, style)
    drawRule(renderer, pages, end, color)
  }
  pages.reserve(60)
  renderer.write(table.title, pages.left, pages.y + headingStyle.size, headingStyle)
  pages.y += headingStyle.size + 6
  if (table.note !== undefined) {
    renderer.write(table.note, pages.left, pages.y + noteStyle.size, noteStyle)
    pages.y += noteStyle.size + 5
  }
  drawHeaderRow()
  for (const [index, row] of table.rows.entries()) {
    if (index % rowsPerTurn === 0) yield* Effect.yieldNow
    drawTextRow(row, cellStyle, colors.line)
  }
  if (table.rows.length === 0) {
    renderer.write("No rows.", pages.left, pages.y + lineHeight, noteStyle)
    pages.y += lineHeight + 2 * padding
  }
  if (table.totals !== undefined) drawTextRow(table.totals, boldStyle, colors.rule)
  pages.y += 14
})

/** If the columns are too wide together, the widest text columns shrink, never the numeric ones. */
const columnLayouts = (
  renderer: TextRenderer,
  pages: Pages,
  { columns, rows, totals = [] }: Table
): ReadonlyArray<ColumnLayout> => {
  const desired = columns.map(({ label }, index) =>
    rows
      .slice(0, sampleRowsMax)
      .reduce(
        (widest, row) => Math.max(widest, renderer.width(row[index] ?? "", cellStyle)),
        Math.max(renderer.width(label, boldStyle), renderer.width(totals[index] ?? "", boldStyle))
      )
  )
  // Rows after the sample may contain wider texts.
  for (const index of columns.keys()) {
    const longest = rows.reduce((widest, row) => ((row[index]?.length ?? 0) > widest.length ? row[index]! : widest), "")
    desired[index] = Math.max(desired[index]!, renderer.width(longest, cellStyle))
  }
  const available = pages.width - columnGap * (columns.length - 1)
  const fixed = columns.reduce((sum, { numeric }, index) => sum + (numeric ? desired[index]! : 0), 0)
  const widest = textWidthMax(
    desired.filter((_, index) => !columns[index]!.numeric),
    available - fixed
  )
  let x = pages.left
  return columns.map(({ numeric }, index) => {
    const width = numeric ? desired[index]! : Math.min(desired[index]!, widest)
    const layout = { x, width, numeric }
    x += width + columnGap
    return layout
  })
}

/** The maximum width of a text column with which all columns fit: narrower columns get their desired width. */
const textWidthMax = (desired: ReadonlyArray<number>, available: number): number => {
  let left = available
  const rising = desired.toSorted((a, b) => a - b)
  for (const [index, width] of rising.entries()) {
    const share = left / (rising.length - index)
    if (width > share) return Math.max(share, 20)
    left -= width
  }
  return Number.POSITIVE_INFINITY
}

const cellLines = (
  renderer: TextRenderer,
  layouts: ReadonlyArray<ColumnLayout>,
  row: ReadonlyArray<string>,
  style: Style
) =>
  layouts.map(({ numeric, width }, index) =>
    numeric ? [row[index] ?? ""] : renderer.lines(row[index] ?? "", style, width + 0.01, linesMax)
  )

type Lines = ReadonlyArray<ReadonlyArray<string>>

const heightOf = (lines: Lines): number => Math.max(...lines.map(({ length }) => length)) * lineHeight + 2 * padding

const drawRow = (
  renderer: TextRenderer,
  pages: Pages,
  layouts: ReadonlyArray<ColumnLayout>,
  lines: Lines,
  style: Style
) => {
  for (const [index, { numeric, width, x }] of layouts.entries()) {
    for (const [number, line] of lines[index]!.entries()) {
      const y = pages.y + padding + style.size + number * lineHeight
      if (numeric) renderer.write(line, x + width, y, style, "right")
      else renderer.write(line, x, y, style)
    }
  }
  pages.y += heightOf(lines)
}

const drawRule = ({ pdf }: TextRenderer, { left, y }: Pages, right: number, color: string) => {
  pdf.moveTo(left, y)
  pdf.lineTo(right, y).lineWidth(0.5).stroke(color)
}
