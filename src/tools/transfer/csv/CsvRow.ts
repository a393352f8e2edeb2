/** The columns of a CSV file of licenses, and their values. */
import { Option, Result, Schema, Struct } from "effect"
import { Metadata } from "../../../contract/api/Metadata.ts"
import { Code, Email, Name } from "../../../contract/api/Text.ts"
import { parseTimestamp } from "../../../contract/api/Timestamp.ts"
import * as LicenseKey from "../../../licensing/model/LicenseKey.ts"
import { type LimitName, limitNames } from "../../../licensing/model/Limits.ts"
import { licenseLimits } from "../../../vendor/policies/Policy.ts"
import { decodeFields } from "../LicenseUnits.ts"
import type { Fault } from "../Lines.ts"
import type { CsvRecord } from "./CsvText.ts"
import { nearest } from "./Nearest.ts"

const needed = ["license_key", "product", "policy"] as const
const texts = ["customer", "customer_name", "customer_email", "status"] as const
const instants = ["starts_at", "expires_at", "maintenance_expires_at", "created_at"] as const
const known: ReadonlySet<string> = new Set([...needed, ...texts, ...instants, ...limitNames])
const metadataPrefix = "metadata."

const Row = Schema.Struct({
  license_key: Schema.String,
  product: Code,
  policy: Code,
  customer: Schema.optionalKey(Code),
  customer_name: Schema.optionalKey(Name),
  customer_email: Schema.optionalKey(Email),
  status: Schema.optionalKey(Schema.Literals(["active", "suspended"])),
  starts_at: Schema.optionalKey(Schema.Number),
  expires_at: Schema.optionalKey(Schema.Number),
  maintenance_expires_at: Schema.optionalKey(Schema.Number),
  created_at: Schema.optionalKey(Schema.Number),
  ...Struct.map(licenseLimits, Schema.optionalKey),
  metadata: Metadata
})

/** A license of the file. */
export interface CsvLicense extends Omit<typeof Row.Type, "license_key"> {
  readonly line: number
  readonly license_key: LicenseKey.LicenseKey
}

const decode = decodeFields(Row)

/** The columns here by the file's, as `--map` sets them. */
export type ColumnMap = Readonly<Record<string, string>>

/** What a column is mapped onto that is not imported. */
export const leftOut = "-"

const columnOf = (name: string): string => {
  const lower = name.toLowerCase()
  return lower.startsWith(metadataPrefix) ? metadataPrefix + name.slice(metadataPrefix.length) : lower
}

/** The columns that the first line names, in any case unless they are mapped. Names of metadata keep theirs. */
export const columnsOf = (fields: ReadonlyArray<string>, map: ColumnMap): ReadonlyArray<string> =>
  fields.map((field) => {
    const name = field.trim()
    return columnOf(Object.hasOwn(map, name) ? map[name]! : name)
  })

const isKnown = (name: string) => name === leftOut || known.has(name) || name.startsWith(metadataPrefix)

/** The fields of the first line that name no column here, each with the nearest one. */
const unknownColumns = (fields: ReadonlyArray<string>, map: ColumnMap) =>
  columnsOf(fields, map).flatMap((name, index) =>
    isKnown(name) ? [] : [{ field: fields[index]!.trim(), name, nearest: nearest(name, [...known]) }]
  )

/** Decoders put U+FFFD where bytes are no character. A file that has it was damaged when it was saved. */
const isDamaged = (text: string): boolean => text.includes("\uFFFD")
const damaged = "It is not UTF-8: save the file as CSV UTF-8, or name its encoding with --encoding windows-1252."

/** Columns that one message names. */
const unknownShown = 20

