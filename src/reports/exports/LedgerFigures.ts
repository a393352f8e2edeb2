/**
 * The figures of an export of the ledger as canonical JSON: what stands around its rows, and rows that are read back from the CSV.
 * Only rows without anything to escape are: of them the CSV says all that the JSON does, and figures that are needed but for
 * their digest are not stored beside it, which would be twice as many bytes as the file.
 */
import { Effect } from "effect"
import { canonicalize } from "../../api/CanonicalJson.ts"
import { formatTimestamp } from "../../api/Timestamp.ts"
import { decodeFilters } from "../model/Filter.ts"
import { periodOf } from "../model/RequestChecks.ts"
import type { ExportRequest } from "./ExportContent.ts"
import { ledgerFields, ledgerNumbers } from "./LedgerText.ts"

/** The text before the rows. "rows" is the last name in the canonical order, so that they can follow whatever comes before. */
export const ledgerHead = Effect.fnUntraced(function* ({ filters, generated_at, report_kind }: ExportRequest) {
  const { from, to } = yield* periodOf(yield* Effect.orDie(decodeFilters("usage-ledger", filters)), generated_at)
  const period = { ...(from === undefined ? undefined : { from: formatTimestamp(from) }), to: formatTimestamp(to) }
  const head = canonicalize({ filters, generated_at: formatTimestamp(generated_at), period, report_kind })
  return `${head.slice(0, -1)},"rows":[`
})

/** The text behind the rows. */
export const ledgerTail = "]}"

const openingBracket = 91
const numbers: ReadonlyArray<string> = ledgerNumbers

const members = ledgerFields
  .map((name, index) => ({ name, index, quote: numbers.includes(name) ? "" : '"' }))
  .toSorted((one, other) => (one.name < other.name ? -1 : 1))

/** The JSON of a line of CSV in which nothing is quoted or defused. */
export const figuresOfLine = (line: string): string => {
  const cells = line.split(",")
  let text = ""
  for (const { index, name, quote } of members) {
    const cell = cells[index]
    if (cell === undefined || cell === "") continue
    text += `${text === "" ? "{" : ","}"${name}":${quote}${cell}${quote}`
  }
  return `${text}}`
}

/**
 * Whether the JSON of rows can be read back from their CSV: all is ASCII, no cell is quoted, none has an apostrophe, which
 * defuses formulas, nothing is escaped in JSON, and no text is empty, which CSV shows like a missing one.
 */
export const isReadableFromCsv = (json: string, csv: string): boolean =>
  Buffer.byteLength(json) === json.length &&
  !csv.includes('"') &&
  !csv.includes("'") &&
  !json.includes("\\") &&
  !json.includes(':""')

/** Bytes that are made a text of at once: longer texts are kept until all memory is collected. */
const textBytes = 16_384

/** Puts the figures together again, from chunks of the file and from figures that are stored where the file does not tell them. */
export class LedgerFigures {
  #rest = ""
  /** How they go on: with what stands before the rows, with the first row, or with another one. */
  #next: "head" | "row" | "rows" = "head"
  #isWhole = false
  readonly #head: string

  constructor(head: string) {
    this.#head = head
  }

  /** Figures as they are stored. */
  stored(bytes: Uint8Array): Uint8Array {
    // Behind the head without a row stands the bracket that opens them.
    if (bytes.length > 0) this.#next = bytes[bytes.length - 1] === openingBracket ? "row" : "rows"
    this.#isWhole = true
    return bytes
  }

  /** The figures of what ends in this chunk of the file; its last line may go on in the next one. */
  told(bytes: Uint8Array): Uint8Array {
    this.#isWhole = false
    const parts: Array<Uint8Array> = []
    for (let start = 0; start < bytes.length; start += textBytes) {
      parts.push(Buffer.from(this.#figuresOf(bytes.subarray(start, start + textBytes))))
    }
    return Buffer.concat(parts)
  }

  #figuresOf(bytes: Uint8Array): string {
    const lines = (this.#rest + Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("latin1")).split(
      "\r\n"
    )
    this.#rest = lines.pop()!
    let text = ""
    for (const line of lines) {
      // The first line of the file has the names of its columns.
      text += this.#next === "head" ? this.#head : `${this.#next === "row" ? "" : ","}${figuresOfLine(line)}`
      this.#next = this.#next === "head" ? "row" : "rows"
    }
    return text
  }

  /** What is behind the last row. */
  end(): Uint8Array {
    return Buffer.from(this.#isWhole ? "" : ledgerTail)
  }
}
