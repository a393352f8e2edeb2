/** The commands that move records between installations, and bring them in from elsewhere. */
import { Clock, Console, Effect, Layer } from "effect"
import { Argument, Flag } from "effect/cli"
import { EventLog } from "../../ledger/events/EventLog.ts"
import { VendorKeys } from "../../licensing/management/VendorKeys.ts"
import type { ColumnMap } from "../transfer/csv/CsvRow.ts"
import { type Encoding, encodings } from "../transfer/csv/CsvText.ts"
import { importCsv } from "../transfer/csv/ImportCsv.ts"
import { Exporting } from "../transfer/Exporting.ts"
import { writeLines } from "../transfer/Files.ts"
import { importFile } from "../transfer/ImportFile.ts"
import { Importing } from "../transfer/Importing.ts"
import type { ImportResult } from "../transfer/ImportRun.ts"
import { importKeygen, importPages } from "../transfer/keygen/ImportKeygen.ts"
import type { ProductCodes } from "../transfer/keygen/KeygenProducts.ts"
import type { ReadPage } from "../transfer/keygen/Resources.ts"
import type { Fault, TransferRefused } from "../transfer/Lines.ts"
import { aligned, CommandEnded, flag, jsonFlag, print } from "./Output.ts"

export const exportFlags = {
  file: Argument.String("file").pipe(Argument.withDescription("The file to write; it must not exist yet.")),
  ...jsonFlag
}

const importFlags = {
  dryRun: flag("dry-run", "Import everything, report all faults, and take everything back."),
  ...jsonFlag
}

export const importFileFlags = {
  file: Argument.String("file").pipe(Argument.withDescription("A file that `licensing export` has written.")),
  ...importFlags
}

const services = Layer.merge(Importing.layer.pipe(Layer.provide(EventLog.layer)), VendorKeys.layer)

const progressMillis = 2_000
const faultsShown = 20

/** Prints a line on standard error every two seconds. */
const makeProgress = Effect.map(Clock.currentTimeMillis, (startedAt) => {
  let nextAt = startedAt + progressMillis
  return (records: number) =>
    Effect.flatMap(Clock.currentTimeMillis, (now) => {
      if (now < nextAt) return Effect.void
      nextAt = now + progressMillis
      const rate = Math.round((records * 1_000) / (now - startedAt))
      return Console.error(`${records} records, ${rate} a second`)
    })
})

const countRows = (counts: ReadonlyMap<string, number>) => [...counts].map(([type, count]) => [type, String(count)])

/** Writes everything to a new file. */
export const exportRecords = Effect.fnUntraced(
  function* ({ file, json }: { readonly file: string; readonly json: boolean }) {
    const exporting = yield* Exporting
    const progress = yield* makeProgress
    let lines = 0
    const counts = yield* writeLines(file, (emit) =>
      exporting.run((texts) => {
        lines += texts.length
        return Effect.andThen(emit(texts), progress(lines))
      })
    )
    yield* print(json, { records: Object.fromEntries(counts) }, aligned(countRows(counts)))
  },
  Effect.catchTag("TransferRefused", ({ message }) => Effect.fail(new CommandEnded({ exitCode: 1, message }))),
  Effect.provide(Exporting.layer)
)

interface ImportFlags {
  readonly dryRun: boolean
  readonly json: boolean
}

const faultLines = (faults: ReadonlyArray<Fault>): ReadonlyArray<string> => [
  ...faults.slice(0, faultsShown).map(({ line, message }) => (line === 0 ? message : `line ${line}: ${message}`)),
  ...(faults.length > faultsShown ? [`and ${faults.length - faultsShown} more: --json shows all.`] : [])
]

