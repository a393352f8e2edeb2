/** An import from its first unit to its last, in batches; the next one is read while one is written. */
import { Effect, Fiber } from "effect"
import { Importing } from "./Importing.ts"
import { type Fault, TransferRefused } from "./Lines.ts"
import { makeBatches, type Unit } from "./Units.ts"

/** Rows of a batch. All nodes wait for the event counter while a batch writes its events: 1,000 take about 30 ms. */
const batchRows = 1_000
/** Faults that a dry run collects before it stops, and the most lines that a report names. */
export const faultsMax = 1_000

export interface ImportResult {
  readonly written: ReadonlyMap<string, number>
  /** Records that existed already. */
  readonly present: number
  /** Records that were imported without the data of a customer that was erased; the first ones. */
  readonly erased: ReadonlyArray<Fault>
  /** Of a dry run; an import fails with its first ones. */
  readonly faults: ReadonlyArray<Fault>
  /** What the source has and this service does not: how often, and the first one. */
  readonly unmapped?: ReadonlyArray<{ readonly message: string; readonly count: number; readonly example: string }>
}

export interface ImportOptions {
  /** Takes everything back at the end, and collects all faults. */
  readonly dryRun: boolean
  /** Runs after each batch, with the number of records so far. */
  readonly onProgress: (records: number) => Effect.Effect<void>
}

/** Takes units in order. */
export type Accept = (unit: Unit) => Effect.Effect<void, TransferRefused>
/** Notes what is wrong with the source; fails at once unless this is a dry run. */
export type Reject = (faults: ReadonlyArray<Fault>) => Effect.Effect<void, TransferRefused>

export const runImport = Effect.fnUntraced(function* <E, R>(
  source: (accept: Accept, reject: Reject) => Effect.Effect<void, E, R>,
  { dryRun, onProgress }: ImportOptions
) {
  const importing = yield* Importing
  const batches = makeBatches(batchRows)
  const written = new Map<string, number>()
  const faults: Array<Fault> = []
  const erased: Array<Fault> = []
  let [present, records] = [0, 0]
  let writing: Fiber.Fiber<void, TransferRefused> | undefined

  const reject: Reject = (more) =>
    Effect.suspend(() => {
      faults.push(...more)
      if (dryRun && faults.length < faultsMax) return Effect.void
      return Effect.fail(new TransferRefused({ message: refusedMessage(dryRun, records), faults: faults.splice(0) }))
    })

  const write = Effect.fnUntraced(
    function* (units: ReadonlyArray<Unit>) {
      const result = yield* importing.write(units)
      for (const [type, count] of result.written) written.set(type, (written.get(type) ?? 0) + count)
      present += result.present
      erased.push(...result.erased.slice(0, faultsMax - erased.length))
      records += units.length
      yield* onProgress(records)
    },
    Effect.catchTag("TransferRefused", (error) =>
      error.faults === undefined ? Effect.fail(error) : reject(error.faults)
    )
  )

  const start = Effect.fnUntraced(function* (units: ReadonlyArray<Unit>) {
    if (writing !== undefined) yield* Fiber.join(writing)
    writing = units.length === 0 ? undefined : yield* Effect.forkChild(write(units))
    // A dry run has one transaction, and so one statement at a time.
    if (dryRun && writing !== undefined) yield* Fiber.join(writing)
  })
  const accept: Accept = (unit) => {
    const full = batches.add(unit)
    return full.length === 0 ? Effect.void : start(full)
  }

  const all = Effect.gen(function* () {
    yield* source(accept, reject)
    yield* start(batches.take())
    yield* start([])
  })
  yield* dryRun ? importing.rehearse(all) : all
  return { written, present, erased, faults } satisfies ImportResult
})

const refusedMessage = (dryRun: boolean, records: number) =>
  dryRun
    ? "There are too many faults: correct these first."
    : `The import stopped. The ${records} records before this batch are imported, this batch is not: correct the file and run the same command again.`
