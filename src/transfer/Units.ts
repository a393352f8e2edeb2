/** A unit: a record with its parts, which is imported as a whole or not at all. */
import type { Columns } from "./Columns.ts"
import type { Fault, Row } from "./Lines.ts"
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
  readonly parts: ReadonlyArray<Entry>
}

/** Rows of the largest unit: a license with its devices. They are in memory together. */
const unitRowsMax = 250_000

const roots = new Map(tableGroups.map(({ root }) => [root.type, root]))
const parts = new Map(tableGroups.flatMap(({ parts, root }) => parts.map((part) => [part.type, { part, root }])))

/** Makes units from lines that come in order. */
export const makeAssembler = (columns: ReadonlyMap<string, Columns>) => {
  let open: { readonly root: Entry; readonly parts: Array<Entry> } | undefined

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
    if (open.parts.length >= unitRowsMax) {
      return { line: entry.line, message: `A record has more than ${unitRowsMax} parts: import it with pg_restore.` }
    }
    open.parts.push(entry)
    return undefined
  }

  return {
    /** Adds a line. Returns the unit that it ends, or what is wrong with the line. */
    add: (line: number, { type, ...row }: Row): Unit | Fault | undefined => {
      const fault = faultOf(String(type), row)
      if (fault !== undefined) return { line, message: fault }
      const part = parts.get(String(type))
      if (part !== undefined) {
        if (open?.root.table !== part.root) {
          return { line, message: `The line has no ${part.root.type} before it: keep the order of lines.` }
        }
        return addPart({ line, table: part.part, row }, part.part.parent!)
      }
      const ended = open
      open = { root: { line, table: roots.get(String(type))!, row }, parts: [] }
      return ended
    },
    /** The last unit. */
    end: (): Unit | undefined => open
  }
}

const isEndpoint = ({ root }: Unit): boolean => root.table.type === "webhook"

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
      const size = 1 + unit.parts.length
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
