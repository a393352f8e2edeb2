/** Commits changes of many licenses and other statements in one transaction: all of them, or nothing. */
import { Effect } from "effect"
import { SqlClient, SqlError } from "effect/sql"
import { columns } from "../../platform/postgres/driver/Parameters.ts"
import { Postgres } from "../../platform/postgres/driver/Postgres.ts"
import { mayTakeLong, retryTransaction } from "../../platform/postgres/driver/Transactions.ts"
import { concurrentChange } from "../../platform/postgres/queries/Sql.ts"
import type { CommitNeeds } from "./GroupCommits.ts"
import type { PendingChanges } from "./PendingChanges.ts"

interface ManyChanges {
  readonly group: ReadonlyArray<PendingChanges>
  readonly statements: ReadonlyArray<Effect.Effect<unknown, SqlError.SqlError>>
}

/** Both fail with a concurrent change if a decision is outdated. */
export interface ManyCommits {
  /** In one round trip, so that no lock is held while this process runs other tasks. */
  commit(changes: ManyChanges): Effect.Effect<void, SqlError.SqlError>
  /** Locks the licenses, runs `decide` within the transaction, and writes what it returns. It runs again after a conflict. */
  locked(
    ids: ReadonlyArray<string>,
    decide: Effect.Effect<ManyChanges, SqlError.SqlError>
  ): Effect.Effect<void, SqlError.SqlError>
}

const outdated = new SqlError.SqlError({
  reason: new SqlError.UnknownError({
    cause: { code: concurrentChange },
    message: "A policy or product was changed meanwhile."
  })
})

export const makeManyCommits = Effect.fnUntraced(function* ({ ids, writes }: CommitNeeds) {
  const sql = yield* SqlClient.SqlClient
  const { inOneWrite } = yield* Postgres

  const commit: ManyCommits["commit"] = ({ group, statements }) =>
    group.length === 0
      ? retryTransaction(inOneWrite(statements))
      : writes.writeAll(group, ids.nextMany, [mayTakeLong(sql), ...statements])

  const locked: ManyCommits["locked"] = (licenseIds, decide) =>
    writes.inTransaction(
      Effect.fnUntraced(function* (groupId) {
        yield* mayTakeLong(sql)
        yield* sql`
          SELECT FROM licenses WHERE id = ANY(${columns.text(licenseIds)}) ORDER BY id FOR NO KEY UPDATE`
        const { group, statements } = yield* decide
        yield* Effect.all(statements, { discard: true })
        if (group.length === 0) return
        const written = yield* writes.writeFenced(group, groupId)
        if (written.size < group.length) yield* outdated
      }),
      ids.nextMany
    )

  return { commit, locked } satisfies ManyCommits
})
