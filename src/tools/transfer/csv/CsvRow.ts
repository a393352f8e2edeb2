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

/** What is wrong with the first record, which names the columns. */
export const refuseColumns = (names: ReadonlyArray<string>): string | undefined => {
  const missing = needed.find((name) => !names.includes(name))
  if (missing !== undefined) return `The column ${missing} is missing: the first line names the columns.`
  const unknown = names.find((name) => !known.has(name) && !name.startsWith(metadataPrefix))
  if (unknown !== undefined) return `The column ${JSON.stringify(unknown)} is unknown: see docs/guides/import-csv.md.`
  const repeated = names.find((name, index) => names.indexOf(name) !== index)
  return repeated === undefined ? undefined : `The column ${repeated} is there twice.`
}

export const readCsvRow = (names: ReadonlyArray<string>, { fields, line }: CsvRecord): CsvLicense | Fault => {
  const fault = (message: string): Fault => ({ line, message })
  if (fields.length !== names.length) return fault(`It has ${fields.length} fields, the first line ${names.length}.`)
  const values: Record<string, unknown> = {}
  const metadata: Record<string, string> = {}
  for (const [index, name] of names.entries()) {
    const text = fields[index]!
    if (text === "") continue
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
  const key = LicenseKey.read(row.success.license_key)
  if (Option.isNone(key)) return fault(wrongKey)
  return { ...row.success, line, license_key: key.value }
}

/** Says nothing of the key itself: keys are not printed. */
const wrongKey =
  "license_key: Expected 8 to 255 printable ASCII characters without spaces, or a key of this service with correct check characters."

/** A day is its first instant in UTC. */
const instantOf = (text: string): number | undefined =>
  parseTimestamp(/^\d{4}-\d{2}-\d{2}$/.test(text) ? `${text}T00:00:00Z` : text)
