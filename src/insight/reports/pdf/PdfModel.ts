/** The content of a PDF report: its texts in order, without their positions. */
import type { Json } from "../../../contract/api/CanonicalJson.ts"

/** The maximum of rows of a printed table: about sixty pages. csv and json contain all rows. */
export const pdfRowsMax = 2_000

export interface Column {
  readonly label: string
  /** Numeric columns are aligned right. */
  readonly numeric: boolean
}

export interface Table {
  readonly title: string
  /** A note below the title. */
  readonly note?: string
  readonly columns: ReadonlyArray<Column>
  readonly rows: ReadonlyArray<ReadonlyArray<string>>
  /** The last line: totals over all rows, including those that are not printed. */
  readonly totals?: ReadonlyArray<string>
}

/** Usage over time. */
export interface Chart {
  readonly title: string
  /** Epoch milliseconds. */
  readonly from: number
  readonly to: number
  /** The duration of each bar, in milliseconds. */
  readonly step: number
  readonly bars: ReadonlyMap<number, bigint>
  /** The text of an instant below the bars. */
  readonly label: (instant: number) => string
}

export interface PdfModel {
  readonly title: string
  /** The subject, period and filters of the report. */
  readonly facts: ReadonlyArray<readonly [name: string, value: string]>
  /** The totals of the report. */
  readonly figures: ReadonlyArray<readonly [name: string, value: string]>
  readonly chart?: Chart
  readonly tables: ReadonlyArray<Table>
}

/** The text of a missing value. */
export const emptyCell = "–"

/** A whole number with thousands separators. */
export const groupDigits = (value: number | bigint): string => String(value).replace(/\B(?=(\d{3})+$)/g, ",")

/** An instant in UTC, without fractions of a second. */
export const utcSecond = (iso: string): string => iso.slice(0, 19).replace("T", " ")

/** The text of any value in a cell. */
export const cellText = (value: Json | undefined): string => {
  if (value === undefined || value === null) return emptyCell
  if (typeof value === "number") return Number.isSafeInteger(value) ? groupDigits(value) : String(value)
  if (typeof value === "boolean") return value ? "yes" : "no"
  return typeof value === "string" ? value : JSON.stringify(value)
}
