/**
 * Rows of the ledger as canonical JSON and as CSV, copied byte by byte from what the database sends: exports write millions of
 * them. A row with a text that needs an escape is written by `LedgerText.ts`, which says what every row looks like; tests hold
 * both to the same bytes.
 */
import { formatTimestamp } from "../../api/Timestamp.ts"
import { ByteText, utf8 } from "./ByteText.ts"
import type { IdTable } from "./IdTable.ts"
import { known, type LedgerLinks, plain } from "./LedgerLinks.ts"
import { type LedgerRecords, type Name, place } from "./LedgerRecords.ts"
import { type LedgerRow, ledgerCsv, ledgerFields, ledgerJson, ledgerNumbers } from "./LedgerText.ts"
import { isPlain } from "./PlainText.ts"

/** What the links of a row must be; rows of others are left out. */
export interface Wanted {
  readonly customer_id?: string | undefined
  readonly feature_code?: string | undefined
}

/** Names, quotes and commas of a row, its numbers and its time: less than this in either form. */
const fixedBytes = 1_024
const dayMillis = 86_400_000
/** What the figures of a piece of the usual size take. */
const capacity = 1_310_720

const texts = (["action", "event_id", "device_id", "actor_type", "actor_id", "request_id"] as const).map(
  (name) => place[name]
)

/** What comes before a member's value in the JSON, for a text with its opening quote. */
const leads = Object.fromEntries(
  ledgerFields.map((name) => [
    name,
    utf8(
      `${name === "action" ? "{" : ","}"${name}":${(ledgerNumbers as ReadonlyArray<string>).includes(name) ? "" : '"'}`
    )
  ])
) as { readonly [K in (typeof ledgerFields)[number]]: Uint8Array }

const quote = 34
const comma = 44
const closingBrace = 125
const lineEnd = utf8("\r\n")

export class LedgerWriter {
  readonly json = new ByteText(capacity)
  /** Where the CSV goes; none where only the figures are wanted. */
  csv: ByteText | undefined
  /** Rows that were written since the last `begin`. */
  rows = 0
  /** Whether the figures of these rows can be read back from the CSV. */
  told = true
  readonly #licenses: IdTable
  readonly #features: IdTable
  readonly #wanted: { readonly customer: Uint8Array | undefined; readonly feature: Uint8Array | undefined }
  readonly #day = { number: Number.NaN, text: utf8("") }

