/** Imports a file that `licensing export` has written. The whole file is checked before its first line is imported. */
import { Effect, type FileSystem, Schema } from "effect"
import { SqlClient } from "effect/sql"
import { parseTimestamp } from "../../contract/api/Timestamp.ts"
import { VendorKeys } from "../../licensing/management/VendorKeys.ts"
import { makeDigest } from "../../platform/signing/Digest.ts"
import { MasterKey } from "../../platform/signing/MasterKey.ts"
import { SourceTime } from "./ErasedCustomers.ts"
import { forEachLines, type LineStart, resolvePath, startOfLine } from "./Files.ts"
import { Importing } from "./Importing.ts"
import { type ImportOptions, runImport } from "./ImportRun.ts"
import { statementRows } from "./Inserting.ts"
import { End, format, Header, type Row, TransferRefused } from "./Lines.ts"
import { type Entry, type LargeParts, makeAssembler, partOf, type Unit, type UnitLines } from "./Units.ts"

const decodeHeader = Schema.decodeUnknownEffect(Schema.fromJsonString(Header))
const decodeEnd = Schema.decodeUnknownEffect(Schema.fromJsonString(End))

const refuse = (message: string) => Effect.fail(new TransferRefused({ message }))

export const importFile = Effect.fnUntraced(function* (name: string, options: ImportOptions) {
  const path = yield* resolvePath(name)
  const { createdAt, lines, vendorKeys } = yield* checkFile(name, path)
  if (vendorKeys && !options.dryRun) yield* (yield* VendorKeys).announce
  const { columns } = yield* Importing
  const partsOf = yield* makePartsOf(path)
  return yield* runImport(
    Effect.fnUntraced(function* (accept, reject) {
      const units = makeAssembler(columns)
      const acceptEnded = (unit: Unit | UnitLines) =>
        "counts" in unit
          ? Effect.flatMap(partsOf(unit), (large) => accept({ root: unit.root, parts: [], large }))
          : accept(unit)
      yield* forEachLines(
        path,
        Effect.fnUntraced(function* (texts, first) {
          for (const [index, text] of texts.entries()) {
            const line = first + index
            if (line === 1 || line > lines) continue
            const unit = units.add(line, JSON.parse(text) as Row)
            if (unit === undefined) continue
            yield* "message" in unit ? reject([unit]) : acceptEnded(unit)
          }
        })
      )
      const last = units.end()
      if (last !== undefined) yield* acceptEnded(last)
    }),
    options
  ).pipe(Effect.provideService(SourceTime, createdAt))
})

/**
 * Reads the parts of large units, which come in order, again from the file. Where they begin is found before their transaction,
 * which must not wait for that, and from where those of the unit before begin.
 */
export const makePartsOf = Effect.fnUntraced(function* (path: string) {
  const context = yield* Effect.context<FileSystem.FileSystem>()
  let known: LineStart | undefined
  return Effect.fnUntraced(function* ({ counts, lastLine, root }: UnitLines) {
    const start = yield* startOfLine(path, root.line + 1, known)
    known = start
    const inPieces: LargeParts["inPieces"] = (use) =>
      Effect.gen(function* () {
        const pending: Array<Entry> = []
        const flush = Effect.suspend(() => (pending.length === 0 ? Effect.void : use(pending.splice(0))))
        yield* forEachLines(
          path,
          Effect.fnUntraced(function* (texts, first) {
            for (const [index, text] of texts.entries()) {
              const { type, ...row } = JSON.parse(text) as Row
              const part = partOf(first + index, String(type), row)!
              if (pending.length >= statementRows || (pending[0] ?? part).table !== part.table) yield* flush
              pending.push(part)
            }
          }),
          start,
          lastLine
        )
        yield* flush
      }).pipe(Effect.provide(context))
    return { counts, inPieces } satisfies LargeParts
  })
})

/** Checks header, digest and end; returns the number of lines before the end, and what the header says. */
const checkFile = Effect.fnUntraced(function* (name: string, path: string) {
  const digest = makeDigest()
  let count = 0
  let last: string | undefined
  let vendorKeys = false
  let createdAt = 0
  yield* forEachLines(path, (texts, first) => {
    for (const text of texts) {
      if (last !== undefined) digest.update(`${last}\n`)
      last = text
    }
    count += texts.length
    if (first > 1) return Effect.void
    return Effect.map(checkHeader(name, texts[0] ?? ""), (header) => {
      vendorKeys = header.vendor_keys
      createdAt = parseTimestamp(header.created_at) ?? 0
    })
  })
  const end = yield* Effect.orElseSucceed(decodeEnd(last ?? ""), () => undefined)
  if (end === undefined) {
    return yield* refuse(`${name} has no end: the export did not finish, or the file was cut. Export again.`)
  }
  if (end.lines !== count - 1 || end.sha256 !== digest.hex()) {
    return yield* refuse(`${name} was changed after its export: its digest is another one. Copy or export it again.`)
  }
  return { createdAt, lines: end.lines, vendorKeys }
})

const checkHeader = Effect.fnUntraced(function* (name: string, text: string) {
  const header = yield* Effect.orElseSucceed(decodeHeader(text), () => undefined)
  if (header === undefined) return yield* refuse(`${name} is no export: its first line is no header.`)
  const sql = yield* SqlClient.SqlClient
  const [own] = yield* Effect.orDie(sql<{ readonly schema: number }>`SELECT max(id) AS schema FROM schema_migrations`)
  if (header.format !== format || header.schema > own!.schema) {
    return yield* refuse(`${name} was written by a later version of the service: import it with that version.`)
  }
  const masterKey = yield* MasterKey
  if (header.master_key_id === undefined) return header
  if (masterKey.derive("transfer", header.master_key_id) === undefined) {
    const ownId = masterKey.derive("transfer")?.keyId
    return yield* refuse(
      `The secrets in ${name} are encrypted with the master key ${header.master_key_id}, and this service has ${ownId}: run the import and the service with the master key of the exporting service. After the import it can be rotated.`
    )
  }
  return header
})