/** What is wrong with the first record, which names the columns. */
export const refuseColumns = (fields: ReadonlyArray<string>, map: ColumnMap): string | undefined => {
  const names = columnsOf(fields, map)
  if (names.some(isDamaged)) return `line 1: ${damaged}`
  const given = new Set(fields.map((field) => field.trim()))
  const absent = Object.keys(map).find((field) => !given.has(field))
  if (absent !== undefined) return `The file has no column ${JSON.stringify(absent)}: correct --map.`
  // Without a first line of names the fields are values, which may be keys.
  const isHeader = names.some(isKnown)
  const unknown = unknownColumns(fields, map)
    .filter(({ nearest }) => isHeader || nearest !== undefined)
    .slice(0, unknownShown)
    .map(unknownColumn)
  const missing = needed.find((name) => !names.includes(name))
  if (missing !== undefined) {
    const first = `The column ${missing} is missing: the first line names the columns, separated by commas, semicolons or tabs.`
    return [first, ...unknown].join("\n")
  }
  if (unknown.length > 0) return [...unknown, "docs/guides/import-csv.md lists the columns."].join("\n")
  const forbidden = names.find((name) => name === `${metadataPrefix}__proto__`)
  if (forbidden !== undefined) return `The column ${forbidden} cannot be metadata: rename it.`
  const repeated = names.find((name, index) => name !== leftOut && names.indexOf(name) !== index)
  return repeated === undefined ? undefined : `The column ${repeated} is there twice.`
}

const unknownColumn = ({ field, name, nearest }: ReturnType<typeof unknownColumns>[number]): string => {
  const target = nearest ?? `${metadataPrefix}${name.replaceAll(/\W+/g, "_")}`
  const quoted = JSON.stringify(field)
  return `The column ${quoted} is unknown${nearest === undefined ? "" : `, the nearest is ${nearest}`}: pass --map ${JSON.stringify(`${field}=${target}`)}, or ${JSON.stringify(`${field}=${leftOut}`)} to leave it out.`
}

/** How a row is shown: keys by their last four characters, also in metadata. */
export const shownRow = (names: ReadonlyArray<string>, { fields }: CsvRecord): string =>
  names
    .flatMap((name, index) => {
      const text = fields[index]!
      if (name === leftOut || text === "") return []
      return [`${name}=${/key|token|secret|password/i.test(name) ? `…${text.slice(-4)}` : text.slice(0, 40)}`]
    })
    .join("  ")

export const readCsvRow = (names: ReadonlyArray<string>, { fields, line }: CsvRecord): CsvLicense | Fault => {
  const fault = (message: string): Fault => ({ line, message })
  if (fields.length !== names.length) return fault(`It has ${fields.length} fields, the first line ${names.length}.`)
  if (fields.some(isDamaged)) return fault(damaged)
  const values: Record<string, unknown> = {}
  const metadata: Record<string, string> = {}
  for (const [index, name] of names.entries()) {
    const text = fields[index]!
    if (text === "" || name === leftOut) continue
    if (name.startsWith(metadataPrefix)) metadata[name.slice(metadataPrefix.length)] = text
    else if ((instants as ReadonlyArray<string>).includes(name)) {
      values[name] = instantOf(text)
      if (values[name] === undefined) return fault(`${name}: Expected a date as 2026-01-31 or 2026-01-31T12:00:00Z.`)
    } else if (limitNames.includes(name as LimitName)) {
      if (!/^\d{1,10}$/.test(text)) return fault(`${name}: Expected a whole number.`)
      values[name] = Number(text)
    } else values[name] = text
  }
  const row = decode({ ...values, metadata })
  if (Result.isFailure(row)) return fault(row.failure)
  if (isRounded.test(row.success.license_key)) return fault(roundedKey)
  const key = LicenseKey.read(row.success.license_key)
  if (Option.isNone(key)) return fault(wrongKey)
  return { ...row.success, line, license_key: key.value }
}

/** Says nothing of the key itself: keys are not printed. */
const wrongKey =
  "license_key: Expected 8 to 255 printable ASCII characters without spaces, or a key of this service with correct check characters."

/** A number of many digits, as spreadsheets save it. */
const isRounded = /^\d(?:[.,]\d+)?E\+\d+$/i
const roundedKey =
  "license_key: A spreadsheet has rounded the key to a number: format the column as text and enter it again."

/** A day is its first instant in UTC. */
const instantOf = (text: string): number | undefined =>
  parseTimestamp(/^\d{4}-\d{2}-\d{2}$/.test(text) ? `${text}T00:00:00Z` : text)
