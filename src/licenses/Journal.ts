/**
 * Commits what all actors of the node have decided, in groups: one transaction of set-based statements for everything that
 * gathered while the group before was being committed. Its fence is what makes memory safe to decide on: a license is
 * updated only where its revision, its policy's and its catalog's are still those of the decision; one that does not match
 * drops out of the group with all its rows, and its actor decides again. Replies leave only after the commit.
 */
import { Clock, Context, Effect, Layer, Schedule } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { insertAnswers } from "../auth/KeptAnswers.ts"
import { EventLog } from "../events/EventLog.ts"
import { gather } from "../postgres/Gather.ts"
import { Postgres } from "../postgres/Postgres.ts"
import { isForeignKeyViolation } from "../postgres/Sql.ts"
import { retryTransaction } from "../postgres/Transactions.ts"
import { journalGroup, journalSeconds } from "../telemetry/Metrics.ts"
import type { Draft } from "./Draft.ts"
import * as Statements from "./JournalStatements.ts"
import type { DeviceRecord } from "./LicenseState.ts"

/** `stale`: decided on revisions that are no longer the database's; nothing of it was written. */
export type Verdict = "committed" | "stale"

/** Drafts in one transaction: bounds its duration and the size of its statements. */
const groupMax = 512
/** Groups under way at once. A second one would wait for the first one's event counter anyway, and smaller groups cost more. */
const lanes = 1

export class Journal extends Context.Service<
  Journal,
  {
    /** Commits one license's draft, together with whatever else is waiting. At most one draft per license may be under way. */
    commit(draft: Draft): Effect.Effect<Verdict>
    /** Writes down that devices were seen, where nothing else was decided: it needs no fence. */
    note(devices: Iterable<DeviceRecord>): Effect.Effect<void>
  }
>()("licensing/licenses/Journal") {
  static readonly layer = Layer.effect(
    Journal,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { pipelined } = yield* Postgres
      const { appendRows } = yield* EventLog

      const write = Effect.fnUntraced(function* (
        drafts: ReadonlyArray<Draft>,
        onFenced: (fenced: Statements.Fenced) => void
      ) {
        const fenced = yield* Statements.fence(sql, drafts)
        onFenced(fenced)
        const won = drafts.filter((draft) => fenced.winners.has(draft.base.license.id))
        yield* Effect.all(
          [
            Statements.profiles(sql, won),
            Statements.othersReset(sql, won),
            Statements.devices(sql, won),
            Statements.assignments(sql, won),
            Statements.removedAssignments(sql, won),
            Statements.leases(sql, won),
            Statements.seen(sql, won),
            keepAnswers(sql, won),
            // The counter row is locked last in every transaction: one lock order everywhere.
            appendRows(
              won.flatMap((draft) => draft.events),
              won.flatMap((draft) => draft.ledger)
            )
          ],
          { concurrency: "unbounded", discard: true }
        )
        return drafts.map(verdictOf(fenced))
      })

      const measured = yield* makeMeasured

      const commitGroup = (drafts: ReadonlyArray<Draft>) => {
        let fenced: Statements.Fenced | undefined
        return retryTransaction(
          pipelined(
            write(drafts, (result) => {
              fenced = result
            })
          )
        ).pipe(
          measured(drafts.length),
          Effect.catch((error) => Effect.map(outcome(sql, fenced, error), () => drafts.map(verdictOf(fenced!))))
        )
      }

      /** A draft that the database refuses must not take the others of its group with it: each is then tried alone. */
      const commitAll = (drafts: ReadonlyArray<Draft>): Effect.Effect<ReadonlyArray<Effect.Effect<Verdict>>> =>
        commitGroup(drafts).pipe(
          Effect.map((verdicts) => verdicts.map((verdict) => Effect.succeed(verdict))),
          Effect.catch((error) => {
            if (drafts.length > 1)
              return Effect.map(
                Effect.forEach(drafts, (draft) => commitAll([draft])),
                (alone) => alone.flat()
              )
            return Effect.succeed([isOvertaken(error) ? Effect.succeed<Verdict>("stale") : Effect.die(error)])
          })
        )

      const commit = yield* gather({ lanes, batchMax: groupMax, run: commitAll })
      const noteAll = Effect.fnUntraced(function* (sights: ReadonlyArray<ReadonlyArray<DeviceRecord>>) {
        yield* retryTransaction(Statements.note(sql, sights.flat()))
        return sights.map(() => undefined)
      }, Effect.orDie)
      const note = yield* gather({ lanes: 1, batchMax: groupMax, run: noteAll })
      return Journal.of({
        commit: (draft) => Effect.flatten(commit(draft)),
        note: (devices) => note(Array.from(devices))
      })
    })
  )
}

/** Tells metrics how many licenses a commit wrote and how long that took. */
const makeMeasured = Effect.contextWith((context: Context.Context<never>) =>
  Effect.map(
    Clock.Clock,
    (clock) =>
      (licenses: number) =>
      <A, E, R>(commit: Effect.Effect<A, E, R>) =>
        Effect.suspend(() => {
          const started = clock.monotonicTimeNanosUnsafe()
          return Effect.onExit(commit, () =>
            Effect.sync(() => {
              journalGroup.updateUnsafe(licenses, context)
              journalSeconds.updateUnsafe(Number(clock.monotonicTimeNanosUnsafe() - started) / 1e9, context)
            })
          )
        })
  )
)

const keepAnswers = (sql: SqlClient.SqlClient, drafts: ReadonlyArray<Draft>) => {
  const rows = drafts.flatMap((draft) => draft.answers)
  return rows.length === 0 ? Effect.void : insertAnswers(sql, rows)
}

const verdictOf =
  ({ winners }: Statements.Fenced) =>
  (draft: Draft): Verdict =>
    winners.has(draft.base.license.id) ? "committed" : "stale"

/** A unique row that another node wrote first, or a record that was deleted after it was found: deciding again will see it. */
const isOvertaken = (error: SqlError.SqlError): boolean =>
  error.reason._tag === "UniqueViolation" || isForeignKeyViolation(error)

/**
 * What became of a transaction whose connection was lost, perhaps while it was being committed: PostgreSQL remembers it by
 * its id. Succeeds if it was committed, else fails with the error as it was.
 */
const outcome = (sql: SqlClient.SqlClient, fenced: Statements.Fenced | undefined, error: SqlError.SqlError) => {
  const transactionId = fenced?.transactionId
  if (error.reason._tag !== "ConnectionError" || transactionId === undefined) return Effect.fail(error)
  return sql<{ readonly status: string | null }>`SELECT pg_xact_status(${transactionId}::xid8) AS status`.pipe(
    Effect.flatMap(([row]) =>
      row?.status === "committed" ? Effect.void : Effect.fail(row?.status === "in progress" ? stillRunning : error)
    ),
    Effect.retry({
      while: (failure) => failure === stillRunning || failure !== error,
      schedule: Schedule.spaced("200 millis"),
      times: 50
    }),
    Effect.mapError(() => error)
  )
}
const stillRunning = "the transaction is still in progress"
