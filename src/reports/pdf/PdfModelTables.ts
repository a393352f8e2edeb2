/** Fields of a report's rows as the columns of a printed table. */
import type { Json } from "../../api/CanonicalJson.ts"
import { absent, type Column, cellText, grouped, pdfRowsMax, type Table, utcSecond } from "./PdfModel.ts"

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
  ..."opening_balance restarted closing_balance max_consumptions total_consumptions remaining count".split(" ")
])

/** A table of some fields of rows; what is written of a field may be said otherwise. */
export const tableOf = (
  title: string,
  fields: ReadonlyArray<string>,
  rows: ReadonlyArray<Fields>,
  more: { readonly count?: number; readonly totals?: Fields; readonly cells?: { [field: string]: Cell } } = {}
): Table => {
  const { cells = {}, count = rows.length, totals } = more
  const columns: ReadonlyArray<Column> = fields.map((field) => ({ label: labelOf(field), numeric: numeric.has(field) }))
  const cellOf = (row: Fields, field: string) => (cells[field] ?? plain)(row[field])
  const kept = rows.slice(0, pdfRowsMax)
  return {
    title,
    ...(count > kept.length ? { note: cutNote(kept.length, count) } : undefined),
    columns,
    rows: kept.map((row) => fields.map((field) => cellOf(row, field))),
    ...(totals === undefined ? undefined : { totals: totalCells(fields, totals) })
  }
}
export type Cell = (value: Json | undefined) => string

const plain: Cell = (value) => cellText(value)
export const asTime: Cell = (value) => (typeof value === "string" ? utcSecond(value) : absent)
// Sequence numbers name rows: their thousands are not told apart.
export const asName: Cell = (value) => (typeof value === "number" ? String(value) : cellText(value))

const cutNote = (kept: number, count: number): string =>
  `The first ${grouped(kept)} of ${grouped(count)} rows. Totals are of all rows; csv and json hold every one.`

const totalCells = (fields: ReadonlyArray<string>, totals: Fields): ReadonlyArray<string> => {
  const cells = fields.map((field) => (totals[field] === undefined ? "" : cellText(totals[field])))
  return cells[0] === "" ? ["Total", ...cells.slice(1)] : cells
}
