/**
 * A report as a document to forward and file: what it is of, what it comes to, a chart where time says more, the tables, and on
 * each page its number and the digest that the figures can be checked by. The same figures make the same bytes: nothing in the
 * file is of the moment or the machine that it was made at.
 */
import { Effect } from "effect"
import PDFDocument from "pdfkit"
import { drawChart } from "./PdfChart.ts"
import type { PdfModel } from "./PdfModel.ts"
import { drawTable } from "./PdfTable.ts"
import {
  type Document,
  type Fonts,
  makeTextRenderer,
  mark,
  type Pages,
  type Style,
  type TextRenderer
} from "./TextRenderer.ts"

/** What is known of the export itself. */
export interface Origin {
  readonly exportId: string
  /** SHA-256 of the figures, as hex. */
  readonly digest: string
  /** Epoch milliseconds. */
  readonly generatedAt: number
}

const margin = 36
const footerHeight = 26
const chartHeight = 96
const ink = { title: "#1c2733", text: "#27313b", faint: "#5b6570", panel: "#f2f4f6" }
const titleStyle: Style = { face: "bold", size: 17, color: ink.title }
const nameStyle: Style = { face: "regular", size: 7.5, color: ink.faint }
const valueStyle: Style = { face: "regular", size: 7.5, color: ink.text }
const figureStyle: Style = { face: "bold", size: 12, color: ink.title }
const chartStyle: Style = { face: "bold", size: 9, color: ink.title }
const footStyle: Style = { face: "regular", size: 6, color: ink.faint }

export const drawPdf = Effect.fnUntraced(function* (printed: PdfModel, origin: Origin, fonts: Fonts) {
  const pdf = new PDFDocument({
    size: "A4",
    layout: "landscape",
    margin: 0,
    bufferPages: true,
    autoFirstPage: false,
    pdfVersion: "1.7",
    lang: "en",
    displayTitle: true,
    info: { Title: printed.title, Creator: "licensing-service", CreationDate: new Date(origin.generatedAt) }
  })
  const received: Array<Uint8Array> = []
  pdf.on("data", (bytes: Uint8Array) => received.push(bytes))
  const pen = makeTextRenderer(pdf, fonts)
  const pages = makePages(pdf)
  pages.reserve(Number.POSITIVE_INFINITY)
  drawHead(pen, pages, printed)
  if (printed.chart !== undefined) {
    pages.reserve(chartHeight + 30)
    pen.write(printed.chart.title, pages.left, pages.y + chartStyle.size, chartStyle)
    drawChart(pen, printed.chart, { x: pages.left, y: pages.y + 18, width: pages.width, height: chartHeight })
    pages.y += chartHeight + 32
  }
  for (const table of printed.tables) yield* drawTable(pen, pages, table)
  drawFooters(pen, pages, origin)
  return yield* finished(pdf, received)
})

const finished = (pdf: Document, received: ReadonlyArray<Uint8Array>) =>
  Effect.callback<Uint8Array>((resume) => {
    pdf.on("error", (error: unknown) => resume(Effect.die(error)))
    pdf.on("end", () => resume(Effect.succeed(Buffer.concat(received))))
    pdf.end()
  })

const makePages = (pdf: Document): Pages => {
  const [width, height] = [841.89, 595.28]
  let bottom = 0
  const pages: Pages = {
    left: margin,
    width: width - 2 * margin,
    y: 0,
    reserve: (wanted) => {
      if (pages.y + wanted <= bottom) return false
      pdf.addPage()
      bottom = height - margin - footerHeight
      pages.y = margin
      return true
    }
  }
  return pages
}

const drawHead = (pen: TextRenderer, pages: Pages, { facts, figures, title }: PdfModel) => {
  pen.write(title, pages.left, pages.y + titleStyle.size, titleStyle)
  pages.y += titleStyle.size + 12
  const names = Math.max(...facts.map(([name]) => pen.width(name, nameStyle))) + 12
  for (const [name, value] of facts) {
    pen.write(name, pages.left, pages.y + nameStyle.size, nameStyle)
    for (const line of pen.lines(value, valueStyle, pages.width - names, 4)) {
      pen.write(line, pages.left + names, pages.y + valueStyle.size, valueStyle)
      pages.y += valueStyle.size + 4
    }
  }
  pages.y += 8
  drawFigures(pen, pages, figures)
}

const drawFigures = (pen: TextRenderer, pages: Pages, figures: PdfModel["figures"]) => {
  const [space, height] = [8, 36]
  const width = (pages.width - space * (figures.length - 1)) / figures.length
  for (const [index, [name, value]] of figures.entries()) {
    const x = pages.left + index * (width + space)
    pen.pdf.rect(x, pages.y, width, height).fill(ink.panel)
    pen.write(name, x + 8, pages.y + 13, nameStyle)
    pen.write(value, x + 8, pages.y + 28, fitting(pen, value, width - 16))
  }
  pages.y += height + 16
}

/** As large as there is room for: a figure is never cut. */
const fitting = (pen: TextRenderer, value: string, room: number): Style => ({
  ...figureStyle,
  size: figureStyle.size * Math.min(1, room / pen.width(value, figureStyle))
})

const drawFooters = (pen: TextRenderer, pages: Pages, { digest, exportId }: Origin) => {
  const { count } = pen.pdf.bufferedPageRange()
  const y = 595.28 - margin
  for (let page = 0; page < count; page++) {
    pen.pdf.switchToPage(page)
    pen.write(`SHA-256 of the figures: ${digest}  ·  Export ${exportId}`, pages.left, y, footStyle)
    pen.write(`Page ${page + 1} of ${count}`, pages.left + pages.width, y, footStyle, "right")
    if (pen.lacked) {
      const why = `${mark} stands for a character that the fonts of the service do not have; csv and json hold it.`
      pen.write(why, pages.left, y - 9, footStyle)
    }
  }
}
