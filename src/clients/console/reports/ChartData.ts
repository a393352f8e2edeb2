/** What a chart shows. */
import type { ReactNode } from "react"

export interface Series {
  readonly name: string
  /** One for each place; undefined where nothing was counted. */
  readonly values: ReadonlyArray<number | undefined>
}

export interface ChartData {
  readonly title: string
  /** What matters most, in a few words. */
  readonly told: ReactNode
  /** Bars stand for sums, on top of each other if they are parts of one; lines for states. */
  readonly kind: "bars" | "parts" | "lines"
  /** What the places are: days or weeks. */
  readonly placeName: string
  readonly places: ReadonlyArray<string>
  readonly series: ReadonlyArray<Series>
}
