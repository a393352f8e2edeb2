/**
 * Commits the decisions of all actors of the node in groups. A group is one transaction of set-based statements, for
 * everything that arrived while the previous group was committed. Its fence makes decisions on cached state safe: a
 * license is updated only if its revision, its policy's and its catalog's are still those of the decision. A license
 * that fails the fence is left out with all its rows, and its actor decides again. Replies leave only after the commit.
 */
import { Clock, Context, Effect, Exit, Layer, Random, Schedule, Semaphore } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { insertResponses } from "../../auth/idempotency/StoredResponses.ts"
import { type Entry, EventLog } from "../../events/EventLog.ts"
import { makeBatcher, type SubmitToBatch } from "../../postgres/Batcher.ts"
import { Postgres } from "../../postgres/Postgres.ts"
import { isChangedMeanwhile, isForeignKeyViolation, violates } from "../../postgres/Sql.ts"
import { retryTransaction } from "../../postgres/Transactions.ts"
import { journalGroup, journalSeconds } from "../../telemetry/Metrics.ts"
import type { DeviceRecord } from "../model/LicenseRecords.ts"
import * as Fence from "./Fence.ts"
import * as Statements from "./JournalStatements.ts"
import type { PendingChanges } from "./PendingChanges.ts"

/** `stale`: decided on outdated revisions; nothing was written. */
export type Verdict = "committed" | "stale"

/** Licenses in one transaction: bounds its duration and the size of its statements. */
const groupMax = 512
/**
 * Groups in progress at the same time. A second one would wait for the first one's event counter anyway, and smaller
 * groups cost more. Also, the groups' numbers rise only if groups run one after another.
 */
const lanes = 1

const committed = Exit.succeed<Verdict>("committed")
const stale = Exit.succeed<Verdict>("stale")

type Write = Effect.Effect<unknown, SqlError.SqlError>

export class Journal extends Context.Service<
  Journal,
  {
    /**
     * Commits one license's pending changes, in a group with all others that wait. One commit per license at a time.
     */
    readonly commit: SubmitToBatch<PendingChanges, Verdict>
    /**
     * Commits a license that other nodes have overtaken several times. Locks the license first, then runs `decide` and
     * writes the changes that it returns, if any, before anyone else can change the license. `decide` runs in the
     * transaction that holds the lock, and runs again if the transaction is retried.
     */
    locked(licenseId: string, decide: Effect.Effect<PendingChanges | undefined>): Effect.Effect<Verdict>
    /** Records that devices were seen, when nothing else was decided. Needs no fence. */
    readonly note: SubmitToBatch<ReadonlyArray<DeviceRecord>, void>
  }
