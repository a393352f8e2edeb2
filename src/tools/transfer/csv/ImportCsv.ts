/** Imports licenses from a CSV file. The whole file is checked before its first license is imported. */
import { Clock, Effect, Stream } from "effect"
import { SqlClient } from "effect/sql"
import { Identifiers } from "../../../contract/api/Identifier.ts"
import { VendorKeys } from "../../../licensing/management/VendorKeys.ts"
import * as LicenseKey from "../../../licensing/model/LicenseKey.ts"
import type { TargetPolicy } from "../../../licensing/model/LicenseRecords.ts"
import { readTargetPolicies } from "../../../licensing/rows/TargetPolicies.ts"
import { columns } from "../../../platform/postgres/driver/Parameters.ts"
import { tableOf } from "../Columns.ts"
import { resolvePath } from "../Files.ts"
import { faultsMax, type ImportOptions, runImport } from "../ImportRun.ts"
import { licensesOfKeys, licenseUnit, rowOf } from "../LicenseUnits.ts"
import { type Fault, TransferRefused } from "../Lines.ts"
import type { Unit } from "../Units.ts"
import { type ColumnMap, type CsvLicense, columnsOf, leftOut, readCsvRow, refuseColumns, shownRow } from "./CsvRow.ts"
import { type CsvRecord, csvFile, type Encoding, refuseRest } from "./CsvText.ts"

const rowsMax = 1_000_000
/** Rows that a dry run shows. */
const shownRows = 10
/** Rows that are looked up together. */
const chunkRows = 1_000

export const importCsv = Effect.fnUntraced(function* (
  name: string,
  encoding: Encoding,
  map: ColumnMap,
  options: ImportOptions
) {
  const records = csvFile(yield* resolvePath(name), encoding)
  const { faults: wrong, preview, vendorKeys } = yield* checkRows(records, map)
  if (wrong.length > 0 && !options.dryRun) {
    return yield* new TransferRefused({ message: "Nothing was imported: correct these lines first.", faults: wrong })
  }
  // Applications present keys of other systems: every node has to look them up from now on.
  if (vendorKeys && !options.dryRun) yield* (yield* VendorKeys).announce
  const unitsOf = yield* makeUnits
  const wrongLines = new Set(wrong.map(({ line }) => line))
  const result = yield* runImport(
    Effect.fnUntraced(function* (accept, reject) {
      if (wrong.length > 0) yield* reject(wrong)
      yield* forEachRows(records, map, (rows) =>
        Effect.gen(function* () {
          const right = rows.filter(({ line }) => !wrongLines.has(line)) as ReadonlyArray<CsvLicense>
          const { faults, units } = yield* unitsOf(right)
          if (faults.length > 0) yield* reject(faults)
          for (const unit of units) yield* accept(unit)
        })
      )
    }),
    options
  )
  return { ...result, present: result.present + unitsOf.present(), ...(options.dryRun ? { preview } : undefined) }
})

type Records = ReturnType<typeof csvFile>

/** Passes the rows of a file, at most a chunk at a time. */
const forEachRows = Effect.fnUntraced(function* <E, R>(
  records: Records,
  map: ColumnMap,
  use: (rows: ReadonlyArray<CsvLicense | Fault>, preview: ReadonlyArray<string>) => Effect.Effect<void, E, R>
) {
  let header: ReadonlyArray<string> | undefined
  let count = 0
  const take = Effect.fnUntraced(function* (records: ReadonlyArray<CsvRecord>) {
    const fields = header ?? records[0]!.fields
    const isFirst = header === undefined
    header = fields
    const names = columnsOf(fields, map)
    count += records.length
    const fault =
      refuseColumns(fields, map) ??
      (count > rowsMax + 1 ? `The file has more than ${rowsMax} rows: split it.` : undefined)
    if (fault !== undefined) return yield* refuseRest(fault)
    const given = isFirst ? records.slice(1) : records
    const rows = given.map((record) => readCsvRow(names, record))
    const preview = isFirst ? previewOf(fields, names, given.slice(0, shownRows), rows) : []
    if (rows.length > 0) yield* use(rows, preview)
  })
  yield* records.pipe(Stream.grouped(chunkRows), Stream.runForEach(take))
  if (header === undefined) return yield* new TransferRefused({ message: "The file is empty." })
})

/** The mapping of the columns, and the first rows as they would become. Rows with faults are not shown: a key may be anywhere. */
const previewOf = (
  fields: ReadonlyArray<string>,
  names: ReadonlyArray<string>,
  records: ReadonlyArray<CsvRecord>,
  rows: ReadonlyArray<CsvLicense | Fault>
) => [
  ...fields.map((field, index) => `${field.trim()} → ${names[index] === leftOut ? "left out" : names[index]}`),
  ...records.map(
    (record, index) => `line ${record.line}: ${"message" in rows[index]! ? "refused" : shownRow(names, record)}`
  )
]

