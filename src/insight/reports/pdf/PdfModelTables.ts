import type { Json } from "../../../contract/api/CanonicalJson.ts"
import { type Column, cellText, emptyCell, groupDigits, pdfRowsMax, type Table, utcSecond } from "./PdfModel.ts"

export type Fields = { readonly [name: string]: Json }

const labels: { readonly [field: string]: string } = {
  max_after: "Maximum",
  max_consumptions: "Maximum",
  total_consumptions: "Consumed",
  created_at: "Time (UTC)",
  occurred_at: "Time (UTC)",
  topped_up: "Topped up",
  license_id: "License",
  feature_code: "Feature",
  bucket_start: "Time",
  ip_address: "Address"
}

export const labelOf = (field: string): string => {
  const words = field.replace(/_id$/, "").replaceAll("_", " ")
  return labels[field] ?? words.charAt(0).toUpperCase() + words.slice(1)
}

const numeric = new Set([
  ..."sequence amount balance_before balance_after max_after consumed consumptions reset topped_up licenses".split(" "),
  ..."reversed credits_used overage credits extra_credits".split(" "),
  ..."opening_balance restarted closing_balance max_consumptions total_consumptions remaining count".split(" ")
])

/** `cells` replaces the default format of a field. */
export const tableOf = (
  title: string,
  fields: ReadonlyArray<string>,
  rows: ReadonlyArray<Fields>,
  options: {
    readonly count?: number
    readonly totals?: Fields
    readonly cells?: { [field: string]: CellFormatter }
  } = {}
): Table => {
  const { cells = {}, count = rows.length, totals } = options
  const columns: ReadonlyArray<Column> = fields.map((field) => ({ label: labelOf(field), numeric: numeric.has(field) }))
  const cellOf = (row: Fields, field: string) => (cells[field] ?? defaultCell)(row[field])
  const printedRows = rows.slice(0, pdfRowsMax)
  return {
    title,
    ...(count > printedRows.length ? { note: truncationNote(printedRows.length, count) } : undefined),
    columns,
    rows: printedRows.map((row) => fields.map((field) => cellOf(row, field))),
    ...(totals === undefined ? undefined : { totals: totalCells(fields, totals) })
  }
}
export type CellFormatter = (value: Json | undefined) => string

const defaultCell: CellFormatter = (value) => cellText(value)
export const timeCell: CellFormatter = (value) => (typeof value === "string" ? utcSecond(value) : emptyCell)
// Sequence numbers identify rows: they have no thousands separators.
export const identifierCell: CellFormatter = (value) => (typeof value === "number" ? String(value) : cellText(value))

const truncationNote = (printedRows: number, count: number): string =>
  `The first ${groupDigits(printedRows)} of ${groupDigits(count)} rows. Totals include all rows; csv and json contain all rows.`

const totalCells = (fields: ReadonlyArray<string>, totals: Fields): ReadonlyArray<string> => {
  const cells = fields.map((field) => (totals[field] === undefined ? "" : cellText(totals[field])))
  return cells[0] === "" ? ["Total", ...cells.slice(1)] : cells
}
