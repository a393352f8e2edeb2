/**
 * Commits what all actors of the node have decided, in groups: one transaction of set-based statements for everything that
 * gathered while the group before was being committed. Its fence is what makes memory safe to decide on: a license is
 * updated only where its revision, its policy's and its catalog's are still those of the decision; one that does not match
 * drops out of the group with all its rows, and its actor decides again. Replies leave only after the commit.
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

/** `stale`: decided on revisions that are no longer the database's; nothing of it was written. */
export type Verdict = "committed" | "stale"

/** Drafts in one transaction: bounds its duration and the size of its statements. */
const groupMax = 512
/**
 * Groups under way at once. A second one would wait for the first one's event counter anyway, and smaller groups cost more;
 * and the groups' numbers rise only while one follows the other.
 */
const lanes = 1

const committed = Exit.succeed<Verdict>("committed")
const stale = Exit.succeed<Verdict>("stale")

type Write = Effect.Effect<unknown, SqlError.SqlError>

export class Journal extends Context.Service<
  Journal,
  {
    /** Commits one license's draft, together with whatever else is waiting. At most one draft per license may be under way. */
    readonly commit: SubmitToBatch<PendingChanges, Verdict>
    /**
     * The same for a license that was overtaken by others again and again: it is locked first, and what `decide` then gives, if anything,
     * is written before anybody else can change it. `decide` runs in the transaction that holds the lock, maybe more than once.
     */
    locked(licenseId: string, decide: Effect.Effect<PendingChanges | undefined>): Effect.Effect<Verdict>
    /** Writes down that devices were seen, where nothing else was decided: it needs no fence. */
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

      /** Everything that belongs to the drafts, behind their fence. Events come last, for their counter's lock does. */
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

      /** The whole group in one round trip: it holds and is committed as it stands, or nothing of it is written. */
      const writeAll = Effect.fnUntraced(function* (drafts: ReadonlyArray<PendingChanges>, group: Fence.Group) {
        let queued = false
        const append = (entries: ReadonlyArray<Entry>) =>
          Effect.map(appendAtOnce(entries), (some) => {
            queued = some
          })
        yield* atOnce([Fence.fenceAll(sql, group, drafts), ...rowsOf(drafts, append)])
        if (queued) deliveriesQueued.openUnsafe()
      })

      /** Within a transaction, those of the drafts that still hold: the ids of their licenses. */
      const writeFenced = Effect.fnUntraced(function* (drafts: ReadonlyArray<PendingChanges>, group: Fence.Group) {
        const held = yield* Fence.fence(sql, group, drafts)
        const rows = rowsOf(
          drafts.filter((draft) => held.has(draft.base.license.id)),
          appendRows
        )
        yield* Effect.all(rows, { concurrency: "unbounded", discard: true })
        return held
      })

      /** Succeeds where the group is committed, fails where it is not and never will be, and dies where nobody can tell. */
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

      /** Whether the last group had drafts that did not hold: while others write the same licenses, the next one has such, too. */
      let isContested = false

      /** Commits those of the drafts that still hold. */
      const commitHolding = (drafts: ReadonlyArray<PendingChanges>) => {
        let held: ReadonlySet<string> = new Set()
        // Learned ahead of the commit, whose answer may be lost.
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
          // Of one license alone nothing is saved: nearly always it holds when it is tried as a whole.
          isContested && drafts.length > 1
            ? commitHolding(drafts)
            : retryTransaction(certain((group) => writeAll(drafts, group))).pipe(
                Effect.as(drafts.map((): Verdict => "committed")),
                Effect.catchIf(isChangedMeanwhile, () => commitHolding(drafts))
              )
        ).pipe(measured(drafts.length))

      /** A draft that the database refuses must not take the others of its group with it: each is then tried alone. */
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

      /** Drafts that count what was counted before are decided again; the others are tried without them. */
      const commitNew = Effect.fnUntraced(function* (drafts: ReadonlyArray<PendingChanges>) {
        const repeating = yield* Effect.orDie(Statements.repeating(sql, drafts))
        if (repeating.size === 0) return yield* commitEach(drafts)
        const fresh = drafts.filter((draft) => !repeating.has(draft.base.license.id))
        const verdicts = (fresh.length === 0 ? [] : yield* commitAll(fresh)).values()
        return drafts.map((draft) => (repeating.has(draft.base.license.id) ? stale : verdicts.next().value!))
      })

      const nextLocked = yield* makeNumbers
      // One at a time, for their numbers must rise as well; and they hold up all groups that have the same license among them.
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

/** Numbers the groups of this journal, which has a name of its own among those of all nodes. */
const makeNumbers = Effect.gen(function* () {
  const clock = yield* Clock.Clock
  const journal = `${yield* Random.nextInt}.${yield* Random.nextInt}`
  let last = 0
  return (): Fence.Group => ({ journal, number: ++last, at: clock.currentTimeMillisUnsafe() })
})

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

/** A unique row that another node wrote first, or a record that was deleted after it was found: deciding again will see it. */
const isOvertaken = (error: SqlError.SqlError): boolean =>
  error.reason._tag === "UniqueViolation" || isForeignKeyViolation(error)

/**
 * What became of a group whose connection was lost, perhaps while it was being committed: its number stands in the journal's
 * row or does not. What the server may still have to read of it is void from then on.
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
