/** The content of a PDF report: its texts in order, without their positions. */
import type { Json } from "../../../contract/api/CanonicalJson.ts"

/** About sixty pages. csv and json contain all rows. */
export const pdfRowsMax = 2_000

export interface Column {
  readonly label: string
  readonly numeric: boolean
}

export interface Table {
  readonly title: string
  readonly note?: string
  readonly columns: ReadonlyArray<Column>
  readonly rows: ReadonlyArray<ReadonlyArray<string>>
  /** Totals of all rows, including those that are not printed. */
  readonly totals?: ReadonlyArray<string>
}

export interface Chart {
  readonly title: string
  /** Epoch milliseconds. */
  readonly from: number
  readonly to: number
  /** The duration of each bar, in milliseconds. */
  readonly step: number
  readonly bars: ReadonlyMap<number, bigint>
  readonly label: (instant: number) => string
}

export interface PdfModel {
  readonly title: string
  readonly facts: ReadonlyArray<readonly [name: string, value: string]>
  readonly figures: ReadonlyArray<readonly [name: string, value: string]>
  readonly chart?: Chart
  readonly tables: ReadonlyArray<Table>
}

export const emptyCell = "–"

export const groupDigits = (value: number | bigint): string => String(value).replace(/\B(?=(\d{3})+$)/g, ",")

export const utcSecond = (iso: string): string => iso.slice(0, 19).replace("T", " ")

export const cellText = (value: Json | undefined): string => {
  if (value === undefined || value === null) return emptyCell
  if (typeof value === "number") return Number.isSafeInteger(value) ? groupDigits(value) : String(value)
  if (typeof value === "boolean") return value ? "yes" : "no"
  return typeof value === "string" ? value : JSON.stringify(value)
}
