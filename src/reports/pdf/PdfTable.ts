/** Tables in a PDF: as wide as what stands in them, figures in line at their last digit, over as many pages as they need. */
import { Effect } from "effect"
import type { Table } from "./PdfModel.ts"
import type { Pages, Style, TextRenderer } from "./TextRenderer.ts"

const ink = { head: "#1c2733", text: "#27313b", rule: "#9aa5b1", line: "#e3e7eb", note: "#5b6570" }
const cell: Style = { face: "regular", size: 6.5, color: ink.text }
const strong: Style = { ...cell, face: "bold", color: ink.head }
const heading: Style = { face: "bold", size: 9, color: ink.head }
const note: Style = { face: "regular", size: 7, color: ink.note }

const lineHeight = 8.4
const padding = 2.2
const gap = 9
const linesMax = 3
/** Rows of which every text is measured; of the others the longest. */
const sampled = 300
/** Rows that are written in one go: a few milliseconds, then requests have their turn. */
const rowsAtATime = 5

interface Place {
  readonly x: number
  readonly width: number
  readonly numeric: boolean
}

export const drawTable = Effect.fnUntraced(function* (pen: TextRenderer, pages: Pages, table: Table) {
  const places = placesOf(pen, pages, table)
  const labels = table.columns.map(({ label }) => label)
  const end = places.at(-1)!.x + places.at(-1)!.width
  const head = () => {
    drawRow(pen, pages, places, linesOf(pen, places, labels, strong), strong)
    rule(pen, pages, end, ink.rule)
  }
  const line = (row: ReadonlyArray<string>, style: Style, color: string) => {
    const lines = linesOf(pen, places, row, style)
    if (pages.reserve(heightOf(lines))) head()
    drawRow(pen, pages, places, lines, style)
    rule(pen, pages, end, color)
  }
  // A title stands above a row at least.
  pages.reserve(60)
  pen.write(table.title, pages.left, pages.y + heading.size, heading)
  pages.y += heading.size + 6
  if (table.note !== undefined) {
    pen.write(table.note, pages.left, pages.y + note.size, note)
    pages.y += note.size + 5
  }
  head()
  for (const [index, row] of table.rows.entries()) {
    if (index % rowsAtATime === 0) yield* Effect.yieldNow
    line(row, cell, ink.line)
  }
  if (table.rows.length === 0) {
    pen.write("Nothing.", pages.left, pages.y + lineHeight, note)
    pages.y += lineHeight + 2 * padding
  }
  if (table.totals !== undefined) line(table.totals, strong, ink.rule)
  pages.y += 14
})

/** Columns as wide as they want to be; where that is too much, the widest texts give way. Figures never do. */
const placesOf = (pen: TextRenderer, pages: Pages, { columns, rows, totals = [] }: Table): ReadonlyArray<Place> => {
  const wanted = columns.map(({ label }, index) =>
    rows
      .slice(0, sampled)
      .reduce(
        (most, row) => Math.max(most, pen.width(row[index] ?? "", cell)),
        Math.max(pen.width(label, strong), pen.width(totals[index] ?? "", strong))
      )
  )
  // Further down a long table there may be wider ones.
  for (const index of columns.keys()) {
    const longest = rows.reduce((most, row) => ((row[index]?.length ?? 0) > most.length ? row[index]! : most), "")
    wanted[index] = Math.max(wanted[index]!, pen.width(longest, cell))
  }
  const given = pages.width - gap * (columns.length - 1)
  const fixed = columns.reduce((sum, { numeric }, index) => sum + (numeric ? wanted[index]! : 0), 0)
  const most = widthMost(
    wanted.filter((_, index) => !columns[index]!.numeric),
    given - fixed
  )
  let x = pages.left
  return columns.map(({ numeric }, index) => {
    const width = numeric ? wanted[index]! : Math.min(wanted[index]!, most)
    const place = { x, width, numeric }
    x += width + gap
    return place
  })
}

/** The width up to which all have what they want, and to which the others are held, so that together they have room. */
const widthMost = (wanted: ReadonlyArray<number>, room: number): number => {
  let left = room
  const rising = wanted.toSorted((a, b) => a - b)
  for (const [index, width] of rising.entries()) {
    const share = left / (rising.length - index)
    if (width > share) return Math.max(share, 20)
    left -= width
  }
  return Number.POSITIVE_INFINITY
}

const linesOf = (pen: TextRenderer, places: ReadonlyArray<Place>, row: ReadonlyArray<string>, style: Style) =>
  places.map(({ numeric, width }, index) =>
    numeric ? [row[index] ?? ""] : pen.lines(row[index] ?? "", style, width + 0.01, linesMax)
  )

type Lines = ReadonlyArray<ReadonlyArray<string>>

const heightOf = (lines: Lines): number => Math.max(...lines.map(({ length }) => length)) * lineHeight + 2 * padding

const drawRow = (pen: TextRenderer, pages: Pages, places: ReadonlyArray<Place>, lines: Lines, style: Style) => {
  for (const [index, { numeric, width, x }] of places.entries()) {
    for (const [number, line] of lines[index]!.entries()) {
      const y = pages.y + padding + style.size + number * lineHeight
      if (numeric) pen.write(line, x + width, y, style, "right")
      else pen.write(line, x, y, style)
    }
  }
  pages.y += heightOf(lines)
}

const rule = ({ pdf }: TextRenderer, { left, y }: Pages, right: number, color: string) => {
  pdf.moveTo(left, y)
  pdf.lineTo(right, y).lineWidth(0.5).stroke(color)
}
