/**
 * Draws a report as a PDF: its subject, its totals, a chart if it has buckets of time, its tables, and on each page the page number
 * and the digest of the figures. What must stay true: the same figures give the same bytes, independent of time and machine.
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
  type Pages,
  replacementMark,
  type Style,
  type TextRenderer
} from "./TextRenderer.ts"

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
const colors = { title: "#1c2733", text: "#27313b", faint: "#5b6570", panel: "#f2f4f6" }
const titleStyle: Style = { face: "bold", size: 17, color: colors.title }
const nameStyle: Style = { face: "regular", size: 7.5, color: colors.faint }
const valueStyle: Style = { face: "regular", size: 7.5, color: colors.text }
const figureStyle: Style = { face: "bold", size: 12, color: colors.title }
const chartStyle: Style = { face: "bold", size: 9, color: colors.title }
const footerStyle: Style = { face: "regular", size: 6, color: colors.faint }

export const drawPdf = Effect.fnUntraced(function* (model: PdfModel, origin: Origin, fonts: Fonts) {
  const pdf = new PDFDocument({
    size: "A4",
    layout: "landscape",
    margin: 0,
    bufferPages: true,
    autoFirstPage: false,
    pdfVersion: "1.7",
    lang: "en",
    displayTitle: true,
    info: { Title: model.title, Creator: "licensing-service", CreationDate: new Date(origin.generatedAt) }
  })
  const chunks: Array<Uint8Array> = []
  pdf.on("data", (bytes: Uint8Array) => chunks.push(bytes))
  const renderer = makeTextRenderer(pdf, fonts)
  const pages = makePages(pdf)
  pages.reserve(Number.POSITIVE_INFINITY)
  drawHeader(renderer, pages, model)
  if (model.chart !== undefined) {
    pages.reserve(chartHeight + 30)
    renderer.write(model.chart.title, pages.left, pages.y + chartStyle.size, chartStyle)
    drawChart(renderer, model.chart, { x: pages.left, y: pages.y + 18, width: pages.width, height: chartHeight })
    pages.y += chartHeight + 32
  }
  for (const table of model.tables) yield* drawTable(renderer, pages, table)
  drawFooters(renderer, pages, origin)
  return yield* finishPdf(pdf, chunks)
})

const finishPdf = (pdf: Document, chunks: ReadonlyArray<Uint8Array>) =>
  Effect.callback<Uint8Array>((resume) => {
    pdf.on("error", (error: unknown) => resume(Effect.die(error)))
    pdf.on("end", () => resume(Effect.succeed(Buffer.concat(chunks))))
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

const drawHeader = (renderer: TextRenderer, pages: Pages, { facts, figures, title }: PdfModel) => {
  renderer.write(title, pages.left, pages.y + titleStyle.size, titleStyle)
  pages.y += titleStyle.size + 12
  const nameWidth = Math.max(...facts.map(([name]) => renderer.width(name, nameStyle))) + 12
  for (const [name, value] of facts) {
    renderer.write(name, pages.left, pages.y + nameStyle.size, nameStyle)
    for (const line of renderer.lines(value, valueStyle, pages.width - nameWidth, 4)) {
      renderer.write(line, pages.left + nameWidth, pages.y + valueStyle.size, valueStyle)
      pages.y += valueStyle.size + 4
    }
  }
  pages.y += 8
  drawFigures(renderer, pages, figures)
}

const drawFigures = (renderer: TextRenderer, pages: Pages, figures: PdfModel["figures"]) => {
  const [space, height] = [8, 36]
  const width = (pages.width - space * (figures.length - 1)) / figures.length
  for (const [index, [name, value]] of figures.entries()) {
    const x = pages.left + index * (width + space)
    renderer.pdf.rect(x, pages.y, width, height).fill(colors.panel)
    renderer.write(name, x + 8, pages.y + 13, nameStyle)
    renderer.write(value, x + 8, pages.y + 28, fittingStyle(renderer, value, width - 16))
  }
  pages.y += height + 16
}

/** The largest size that fits: a figure is never truncated. */
const fittingStyle = (renderer: TextRenderer, value: string, available: number): Style => ({
  ...figureStyle,
  size: figureStyle.size * Math.min(1, available / renderer.width(value, figureStyle))
})

const drawFooters = (renderer: TextRenderer, pages: Pages, { digest, exportId }: Origin) => {
  const { count } = renderer.pdf.bufferedPageRange()
  const y = 595.28 - margin
  for (let page = 0; page < count; page++) {
    renderer.pdf.switchToPage(page)
    renderer.write(`SHA-256 of the figures: ${digest}  ·  Export ${exportId}`, pages.left, y, footerStyle)
    renderer.write(`Page ${page + 1} of ${count}`, pages.left + pages.width, y, footerStyle, "right")
    if (renderer.hasMissingGlyph) {
      const why = `${replacementMark} stands for a character that the service's fonts lack; csv and json contain it.`
      renderer.write(why, pages.left, y - 9, footerStyle)
    }
  }
}
