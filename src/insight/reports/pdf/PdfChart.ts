/** Draws usage over time as bars. Times without usage are gaps. */

import { type Chart, groupDigits } from "./PdfModel.ts"
import type { Style, TextRenderer } from "./TextRenderer.ts"

export interface Box {
  readonly x: number
  readonly y: number
  readonly width: number
  readonly height: number
}

const colors = { bar: "#3f6c94", line: "#d9dde1", text: "#5b6570" }
const tickStyle: Style = { face: "regular", size: 6.5, color: colors.text }
const labelHeight = 12
const barWidthMin = 0.4
const labelsMax = 8

export const drawChart = (renderer: TextRenderer, chart: Chart, box: Box) => {
  const highest = [...chart.bars.values()].reduce((most, value) => (value > most ? value : most), 1n)
  const axisMax = roundUpToTick(highest)
  const axis = renderer.width(groupDigits(axisMax), tickStyle) + 6
  const plot = { x: box.x + axis, y: box.y, width: box.width - axis, height: box.height - labelHeight }
  drawGridLines(renderer, axisMax, plot)
  const xAt = (instant: number) => plot.x + (plot.width * (instant - chart.from)) / (chart.to - chart.from)
  const width = Math.max(barWidthMin, (plot.width * chart.step * 0.8) / (chart.to - chart.from))
  for (const [start, value] of chart.bars) {
    const height = (plot.height * Number(value)) / Number(axisMax)
    const x = Math.min(Math.max(plot.x, xAt(start)), plot.x + plot.width - barWidthMin)
    const barWidth = Math.min(width, plot.x + plot.width - x)
    renderer.pdf.rect(x, plot.y + plot.height - height, barWidth, height).fill(colors.bar)
  }
  drawTimeLabels(renderer, chart, plot, xAt)
}

const drawGridLines = (renderer: TextRenderer, axisMax: bigint, plot: Box) => {
  for (const level of [0n, axisMax / 2n, axisMax]) {
    // Half of an odd number gets no label.
    if (level !== 0n && level !== axisMax && level * 2n !== axisMax) continue
    const y = plot.y + plot.height - (plot.height * Number(level)) / Number(axisMax)
    const { pdf } = renderer
    pdf.moveTo(plot.x, y)
    pdf
      .lineTo(plot.x + plot.width, y)
      .lineWidth(0.5)
      .stroke(colors.line)
    renderer.write(groupDigits(level), plot.x - 4, y + 2, tickStyle, "right")
  }
}

const drawTimeLabels = (
  renderer: TextRenderer,
  { from, label, step, to }: Chart,
  plot: Box,
  xAt: (instant: number) => number
) => {
  const width = renderer.width(label(from), tickStyle) + 14
  const labelCount = Math.max(1, Math.min(labelsMax, Math.floor(plot.width / width)))
  const stride = Math.max(1, Math.ceil((to - from) / step / labelCount)) * step
  for (let instant = from; instant < to; instant += stride) {
    const x = xAt(instant)
    if (x + width - 14 > plot.x + plot.width && instant !== from) continue
    renderer.write(label(instant), x, plot.y + plot.height + 9, tickStyle)
  }
}

/** The smallest of 1, 2, 5, 10, 20, 50, … that is not below the value. */
const roundUpToTick = (value: bigint): bigint => {
  for (let unit = 1n; ; unit *= 10n) {
    for (const factor of [1n, 2n, 5n]) if (unit * factor >= value) return unit * factor
  }
}
