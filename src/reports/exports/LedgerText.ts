/**
 * Rows of the ledger as canonical JSON and as CSV, written straight from what the database gives: exports write millions of them,
 * and the general way over the schema takes five times as long. The schema still says which fields there are, and tests hold the
 * two ways to the same bytes.
 */
import { canonicalize } from "../../api/CanonicalJson.ts"
import { formatTimestamp } from "../../api/Timestamp.ts"
import type { Row } from "../../postgres/Sql.ts"
import { UsageLedgerRow } from "../model/Report.ts"
import { type Cell, csvLine } from "./Csv.ts"

export type LedgerRow = Row<UsageLedgerRow>
type Value = string | number | null | undefined

export const ledgerFields = Object.keys(UsageLedgerRow.fields) as ReadonlyArray<keyof UsageLedgerRow>

/** The fields that are numbers; all others are texts. */
export const ledgerNumbers = ["sequence", "amount", "balance_before", "balance_after", "max_after"] as const

const members = ledgerFields.toSorted().map((name) => ({ name, lead: `"${name}":` }))

/** A field as it is shown: times as texts. */
const shown = (row: LedgerRow, name: keyof UsageLedgerRow): Value =>
  name === "occurred_at" ? formatTimestamp(row.occurred_at as number) : (row[name] as Value)

export const ledgerJson = (row: LedgerRow): string => {
  let text = ""
  for (const { lead, name } of members) {
    const value = shown(row, name)
    if (value === null || value === undefined) continue
    text += `${text === "" ? "{" : ","}${lead}${typeof value === "number" ? value : canonicalize(value)}`
  }
  return `${text}}`
}

export const ledgerCsv = (row: LedgerRow): string => csvLine(ledgerFields.map((name) => shown(row, name) as Cell))
