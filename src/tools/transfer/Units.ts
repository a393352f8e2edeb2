/** A unit: a record with its parts, which is imported as a whole or not at all. */
import type { Effect } from "effect"
import type { Columns } from "./Columns.ts"
import type { Fault, Row, TransferRefused } from "./Lines.ts"
import { type Table, tableGroups } from "./Tables.ts"

/** A row of a file. */
export interface Entry {
  /** 0 if the source has no lines. */
  readonly line: number
  /** Names the row in a source without lines. */
  readonly source?: string
  readonly table: Table
  readonly row: Row
}

export interface Unit {
  readonly root: Entry
  /** Of a large unit, these are empty. */
  readonly parts: ReadonlyArray<Entry>
  readonly large?: LargeParts
}

/** Parts that are not in memory together. */
export interface LargeParts {
  /** Their numbers by type; if some are left out, only after they were passed once. */
  readonly counts: ReadonlyMap<string, number>
  /** Passes them in the order of the file, in pieces of one table. They can be read several times. */
  inPieces<E>(use: (parts: ReadonlyArray<Entry>) => Effect.Effect<void, E>): Effect.Effect<void, E | TransferRefused>
}

/** A large unit, of which only the lines are known. */
export interface UnitLines {
  readonly root: Entry
  readonly counts: ReadonlyMap<string, number>
  readonly lastLine: number
}

/** A unit with more parts is not kept in memory. */
const partsKept = 5_000
/** Parts of a unit, which is one transaction. */
const partsMax = 2_000_000

const roots = new Map(tableGroups.map(({ root }) => [root.type, root]))
const parts = new Map(tableGroups.flatMap(({ parts, root }) => parts.map((part) => [part.type, { part, root }])))

interface OpenUnit {
  readonly root: Entry
  parts: Array<Entry>
  count: number
  lastLine: number
  /** Once there are too many parts to keep them. */
  counts: Map<string, number> | undefined
}

/** Adds entries to their numbers by type. */
export const countTypes = (counts: Map<string, number>, entries: ReadonlyArray<Entry>) => {
  for (const { table } of entries) counts.set(table.type, (counts.get(table.type) ?? 0) + 1)
  return counts
}

const closed = ({ counts, lastLine, parts, root }: OpenUnit): Unit | UnitLines =>
  counts === undefined ? { root, parts } : { root, counts, lastLine }

/** Makes units from lines that come in order. */
export const makeAssembler = (columns: ReadonlyMap<string, Columns>) => {
  let open: OpenUnit | undefined

  const faultOf = (type: string, row: Row): string | undefined => {
    const known = columns.get(type)
    if (known === undefined)
      return `The type ${JSON.stringify(type)} is unknown: see docs/OPERATIONS.md, "Export and import".`
    const unknown = Object.keys(row).find((column) => !known.has(column))
    return unknown === undefined
      ? undefined
      : `The field ${JSON.stringify(unknown)} is unknown: import the file with the version of the service that wrote it, or a later one.`
  }

  const addPart = (entry: Entry, parent: string): Fault | undefined => {
    const [idColumn = "id"] = open?.root.table.key ?? []
    if (open === undefined || open.root.row[idColumn] !== entry.row[parent]) {
      return {
        line: entry.line,
        message: "The line does not follow the record that it belongs to: keep the order of lines."
      }
    }
    open.lastLine = entry.line
    if (++open.count > partsMax) {
      return { line: entry.line, message: `A record has more than ${partsMax} parts: move it with pg_dump.` }
    }
    if (open.counts !== undefined) countTypes(open.counts, [entry])
    else if (open.parts.push(entry) > partsKept) {
      open.counts = countTypes(new Map(), open.parts)
      open.parts = []
    }
    return undefined
  }

  return {
    /** Adds a line. Returns the unit that it ends, or what is wrong with the line. */
    add: (line: number, { type, ...row }: Row): Unit | UnitLines | Fault | undefined => {
      const fault = faultOf(String(type), row)
      if (fault !== undefined) return { line, message: fault }
      const entry = partOf(line, String(type), row)
      if (entry !== undefined) {
        if (open?.root.table !== parts.get(String(type))!.root) {
          return {
            line,
            message: `The line has no ${parts.get(String(type))!.root.type} before it: keep the order of lines.`
          }
        }
        return addPart(entry, entry.table.parent!)
      }
      const ended = open
      const root = { line, table: roots.get(String(type))!, row }
      open = { root, parts: [], count: 0, lastLine: line, counts: undefined }
      return ended && closed(ended)
    },
    /** The last unit. */
    end: (): Unit | UnitLines | undefined => open && closed(open)
  }
}

/** A part of a line; undefined if the line is a record. */
export const partOf = (line: number, type: string, row: Row): Entry | undefined => {
  const found = parts.get(type)
  return found && { line, table: found.part, row }
}

export const isEndpoint = ({ root }: Unit): boolean => root.table.type === "webhook"

/** Collects units into batches of about this many rows. */
export const makeBatches = (rowsMax: number) => {
  let batch: Array<Unit> = []
  let rows = 0
  const take = (): ReadonlyArray<Unit> => {
    const taken = batch
    batch = []
    rows = 0
    return taken
  }
  return {
    /** Adds a unit. Returns the batch before it, if both cannot be written together. */
    add: (unit: Unit): ReadonlyArray<Unit> => {
      // A large unit has a batch of its own.
      const size = unit.large === undefined ? 1 + unit.parts.length : rowsMax
      // Endpoints have a batch of their own: they receive no events of the records before them.
      const isApart = batch.length > 0 && isEndpoint(unit) !== isEndpoint(batch[0]!)
      const full = batch.length > 0 && (isApart || rows + size > rowsMax) ? take() : []
      batch.push(unit)
      rows += size
      return full
    },
    take
  }
}