/** Everything that is wrong with the rows themselves, and whether one has a key of another system. */
const checkRows = Effect.fnUntraced(function* (records: Records, map: ColumnMap) {
  const shown: Array<string> = []
  const faults: Array<Fault> = []
  const lines = new Map<string, number>()
  let vendorKeys = false
  yield* forEachRows(records, map, (rows, preview) =>
    Effect.sync(() => {
      shown.push(...preview)
      for (const row of rows) {
        if (faults.length >= faultsMax) return
        if ("message" in row) {
          faults.push(row)
          continue
        }
        vendorKeys ||= LicenseKey.isVendorKey(row.license_key)
        // 80 bits: half the memory of a whole digest, and no two keys share them.
        const digest = LicenseKey.hashHex(row.license_key).slice(0, 20)
        const earlier = lines.get(digest)
        if (earlier === undefined) lines.set(digest, row.line)
        else faults.push({ line: row.line, message: `license_key: The key of line ${earlier} again.` })
      }
    })
  )
  return { faults, preview: shown, vendorKeys }
})

/** Makes units of rows: with what the rows name, and without the licenses that exist already. */
const makeUnits = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const ids = yield* Identifiers
  const policies = new Map<string, TargetPolicy | undefined>()
  /** Customers of earlier rows, which may not be written yet. */
  const added = new Map<string, string>()
  let present = 0

  const readPolicies = Effect.fnUntraced(function* (rows: ReadonlyArray<CsvLicense>) {
    const unread = [...new Set(rows.map(policyName))].filter((name) => !policies.has(name))
    if (unread.length === 0) return
    const found = yield* sql<{ readonly id: string; readonly name: string }>`
      SELECT p.id, product.code || '/' || p.code AS name FROM policies p JOIN products product ON product.id = p.product_id
      WHERE product.code || '/' || p.code = ANY(${columns.text(unread)})`
    const targets = yield* readTargetPolicies(
      sql,
      found.map(({ id }) => id)
    )
    for (const name of unread) policies.set(name, targets.get(found.find((row) => row.name === name)?.id ?? ""))
  })

  const customersOf = Effect.fnUntraced(function* (rows: ReadonlyArray<CsvLicense>, now: number) {
    const codes = [...new Set(rows.flatMap(({ customer }) => customer ?? []))]
    const found = yield* sql<{ readonly id: string; readonly code: string }>`
      SELECT id, code FROM customers WHERE code = ANY(${columns.text(codes)})`
    const customers = new Map(found.map(({ code, id }) => [code, id]))
    for (const code of codes) if (added.has(code)) customers.set(code, added.get(code)!)
    const units: Array<Unit> = []
    for (const { customer: code, customer_email: email, customer_name, line } of rows) {
      if (code === undefined || customers.has(code)) continue
      const id = yield* ids.make("customer")
      customers.set(code, id)
      added.set(code, id)
      const row = rowOf({
        id,
        code,
        name: customer_name ?? code,
        email,
        metadata: {},
        created_at: now,
        updated_at: now
      })
      units.push({ root: { line, table: tableOf("customer"), row }, parts: [] })
    }
    return { customers, units }
  })

  const unitsOf = Effect.fnUntraced(function* (rows: ReadonlyArray<CsvLicense>) {
    const now = yield* Clock.currentTimeMillis
    yield* readPolicies(rows)
    const existing = yield* licensesOfKeys(rows.map(({ license_key }) => LicenseKey.hashHex(license_key)))
    const faults: Array<Fault> = []
    const fresh = rows.filter((row) => {
      const policy = policies.get(policyName(row))
      const license = existing.get(LicenseKey.hashHex(row.license_key))
      if (policy === undefined) faults.push({ line: row.line, message: unknownPolicy(row) })
      else if (row.created_at !== undefined && row.created_at > now)
        faults.push({ line: row.line, message: "created_at: It is in the future: enter when the license was sold." })
      else if (license === undefined) return true
      else if (license.policy_id === policy.policy.id) present++
      else
        faults.push({
          line: row.line,
          message: `license_key: The license ${license.id} of another policy has this key.`
        })
      return false
    })
    const { customers, units: created } = yield* customersOf(fresh, now)
    const units: Array<Unit> = []
    for (const { customer, line, policy: _, product: __, status = "active", ...row } of fresh) {
      const target = policies.get(policyName({ policy: _, product: __ }))!
      const id = yield* ids.make("license")
      const links = {
        product_id: target.product_id,
        policy_id: target.policy.id,
        customer_id: customers.get(customer ?? "")
      }
      const unit = licenseUnit(line, { created_at: now, ...row, ...links, id, status }, target, now)
      if (typeof unit === "string") faults.push({ line, message: unit })
      else units.push(unit)
    }
    const owners = new Set(units.map(({ root }) => root.row["customer_id"]))
    const isOwner = ({ root }: Unit) => owners.has(root.row["id"])
    // A later line creates a customer whose lines so far were refused.
    for (const unit of created) if (!isOwner(unit)) added.delete(unit.root.row["code"] as string)
    return { units: [...created.filter(isOwner), ...units], faults }
  }, Effect.orDie)
  return Object.assign(unitsOf, { present: () => present })
})

const policyName = ({ policy, product }: Pick<CsvLicense, "policy" | "product">) => `${product}/${policy}`

const unknownPolicy = ({ policy, product }: CsvLicense) =>
  `policy: There is no policy ${policy} of a product ${product}: create it first, or correct the codes.`
