/** A report as it is printed: texts, in their order, with nothing about where on a page they stand. */
import type { Json } from "../../api/CanonicalJson.ts"

/** Rows of a table that are printed: about sixty pages. Who needs more reads them with a program, and takes csv or json. */
export const pdfRowsMax = 2_000

export interface Column {
  readonly label: string
  /** Figures stand in line at their last digit. */
  readonly numeric: boolean
}

export interface Table {
  readonly title: string
  /** What is said of the table below its title. */
  readonly note?: string
  readonly columns: ReadonlyArray<Column>
  readonly rows: ReadonlyArray<ReadonlyArray<string>>
  /** The last line, over all rows, the ones left out too. */
  readonly totals?: ReadonlyArray<string>
}

/** Usage over time. */
export interface Chart {
  readonly title: string
  /** Epoch milliseconds. */
  readonly from: number
  readonly to: number
  /** How long each bar's time is. */
  readonly step: number
  readonly bars: ReadonlyMap<number, bigint>
  /** An instant as it is written below the bars. */
  readonly label: (instant: number) => string
}

export interface PdfModel {
  readonly title: string
  /** What the report is about, of and from. */
  readonly facts: ReadonlyArray<readonly [name: string, value: string]>
  /** What it comes to. */
  readonly figures: ReadonlyArray<readonly [name: string, value: string]>
  readonly chart?: Chart
  readonly tables: ReadonlyArray<Table>
}

/** How what is not there is printed. */
export const absent = "–"

/** A whole number with its thousands apart, all its digits shown. */
export const grouped = (value: number | bigint): string => String(value).replace(/\B(?=(\d{3})+$)/g, ",")

/** An instant, to the second, in UTC. */
export const utcSecond = (iso: string): string => iso.slice(0, 19).replace("T", " ")

/** Any value in a cell. */
export const cellText = (value: Json | undefined): string => {
  if (value === undefined || value === null) return absent
  if (typeof value === "number") return Number.isSafeInteger(value) ? grouped(value) : String(value)
  if (typeof value === "boolean") return value ? "yes" : "no"
  return typeof value === "string" ? value : JSON.stringify(value)
}
