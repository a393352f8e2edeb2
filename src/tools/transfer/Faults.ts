/** Finds the lines that the database refuses: halves of a batch are tried, then the lines of the records that are left. */
import { Effect } from "effect"
import { type SqlClient, SqlError } from "effect/sql"
import type { Columns } from "./Columns.ts"
import { withoutErased } from "./ErasedCustomers.ts"
import { dataFault, faultAt, insertEntries, keyOf } from "./Inserting.ts"
import type { Fault, TransferRefused } from "./Lines.ts"
import { adjustSecrets } from "./Secrets.ts"
import type { Entry, Unit } from "./Units.ts"

/** The units as they are written: with the secrets that this database can have, and without what was erased. */
export const cleanedUnits = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, units: ReadonlyArray<Unit>) {
  return yield* withoutErased(sql, yield* adjustSecrets(sql, units))
})

type Write = (units: ReadonlyArray<Unit>) => Effect.Effect<unknown, TransferRefused | SqlError.SqlError>

/** The faults of units that were refused together; the caller takes back what is tried. None if they are not refused any more. */
export const makeFaultsOf = (sql: SqlClient.SqlClient, columns: ReadonlyMap<string, Columns>, write: Write) => {
  const faultsOf = (units: ReadonlyArray<Unit>): Effect.Effect<ReadonlyArray<Fault>, TransferRefused> =>
    Effect.gen(function* () {
      const outcome = yield* Effect.result(sql.withTransaction(write(units)))
      if (outcome._tag === "Success") return []
      if (!SqlError.isSqlError(outcome.failure)) {
        const { faults } = outcome.failure
        return faults ?? (yield* outcome.failure)
      }
      if (dataFault(outcome.failure) === undefined) return yield* Effect.die(outcome.failure)
      if (units.length === 1) return yield* Effect.catchIf(within(units), SqlError.isSqlError, Effect.die)
      const half = units.length >> 1
      return [...(yield* faultsOf(units.slice(0, half))), ...(yield* faultsOf(units.slice(half)))]
    })
  const within = Effect.fnUntraced(function* (units: ReadonlyArray<Unit>) {
    const { faults, units: cleaned } = yield* cleanedUnits(sql, units)
    return faults.length > 0 ? faults : yield* faultsWithin(sql, columns, cleaned[0]!)
  })
  return faultsOf
}

/** Which lines of a unit the database refuses. None if it accepts all of them now. */
const faultsWithin = (
  sql: SqlClient.SqlClient,
  columns: ReadonlyMap<string, Columns>,
  { large, parts, root }: Unit
) => {
  const found: Array<Fault> = []
  /** Inserts the entries, without those that are refused; returns the keys of those that were not there. */
  const insert = (entries: ReadonlyArray<Entry>): Effect.Effect<ReadonlySet<string>, SqlError.SqlError> =>
    Effect.gen(function* () {
      const outcome = yield* Effect.result(sql.withTransaction(insertEntries(sql, columns, entries)))
      if (outcome._tag === "Success") return outcome.success
      const refusal = dataFault(outcome.failure)
      if (refusal === undefined) return yield* outcome.failure
      if (entries.length === 1) {
        found.push(faultAt(entries[0]!, refusal))
        return new Set<string>()
      }
      const half = entries.length >> 1
      return new Set([...(yield* insert(entries.slice(0, half))), ...(yield* insert(entries.slice(half)))])
    })
  return Effect.gen(function* () {
    const inserted = yield* insert([root])
    // The parts of a record that is refused are refused with it.
    if (found.length > 0) return found
    // Another import wrote the record meanwhile, and its parts.
    if (!inserted.has(keyOf(root))) return []
    for (const [, entries] of Map.groupBy(parts, ({ table }) => table)) yield* insert(entries)
    yield* large?.inPieces(insert) ?? Effect.void
    return found
  })
}
