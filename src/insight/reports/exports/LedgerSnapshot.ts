/**
 * The snapshot of a ledger export is canonical JSON: the text around its rows, and the rows restored from the CSV. A CSV
 * export needs the snapshot only for its digest, and the snapshot has twice as many bytes as the file. So the JSON of rows without
 * escaping is not stored, but restored from the CSV, which contains the same values.
 */
import { Effect, Schema } from "effect"
import type { SqlClient } from "effect/sql"
import { canonicalize } from "../../../contract/api/CanonicalJson.ts"
import { formatTimestamp } from "../../../contract/api/Timestamp.ts"
import { decodeFilters } from "../model/Filter.ts"
import { ReportPeriod } from "../model/Report.ts"
import { ledgerPeriodOf } from "../model/RequestChecks.ts"
import type { ExportRequest } from "./ExportContent.ts"
import { ledgerFields, ledgerNumbers } from "./LedgerText.ts"

/**
 * "rows" is the last name in canonical order, so the rows can follow the other members. It is the same for all nodes,
 * because no rows of the ledger are removed during an export.
 */
export const ledgerHead = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  { filters, generated_at, report_kind }: ExportRequest
) {
  const period = yield* ledgerPeriodOf(sql, yield* decodeFilters("usage-ledger", filters), generated_at)
  const head = canonicalize({
    filters,
    generated_at: formatTimestamp(generated_at),
    period: yield* Schema.encodeEffect(ReportPeriod)(period),
    report_kind
  })
  return `${head.slice(0, -1)},"rows":[`
}, Effect.orDie)

export const ledgerTail = "]}"

const openingBracket = 91
const numbers: ReadonlyArray<string> = ledgerNumbers

const members = ledgerFields
  .map((name, index) => ({ name, index, quote: numbers.includes(name) ? "" : '"' }))
  .toSorted((one, other) => (one.name < other.name ? -1 : 1))

export const snapshotRowOf = (line: string): string => {
  const cells = line.split(",")
  let text = ""
  for (const { index, name, quote } of members) {
    const cell = cells[index]
    if (cell === undefined || cell === "") continue
    text += `${text === "" ? "{" : ","}"${name}":${quote}${cell}${quote}`
  }
  return `${text}}`
}

/** Longer strings stay in memory until a full garbage collection. */
const textBytes = 16_384

/** Restores the snapshot from chunks of the CSV file, and from stored snapshot chunks where the CSV does not suffice. */
export class LedgerSnapshot {
  #rest = ""
  /** The next output: the text before the rows, the first row, or another row. */
  #next: "head" | "row" | "rows" = "head"
  #isWhole = false
  readonly #head: string

  constructor(head: string) {
    this.#head = head
  }

  fromSnapshot(bytes: Uint8Array): Uint8Array {
    // If only the head has been written, it ends with the bracket that opens the rows.
    if (bytes.length > 0) this.#next = bytes[bytes.length - 1] === openingBracket ? "row" : "rows"
    this.#isWhole = true
    return bytes
  }

  /** The last line of a chunk may continue in the next one. */
  fromCsv(bytes: Uint8Array): Uint8Array {
    this.#isWhole = false
    const parts: Array<Uint8Array> = []
    for (let start = 0; start < bytes.length; start += textBytes) {
      parts.push(Buffer.from(this.#rowsOf(bytes.subarray(start, start + textBytes))))
    }
    return Buffer.concat(parts)
  }

  #rowsOf(bytes: Uint8Array): string {
    const lines = (this.#rest + Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("latin1")).split(
      "\r\n"
    )
    this.#rest = lines.pop()!
    let text = ""
    for (const line of lines) {
      // The first line of the file contains the column names.
      text += this.#next === "head" ? this.#head : `${this.#next === "row" ? "" : ","}${snapshotRowOf(line)}`
      this.#next = this.#next === "head" ? "row" : "rows"
    }
    return text
  }

  end(): Uint8Array {
    return Buffer.from(this.#isWhole ? "" : ledgerTail)
  }
}