  constructor(links: LedgerLinks, { customer_id, feature_code }: Wanted) {
    this.#licenses = links.licenses
    this.#features = links.features
    this.#wanted = {
      customer: customer_id === undefined ? undefined : utf8(customer_id),
      feature: feature_code === undefined ? undefined : utf8(feature_code)
    }
  }

  begin(csv: ByteText | undefined): void {
    this.json.clear()
    this.csv = csv
    this.rows = 0
    this.told = true
  }

  /** Writes at most so many rows, whose links are all looked up, behind others or not; false where there were no more. */
  write(rows: LedgerRecords, most: number, follow: boolean): boolean {
    for (let count = 0; count < most; count++) {
      if (!rows.next()) return false
      const license = this.#licenses.find(rows.bytes, rows.start(place.license_id), rows.size(place.license_id))
      const feature = this.#features.find(rows.bytes, rows.start(place.feature_id), rows.size(place.feature_id))
      if (!this.#isWanted(license, feature)) continue
      const room = fixedBytes + rows.length + this.#licenses.length(license) + this.#features.length(feature)
      this.json.reserve(room)
      this.csv?.reserve(room)
      if (this.rows++ > 0 || follow) this.json.byte(comma)
      const arePlain =
        (this.#licenses.mark(license) & this.#features.mark(feature) & plain) !== 0 && arePlainTexts(rows)
      if (arePlain) this.#copy(rows, license, feature)
      else this.#spell(rows, license, feature)
    }
    return true
  }

  #isWanted(license: number, feature: number): boolean {
    const { customer, feature: code } = this.#wanted
    return (
      (this.#licenses.mark(license) & known) !== 0 &&
      (customer === undefined || this.#licenses.isText(license, 2, customer)) &&
      (code === undefined || this.#features.isText(feature, 1, code))
    )
  }

  /** A row without anything to escape. */
  #copy(rows: LedgerRecords, license: number, feature: number): void {
    const at = rows.instant(place.occurred_at)
    this.#copyJson(rows, at, license, feature)
    if (this.csv !== undefined) this.#copyCsv(this.csv, rows, at, license, feature)
  }

  #copyJson(rows: LedgerRecords, at: number, license: number, feature: number): void {
    const [licenses, features] = [this.#licenses, this.#features]
    const licenseId = licenses.first(license)
    const product = licenses.next(licenseId)
    const customer = licenses.next(product)
    const order = licenses.next(customer)
    const featureId = features.first(feature)
    this.#text("action", rows)
    this.#text("actor_id", rows)
    this.#text("actor_type", rows)
    this.#number("amount", rows)
    this.#number("balance_after", rows)
    this.#number("balance_before", rows)
    this.#link(leads.customer_id, licenses, customer)
    this.#text("device_id", rows)
    this.#text("event_id", rows)
    this.#link(leads.feature_code, features, features.next(featureId))
    this.#link(leads.feature_id, features, featureId)
    this.#link(leads.license_id, licenses, licenseId)
    this.#number("max_after", rows)
    this.json.bytes(leads.occurred_at)
    this.#time(this.json, at)
    this.json.byte(quote)
    this.#link(leads.order_id, licenses, order)
    this.#link(leads.product_id, licenses, product)
    this.#text("request_id", rows)
    this.#number("sequence", rows)
    this.#link(leads.subscription_id, licenses, licenses.next(order))
    this.json.byte(closingBrace)
  }

  #copyCsv(csv: ByteText, rows: LedgerRecords, at: number, license: number, feature: number): void {
    cell(csv, rows, "sequence")
    this.#time(csv, at)
    csv.byte(comma)
    cell(csv, rows, "action")
    cell(csv, rows, "event_id")
    cells(csv, this.#licenses, license, 5)
    cells(csv, this.#features, feature, 2)
    cell(csv, rows, "amount")
    cell(csv, rows, "balance_before")
    cell(csv, rows, "balance_after")
    cell(csv, rows, "max_after")
    cell(csv, rows, "device_id")
    cell(csv, rows, "actor_type")
    cell(csv, rows, "actor_id")
    copyText(csv, rows, place.request_id)
    csv.bytes(lineEnd)
  }

  #text(name: Name, rows: LedgerRecords): void {
    if (rows.size(place[name]) < 0) return
    this.json.bytes(leads[name])
    copyText(this.json, rows, place[name])
    this.json.byte(quote)
  }

  #number(name: Name, rows: LedgerRecords): void {
    if (rows.size(place[name]) < 0) return
    this.json.bytes(leads[name])
    this.json.integer(rows.integer(place[name]))
  }

  #link(lead: Uint8Array, table: IdTable, at: number): void {
    const size = table.size(at)
    if (size < 0) return
    this.json.bytes(lead)
    this.json.copy(table.bytes, table.start(at), size)
    this.json.byte(quote)
  }

  /** As `formatTimestamp` writes it: rows follow one another in time, so most are of the day of the one before. */
  #time(to: ByteText, millis: number): void {
    const day = Math.floor(millis / dayMillis)
    if (day !== this.#day.number) {
      this.#day.number = day
      this.#day.text = utf8(formatTimestamp(day * dayMillis).slice(0, -"00:00:00.000Z".length))
    }
    to.bytes(this.#day.text)
    to.timeOfDay(millis - day * dayMillis)
  }

  /** Any row, as `LedgerText.ts` says. */
  #spell(rows: LedgerRecords, license: number, feature: number): void {
    const [license_id, product_id, customer_id, order_id, subscription_id] = this.#licenses.texts(license, 5)
    const [feature_id, feature_code] = this.#features.texts(feature, 2)
    const row = {
      ...Object.fromEntries(
        ledgerNumbers.map((name) => [name, rows.size(place[name]) < 0 ? null : rows.integer(place[name])])
      ),
      ...Object.fromEntries(texts.map((field) => [rows.name(field), rows.text(field)])),
      ...{ license_id, product_id, customer_id, order_id, subscription_id, feature_id, feature_code },
      occurred_at: rows.instant(place.occurred_at)
    } as unknown as LedgerRow
    this.told = false
    this.json.text(ledgerJson(row))
    this.csv?.text(ledgerCsv(row))
  }
}

const arePlainTexts = (rows: LedgerRecords): boolean => {
  for (const field of texts) {
    const size = rows.size(field)
    if (size >= 0 && !isPlain(rows.bytes, rows.start(field), size)) return false
  }
  return true
}

const copyText = (to: ByteText, rows: LedgerRecords, field: number): void =>
  to.copy(rows.bytes, rows.start(field), rows.size(field))

const isNumber = Object.fromEntries(ledgerNumbers.map((name) => [name, true])) as { readonly [K in Name]?: true }

/** A field with the comma behind it. */
const cell = (to: ByteText, rows: LedgerRecords, name: Name): void => {
  const field = place[name]
  if (rows.size(field) >= 0) {
    if (isNumber[name] === true) to.integer(rows.integer(field))
    else copyText(to, rows, field)
  }
  to.byte(comma)
}

/** The texts of an entry, each with a comma behind it. */
const cells = (to: ByteText, table: IdTable, entry: number, count: number): void => {
  for (let [index, at] = [0, table.first(entry)]; index < count; index++, at = table.next(at)) {
    const size = table.size(at)
    if (size > 0) to.copy(table.bytes, table.start(at), size)
    to.byte(comma)
  }
}
