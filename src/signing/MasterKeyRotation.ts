/**
 * Moves every sealed secret under another master key while the service runs. The active signing key goes first: every node
 * reads its row twice a second and seals under the key that it lies under. Then all the rest follows, until nothing is found
 * any more. Each value names its key, so a rotation that broke off is simply started again.
 */
import { Effect, Option } from "effect"
import { SqlClient } from "effect/sql"
import { bytes, columns } from "../postgres/Parameters.ts"
import { keyIdOf, type MasterKey } from "./MasterKey.ts"
import { MasterKeyUnusable } from "./MasterKeyFile.ts"
import { type SealedColumn, sealedColumns } from "./SealedColumns.ts"

/** Rows that are sealed anew in one statement. */
const batchMax = 200
/** By then every node has seen under which key to seal, and has written what it had sealed before. */
const settling = "2 seconds"
/** Passes after which somebody must be still sealing under the old key. */
const passesMax = 10

type Key = MasterKey["Service"]

/** How many values of each column were moved. */
export interface Moved extends SealedColumn {
  readonly values: number
}

/** Moves all secrets: `from` opens whatever is there, `to` seals. */
export const rotateMasterKey = Effect.fn("MasterKeyRotation.rotate")(
  function* (from: Key, to: Key) {
    const marked = yield* to.seal(new Uint8Array(), "")
    const move = mover(yield* SqlClient.SqlClient, from, to, marked.subarray(0, 5))
    const moved = new Map<SealedColumn, number>()
    const pass = (wanted: ReadonlyArray<SealedColumn>) =>
      Effect.map(
        Effect.forEach(wanted, (column) =>
          Effect.tap(move(column), (values) => Effect.sync(() => moved.set(column, (moved.get(column) ?? 0) + values)))
        ),
        (counts) => counts.reduce((sum, count) => sum + count, 0)
      )

    yield* pass(sealedColumns.slice(0, 1))
    yield* Effect.sleep(settling)
    yield* pass(sealedColumns)
    for (let passes = 0; passes < passesMax; passes++) {
      yield* Effect.sleep(settling)
      if ((yield* pass(sealedColumns)) === 0) {
        return {
          keyId: Option.getOrThrow(keyIdOf(marked)),
          moved: Array.from(moved, ([column, values]): Moved => ({ ...column, values }))
        }
      }
    }
    return yield* new MasterKeyUnusable({
      message:
        "Secrets are still being sealed under the old master key: set LICENSING_MASTER_KEY_NEXT on every node, then run this again."
    })
  },
  Effect.catchTag("SqlError", Effect.die)
)

interface Sealed {
  readonly id: string | Uint8Array
  readonly sealed: Uint8Array
}

/** Looks at each row of a column once, seals what does not lie under the new key yet, and says how much that was. */
const mover = (sql: SqlClient.SqlClient, from: Key, to: Key, header: Uint8Array) =>
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
      const anew = yield* Effect.forEach(rows, (row) => {
        const place = `${table}/${nameOf(row.id)}`
        return Effect.flatMap(from.open(row.sealed, place), (plaintext) => to.seal(plaintext, place))
      })
      // A value that was replaced meanwhile is left to the next pass.
      yield* sql`
        UPDATE ${sql(table)} SET ${cell} = anew.sealed
        FROM unnest(${idsOf(rows)}, ${columns.bytea(rows.map((row) => row.sealed))}, ${columns.bytea(anew)}) AS anew (id, before, sealed)
        WHERE ${sql(table)}.${sql(id)} = anew.id AND ${sql(table)}.${cell} = anew.before`
      values += rows.length
    }
    return values
  })

const nameOf = (id: string | Uint8Array): string => (typeof id === "string" ? id : Buffer.from(id).toString("hex"))

const idsOf = (rows: ReadonlyArray<Sealed>) =>
  rows.every((row): row is Sealed & { id: string } => typeof row.id === "string")
    ? columns.text(rows.map((row) => row.id))
    : columns.bytea(rows.map((row) => row.id as Uint8Array))