>()("licensing/licenses/engine/Journal") {
  static readonly layer = Layer.effect(
    Journal,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { atOnce, pipelined } = yield* Postgres
      const { appendAtOnce, appendRows, deliveriesQueued } = yield* EventLog
      const nextGroup = yield* makeNumbers
      const measured = yield* makeMeasured

      /**
       * All rows that belong to the changes, written after the fence. Events come last, because their counter's lock is
       * taken last.
       */
      const rowsOf = (
        drafts: ReadonlyArray<PendingChanges>,
        append: (entries: ReadonlyArray<Entry>) => Write
      ): ReadonlyArray<Write> => {
        const entries = drafts.flatMap((draft) => draft.entries)
        const answers = drafts.flatMap((draft) => draft.answers)
        return [
          ...Statements.rowsOf(sql, drafts),
          ...(answers.length === 0 ? [] : [insertResponses(sql, answers)]),
          ...(entries.length === 0 ? [] : [append(entries)])
        ]
      }

      /** Writes the whole group in one round trip: all of it commits, or nothing is written. */
      const writeAll = Effect.fnUntraced(function* (drafts: ReadonlyArray<PendingChanges>, group: Fence.Group) {
        let queued = false
        const append = (entries: ReadonlyArray<Entry>) =>
          Effect.map(appendAtOnce(entries), (some) => {
            queued = some
          })
        yield* atOnce([Fence.fenceAll(sql, group, drafts), ...rowsOf(drafts, append)])
        if (queued) deliveriesQueued.openUnsafe()
      })

      /** Within a transaction, writes the changes that are still current and returns the ids of their licenses. */
      const writeFenced = Effect.fnUntraced(function* (drafts: ReadonlyArray<PendingChanges>, group: Fence.Group) {
        const held = yield* Fence.fence(sql, group, drafts)
        const rows = rowsOf(
          drafts.filter((draft) => held.has(draft.base.license.id)),
          appendRows
        )
        yield* Effect.all(rows, { concurrency: "unbounded", discard: true })
        return held
      })

      /**
       * Succeeds if the group is committed, fails if it is not and never will be, and dies if the outcome cannot be
       * determined.
       */
      const certain = (write: (group: Fence.Group) => Write, next = nextGroup) =>
        Effect.suspend(() => {
          const group = next()
          return Effect.catch(write(group), (error) => {
            if (error.reason._tag !== "ConnectionError") return Effect.fail(error)
            return Effect.flatMap(wasCommitted(sql, group, next), (committed) =>
              committed ? Effect.sync(() => deliveriesQueued.openUnsafe()) : Effect.fail(error)
            )
          })
        })

      /**
       * Whether the last group had stale changes. While other nodes write the same licenses, the next group will have
       * some, too.
       */
      let isContested = false

      /** Commits the changes that are still current. */
      const commitHolding = (drafts: ReadonlyArray<PendingChanges>) => {
        let held: ReadonlySet<string> = new Set()
        // Set before the commit, because the commit's answer may be lost.
        const learn = (ids: ReadonlySet<string>) => {
          held = ids
        }
        const write = (group: Fence.Group) => pipelined(Effect.map(writeFenced(drafts, group), learn))
        return Effect.map(retryTransaction(certain(write)), () => {
          isContested = held.size < drafts.length
          return drafts.map((draft): Verdict => (held.has(draft.base.license.id) ? "committed" : "stale"))
        })
      }

      const commitGroup = (drafts: ReadonlyArray<PendingChanges>) =>
        Effect.suspend(() =>
          // For a single license this saves nothing: the attempt as a whole nearly always succeeds.
          isContested && drafts.length > 1
            ? commitHolding(drafts)
            : retryTransaction(certain((group) => writeAll(drafts, group))).pipe(
                Effect.as(drafts.map((): Verdict => "committed")),
                Effect.catchIf(isChangedMeanwhile, () => commitHolding(drafts))
              )
        ).pipe(measured(drafts.length))

      /**
       * Changes that the database refuses must not fail the others of their group: then each license is tried
       * separately.
       */
      const commitAll = (drafts: ReadonlyArray<PendingChanges>): Effect.Effect<ReadonlyArray<Exit.Exit<Verdict>>> =>
        commitGroup(drafts).pipe(
          Effect.map((verdicts) => verdicts.map((verdict) => (verdict === "stale" ? stale : committed))),
          Effect.catch((error) => {
            if (drafts.length === 1) return Effect.succeed([isOvertaken(error) ? stale : Exit.die(error)])
            return violates(error, "usage_ledger_event_id") ? commitNew(drafts) : commitEach(drafts)
          })
        )

      const commitEach = (drafts: ReadonlyArray<PendingChanges>) =>
        Effect.map(
          Effect.forEach(drafts, (draft) => commitAll([draft])),
          (verdicts) => verdicts.flat()
        )

      /** Changes with an event id that was counted before are decided again; the others are committed without them. */
      const commitNew = Effect.fnUntraced(function* (drafts: ReadonlyArray<PendingChanges>) {
        const repeating = yield* Effect.orDie(Statements.repeating(sql, drafts))
        if (repeating.size === 0) return yield* commitEach(drafts)
        const fresh = drafts.filter((draft) => !repeating.has(draft.base.license.id))
        const verdicts = (fresh.length === 0 ? [] : yield* commitAll(fresh)).values()
        return drafts.map((draft) => (repeating.has(draft.base.license.id) ? stale : verdicts.next().value!))
      })

      const nextLocked = yield* makeNumbers
      // One at a time, because their numbers must rise as well, and because they block every group that includes the
      // same license.
      const lock = yield* Semaphore.make(1)
      const locked = (licenseId: string, decide: Effect.Effect<PendingChanges | undefined>) => {
        let verdict: Verdict = "committed"
        const write = (group: Fence.Group) =>
          pipelined(
            Effect.gen(function* () {
              verdict = "committed"
              yield* sql`SELECT FROM licenses WHERE id = ${licenseId} FOR NO KEY UPDATE`
              const draft = yield* decide
              if (draft === undefined) return
              const held = yield* writeFenced([draft], group)
              verdict = held.size === 0 ? "stale" : "committed"
            })
          )
        return retryTransaction(certain(write, nextLocked)).pipe(
          Effect.map(() => verdict),
          Effect.catch((error) => (isOvertaken(error) ? Effect.succeed<Verdict>("stale") : Effect.die(error))),
          measured(1),
          lock.withPermit
        )
      }

      const groups = yield* makeBatcher({ lanes, batchMax: groupMax, run: commitAll })
      const noteAll = Effect.fnUntraced(function* (sights: ReadonlyArray<ReadonlyArray<DeviceRecord>>) {
        yield* retryTransaction(Statements.recordSeenDevices(sql, sights.flat()))
        return sights.map(() => undefined)
      }, Effect.orDie)
      const { push: note } = yield* makeBatcher({ lanes: 1, batchMax: groupMax, run: noteAll })
      const commit: SubmitToBatch<PendingChanges, Verdict> = (draft, settle) =>
        groups.push(draft, (exit) => settle(Exit.isSuccess(exit) ? exit.value : Exit.failCause(exit.cause)))
      return Journal.of({ commit, locked, note })
    })
  )
}

/** Numbers the groups of this journal. The journal's name is unique among all nodes. */
const makeNumbers = Effect.gen(function* () {
  const clock = yield* Clock.Clock
  const journal = `${yield* Random.nextInt}.${yield* Random.nextInt}`
  let last = 0
  return (): Fence.Group => ({ journal, number: ++last, at: clock.currentTimeMillisUnsafe() })
})

/** Records how many licenses a commit wrote and how long it took. */
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

/**
 * A unique row that another node wrote first, or a record that was deleted after it was read: the next decision will
 * see it.
 */
const isOvertaken = (error: SqlError.SqlError): boolean =>
  error.reason._tag === "UniqueViolation" || isForeignKeyViolation(error)

/**
 * Whether a group was committed whose connection was lost, perhaps during the commit. The journal's row has the group's
 * number or it has not. Statements of the group that the server has not read yet are void from then on.
 */
const wasCommitted = (sql: SqlClient.SqlClient, group: Fence.Group, nextGroup: () => Fence.Group) =>
  retryTransaction(
    sql.withTransaction(
      Effect.gen(function* () {
        const [row] = yield* Fence.lastGroup(sql, group)
        if (row!.last_group === group.number) return true
        yield* Fence.giveUp(sql, nextGroup())
        return false
      })
    )
  ).pipe(Effect.retry({ schedule: Schedule.spaced("200 millis"), times: 50 }), Effect.orDie)
