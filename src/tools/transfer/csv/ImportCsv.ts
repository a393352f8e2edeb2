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
import { type CsvLicense, columnOf, readCsvRow, refuseColumns } from "./CsvRow.ts"
import { type CsvRecord, csvFile, type Encoding, refuseRest } from "./CsvText.ts"

const rowsMax = 1_000_000
/** Rows that are looked up together. */
const chunkRows = 1_000

export const importCsv = Effect.fnUntraced(function* (name: string, encoding: Encoding, options: ImportOptions) {
  const records = csvFile(yield* resolvePath(name), encoding)
  const { faults: wrong, vendorKeys } = yield* checkRows(records)
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
      yield* forEachRows(records, (rows) =>
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
  return { ...result, present: result.present + unitsOf.present() }
})

type Records = ReturnType<typeof csvFile>

/** Passes the rows of a file, at most a chunk at a time. */
const forEachRows = Effect.fnUntraced(function* <E, R>(
  records: Records,
  use: (rows: ReadonlyArray<CsvLicense | Fault>) => Effect.Effect<void, E, R>
) {
  let names: ReadonlyArray<string> | undefined
  let count = 0
  const take = Effect.fnUntraced(function* (records: ReadonlyArray<CsvRecord>) {
    const columnNames = names ?? records[0]!.fields.map(columnOf)
    names = columnNames
    const rows = records.slice(count === 0 ? 1 : 0)
    count += records.length
    const fault =
      refuseColumns(columnNames) ??
      (count > rowsMax + 1 ? `The file has more than ${rowsMax} rows: split it.` : undefined)
    if (fault !== undefined) return yield* refuseRest(fault)
    if (rows.length > 0) yield* use(rows.map((record) => readCsvRow(columnNames, record)))
  })
  yield* records.pipe(Stream.grouped(chunkRows), Stream.runForEach(take))
  if (names === undefined) return yield* new TransferRefused({ message: "The file is empty." })
})

/** Everything that is wrong with the rows themselves, and whether one has a key of another system. */
const checkRows = Effect.fnUntraced(function* (records: Records) {
  const faults: Array<Fault> = []
  const lines = new Map<string, number>()
  let vendorKeys = false
  yield* forEachRows(records, (rows) =>
    Effect.sync(() => {
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
  return { faults, vendorKeys }
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
      else if (license === undefined) return true
      else if (license.policy_id === policy.policy.id) present++
      else
        faults.push({
          line: row.line,
          message: `license_key: The license ${license.id} of another policy has this key.`
        })
      return false
    })
    const { customers, units } = yield* customersOf(fresh, now)
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
    return { units, faults }
  }, Effect.orDie)
  return Object.assign(unitsOf, { present: () => present })
})

const policyName = ({ policy, product }: Pick<CsvLicense, "policy" | "product">) => `${product}/${policy}`

const unknownPolicy = ({ policy, product }: CsvLicense) =>
  `policy: There is no policy ${policy} of a product ${product}: create it first, or correct the codes.`
