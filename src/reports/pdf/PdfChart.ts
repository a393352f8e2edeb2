/** Usage over time as bars, each where its time is: what had no usage is a gap. */

import { type Chart, grouped } from "./PdfModel.ts"
import type { Style, TextRenderer } from "./TextRenderer.ts"

export interface Box {
  readonly x: number
  readonly y: number
  readonly width: number
  readonly height: number
}

const ink = { bar: "#3f6c94", line: "#d9dde1", text: "#5b6570" }
const tick: Style = { face: "regular", size: 6.5, color: ink.text }
const below = 12
const barWidthMin = 0.4
const marksMax = 8

export const drawChart = (pen: TextRenderer, chart: Chart, box: Box) => {
  const highest = [...chart.bars.values()].reduce((most, value) => (value > most ? value : most), 1n)
  const top = niceAbove(highest)
  const axis = pen.width(grouped(top), tick) + 6
  const plot = { x: box.x + axis, y: box.y, width: box.width - axis, height: box.height - below }
  drawLevels(pen, top, plot)
  const across = (instant: number) => plot.x + (plot.width * (instant - chart.from)) / (chart.to - chart.from)
  const width = Math.max(barWidthMin, (plot.width * chart.step * 0.8) / (chart.to - chart.from))
  for (const [start, value] of chart.bars) {
    const height = (plot.height * Number(value)) / Number(top)
    const x = Math.min(Math.max(plot.x, across(start)), plot.x + plot.width - barWidthMin)
    const wide = Math.min(width, plot.x + plot.width - x)
    pen.pdf.rect(x, plot.y + plot.height - height, wide, height).fill(ink.bar)
  }
  drawTimes(pen, chart, plot, across)
}

const drawLevels = (pen: TextRenderer, top: bigint, plot: Box) => {
  for (const level of [0n, top / 2n, top]) {
    // Of an odd number there is no half to write down.
    if (level !== 0n && level !== top && level * 2n !== top) continue
    const y = plot.y + plot.height - (plot.height * Number(level)) / Number(top)
    const { pdf } = pen
    pdf.moveTo(plot.x, y)
    pdf
      .lineTo(plot.x + plot.width, y)
      .lineWidth(0.5)
      .stroke(ink.line)
    pen.write(grouped(level), plot.x - 4, y + 2, tick, "right")
  }
}

/** Names some of the bars' times, as many as have room. */
const drawTimes = (
  pen: TextRenderer,
  { from, label, step, to }: Chart,
  plot: Box,
  across: (instant: number) => number
) => {
  const width = pen.width(label(from), tick) + 14
  const marks = Math.max(1, Math.min(marksMax, Math.floor(plot.width / width)))
  const stride = Math.max(1, Math.ceil((to - from) / step / marks)) * step
  for (let instant = from; instant < to; instant += stride) {
    const x = across(instant)
    if (x + width - 14 > plot.x + plot.width && instant !== from) continue
    pen.write(label(instant), x, plot.y + plot.height + 9, tick)
  }
}

/** The next of 1, 2, 5, 10, 20, 50, … that is not below. */
const niceAbove = (value: bigint): bigint => {
  for (let unit = 1n; ; unit *= 10n) {
    for (const factor of [1n, 2n, 5n]) if (unit * factor >= value) return unit * factor
  }
}
