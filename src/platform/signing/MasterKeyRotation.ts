/**
 * Re-encrypts every sealed secret with another master key while the service runs. The active signing key is first: every node reads
 * its row twice a second and adopts the master key that has sealed it. Then the other secrets follow, until a pass finds none. Each
 * value contains the id of its key, so an interrupted rotation can simply be started again.
 */
import { Effect, Option } from "effect"
import { SqlClient } from "effect/sql"
import { bytes, columns } from "../postgres/driver/Parameters.ts"
import { keyIdOf, type MasterKey } from "./MasterKey.ts"
import { MasterKeyUnusable } from "./MasterKeyFile.ts"
import { type SealedColumn, sealedColumns } from "./SealedColumns.ts"

/** Rows that one statement re-encrypts. */
const batchMax = 200
/** After this time every node has adopted the new key, and has stored the values that it sealed with the old one. */
const propagationDelay = "2 seconds"
/** If this many passes still find secrets, a node still seals with the old key. */
const passesMax = 10

type Key = MasterKey["Service"]

/** How many values of a column were re-encrypted. */
export interface ResealedColumn extends SealedColumn {
  readonly values: number
}

/** Re-encrypts all secrets: `from` opens the existing values, `to` seals them. */
export const rotateMasterKey = Effect.fn("MasterKeyRotation.rotate")(
  function* (from: Key, to: Key) {
    const sample = yield* to.seal(new Uint8Array(), "")
    const move = makeResealer(yield* SqlClient.SqlClient, from, to, sample.subarray(0, 5))
    const moved = new Map<SealedColumn, number>()
    const pass = (wanted: ReadonlyArray<SealedColumn>) =>
      Effect.map(
        Effect.forEach(wanted, (column) =>
          Effect.tap(move(column), (values) => Effect.sync(() => moved.set(column, (moved.get(column) ?? 0) + values)))
        ),
        (counts) => counts.reduce((sum, count) => sum + count, 0)
      )

    yield* pass(sealedColumns.slice(0, 1))
    yield* Effect.sleep(propagationDelay)
    yield* pass(sealedColumns)
    for (let passes = 0; passes < passesMax; passes++) {
      yield* Effect.sleep(propagationDelay)
      if ((yield* pass(sealedColumns)) === 0) {
        return {
          keyId: Option.getOrThrow(keyIdOf(sample)),
          moved: Array.from(moved, ([column, values]): ResealedColumn => ({ ...column, values }))
        }
      }
    }
    return yield* new MasterKeyUnusable({
      message:
        "Some node still encrypts secrets with the old master key: set LICENSING_MASTER_KEY_NEXT on every node, then run this again."
    })
  },
  Effect.catchTag("SqlError", Effect.die)
)

interface Sealed {
  readonly id: string | Uint8Array
  readonly sealed: Uint8Array
}

/** Reads each row of a column once, re-encrypts values that were not sealed with the new key, and returns their number. */
const makeResealer = (sql: SqlClient.SqlClient, from: Key, to: Key, header: Uint8Array) =>
  Effect.fnUntraced(function* ({ column, id, table, where }: SealedColumn) {
    const cell = sql(column)
    const after = (last: Sealed | undefined) => sql<Sealed>`
      SELECT ${sql(id)} AS id, ${cell} AS sealed FROM ${sql(table)}
      WHERE length(${cell}) > 0 AND substr(${cell}, 1, 5) <> ${bytes(header)}
        AND ${where === undefined ? sql`TRUE` : sql(where)}
        AND ${last === undefined ? sql`TRUE` : sql`${sql(id)} > ${typeof last.id === "string" ? last.id : bytes(last.id)}`}
      ORDER BY ${sql(id)} LIMIT ${batchMax}`
    let values = 0
    for (let rows = yield* after(undefined); rows.length > 0; rows = yield* after(rows.at(-1))) {
      const resealed = yield* Effect.forEach(rows, (row) => {
        const aad = `${table}/${nameOf(row.id)}`
        return Effect.flatMap(from.open(row.sealed, aad), (plaintext) => to.seal(plaintext, aad))
      })
      // The next pass handles a value that was replaced meanwhile.
      yield* sql`
        UPDATE ${sql(table)} SET ${cell} = resealed.sealed
        FROM unnest(${idsOf(rows)}, ${columns.bytea(rows.map((row) => row.sealed))}, ${columns.bytea(resealed)}) AS resealed (id, before, sealed)
        WHERE ${sql(table)}.${sql(id)} = resealed.id AND ${sql(table)}.${cell} = resealed.before`
      values += rows.length
    }
    return values
  })

const nameOf = (id: string | Uint8Array): string => (typeof id === "string" ? id : Buffer.from(id).toString("hex"))

const idsOf = (rows: ReadonlyArray<Sealed>) =>
  rows.every((row): row is Sealed & { id: string } => typeof row.id === "string")
    ? columns.text(rows.map((row) => row.id))
    : columns.bytea(rows.map((row) => row.id as Uint8Array))