/** Runs an import and prints what it did. Exit code 1 if anything is wrong with the source. */
const imported = <R>(
  { dryRun, json }: ImportFlags,
  run: (onProgress: (records: number) => Effect.Effect<void>) => Effect.Effect<ImportResult, TransferRefused, R>
) =>
  Effect.gen(function* () {
    const { erased, faults, present, preview = [], unmapped = [], written } = yield* run(yield* makeProgress)
    const shown = {
      dry_run: dryRun,
      imported: Object.fromEntries(written),
      existed_already: present,
      erased,
      unmapped,
      faults
    }
    yield* print(json, shown, [
      ...preview,
      ...aligned([
        ...countRows(written),
        ["existed already", String(present)],
        ...(faults.length > 0 ? [["refused", String(faults.length)]] : [])
      ]),
      ...unmapped.map(({ count, example, message }) => `not mapped: ${message} (${count}, first ${example})`),
      ...faultLines(erased),
      ...(dryRun ? ["Dry run: nothing was imported."] : []),
      ...faultLines(faults)
    ])
    if (faults.length > 0) return yield* new CommandEnded({ exitCode: 1, message: "" })
  }).pipe(
    Effect.catchTag("TransferRefused", ({ faults = [], message }) =>
      json
        ? Effect.andThen(
            print(true, { dry_run: dryRun, error: message, faults }, []),
            Effect.fail(new CommandEnded({ exitCode: 1, message }))
          )
        : Effect.fail(new CommandEnded({ exitCode: 1, message: [...faultLines(faults), message].join("\n") }))
    ),
    Effect.provide(services)
  )

/** Imports a file of `licensing export`. */
export const importExport = ({ file, ...flags }: ImportFlags & { readonly file: string }) =>
  imported(flags, (onProgress) => importFile(file, { dryRun: flags.dryRun, onProgress }))

export const importCsvFlags = {
  file: Argument.String("file").pipe(Argument.withDescription("A CSV file; its first line names the columns.")),
  encoding: Flag.Literals("encoding", encodings).pipe(
    Flag.withDescription("The encoding of a file without a BOM."),
    Flag.withDefault("utf-8")
  ),
  map: Flag.KeyValuePair("map").pipe(
    Flag.withDescription('"Column=field": what a column of the file is here; "Column=-" leaves it out; repeatable.'),
    Flag.withDefault({})
  ),
  ...importFlags
}

/** Imports licenses with their keys. */
export const importCsvFile = ({
  encoding,
  file,
  map,
  ...flags
}: ImportFlags & { readonly encoding: Encoding; readonly file: string; readonly map: ColumnMap }) =>
  imported(flags, (onProgress) => importCsv(file, encoding, map, { dryRun: flags.dryRun, onProgress }))

const productFlag = {
  product: Flag.KeyValuePair("product").pipe(
    Flag.withDescription("ID=CODE: import a product under the code of an existing or a new product; repeatable."),
    Flag.withDefault({})
  )
}

export const importKeygenFlags = {
  source: Argument.String("source").pipe(
    Argument.withDescription(
      "A folder of JSON documents of Keygen's API, or the address of an account: then KEYGEN_TOKEN is an admin token."
    )
  ),
  ...productFlag,
  ...importFlags
}

/** Imports an account of Keygen. */
export const importKeygenAccount = ({
  product,
  source,
  ...flags
}: ImportFlags & { readonly product: ProductCodes; readonly source: string }) =>
  imported(flags, (onProgress) => importKeygen(source, product, { dryRun: flags.dryRun, onProgress }))

export const importServiceFlags = {
  folder: Argument.String("folder").pipe(
    Argument.withDescription("A folder of JSON lists of the API; docs/guides/from-other-services.md names the files.")
  ),
  ...productFlag,
  ...importFlags
}

/** Imports the lists of another service. */
export const importService =
  (pageOf: ReadPage) =>
  ({ folder, product, ...flags }: ImportFlags & { readonly folder: string; readonly product: ProductCodes }) =>
    imported(flags, (onProgress) => importPages(folder, product, { dryRun: flags.dryRun, onProgress }, pageOf))
