/** An import from its first unit to its last, in batches: two are written at once, while the next one is read. */
import { Effect, Fiber } from "effect"
import { Importing } from "./Importing.ts"
import { type Fault, TransferRefused } from "./Lines.ts"
import { isEndpoint, makeBatches, type Unit } from "./Units.ts"

/** Rows of a batch. All nodes wait for the event counter while a batch writes its events: 1,000 take about 30 ms. */
const batchRows = 1_000
/** Batches that are written at once. Each is a connection, and a core of the database. */
const writersMax = 2
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
  /** Of a dry run of a table: the mapping of its columns, and the first rows as they would become. */
  readonly preview?: ReadonlyArray<string>
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
  const writing: Array<Writing> = []

  const reject: Reject = Effect.fnUntraced(function* (more) {
    faults.push(...more)
    if (dryRun && faults.length < faultsMax) return
    // The other batches are written or refused, too, before the records are counted.
    for (const { refused } of writing.splice(0)) faults.push(...(yield* Fiber.join(refused)))
    return yield* new TransferRefused({ message: refusedMessage(dryRun, records), faults: faults.splice(0) })
  })

  const write = Effect.fnUntraced(
    function* (units: ReadonlyArray<Unit>) {
      const result = yield* importing.write(units)
      for (const [type, count] of result.written) written.set(type, (written.get(type) ?? 0) + count)
      present += result.present
      erased.push(...result.erased.slice(0, faultsMax - erased.length))
      records += units.length
      yield* onProgress(records)
      return []
    },
    Effect.catchTag("TransferRefused", (error) =>
      error.faults === undefined ? Effect.fail(error) : Effect.succeed(error.faults)
    )
  )

  /** Waits for the oldest batches until so many are left; for all if one stops the import. */
  const settle = Effect.fnUntraced(function* (left: number) {
    while (writing.length > left) {
      const refused = yield* Effect.tapError(Fiber.join(writing.shift()!.refused), () =>
        Fiber.awaitAll(writing.splice(0).map((other) => other.refused))
      )
      if (refused.length > 0) yield* reject(refused)
    }
  })

  const start = Effect.fnUntraced(function* (units: ReadonlyArray<Unit>) {
    yield* settle(writing.some((earlier) => mustFollow(units, earlier)) ? 0 : writersMax - 1)
    writing.push({ units, ids: idsOf(units), refused: yield* Effect.forkChild(write(units)) })
    // A dry run has one transaction, and so one statement at a time.
    if (dryRun) yield* settle(0)
  })
  const accept: Accept = (unit) => {
    const full = batches.add(unit)
    return full.length === 0 ? Effect.void : start(full)
  }

  const all = Effect.gen(function* () {
    yield* source(accept, reject)
    yield* start(batches.take())
    yield* settle(0)
  })
  yield* dryRun ? importing.rehearse(all) : all
  return { written, present, erased, faults } satisfies ImportResult
})

const refusedMessage = (dryRun: boolean, records: number) =>
  dryRun
    ? "There are too many faults: correct these first."
    : `The import stopped. ${records} records are imported, the batch of these lines is not: correct the file and run the same command again.`

/** A batch that is being written. */
interface Writing {
  readonly units: ReadonlyArray<Unit>
  /** The ids of its records and parts; undefined if they are too many. */
  readonly ids: ReadonlySet<string> | undefined
  /** What is wrong with it. */
  readonly refused: Fiber.Fiber<ReadonlyArray<Fault>, TransferRefused>
}

const entriesOf = (units: ReadonlyArray<Unit>) => units.flatMap(({ parts, root }) => [root, ...parts])

const hasLarge = (units: ReadonlyArray<Unit>) => units.some(({ large }) => large !== undefined)

const idsOf = (units: ReadonlyArray<Unit>) =>
  hasLarge(units)
    ? undefined
    : new Set(entriesOf(units).flatMap(({ row: { id } }) => (typeof id === "string" ? [id] : [])))

/** Whether an earlier batch has records that must be committed before a later one is written, and this one has others. */
const mustAwait = (units: ReadonlyArray<Unit>, earlier: ReadonlyArray<Unit>): boolean => {
  const awaited = new Set(earlier.flatMap(({ root: { table } }) => (table.isAwaited === true ? [table] : [])))
  return awaited.size > 0 && units.some(({ root }) => !awaited.has(root.table))
}

/** Whether a batch refers to records of one that is not committed, or has endpoints, which receive no events of records before. */
const mustFollow = (units: ReadonlyArray<Unit>, { ids, units: earlier }: Writing): boolean =>
  ids === undefined ||
  hasLarge(units) ||
  units.some(isEndpoint) ||
  mustAwait(units, earlier) ||
  entriesOf(units).some(({ row }) =>
    Object.entries(row).some(([column, value]) => column.endsWith("_id") && ids.has(value as string))
  )
