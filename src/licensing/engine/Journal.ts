/**
 * Commits the decisions of all actors of the node in groups. A group is one transaction of set-based statements, for
 * all decisions that arrived during the previous group. Its fence makes decisions on cached state safe: a license is
 * updated only if its revision, its policy's and its catalog's are still those of the decision. A license that fails
 * the fence is omitted with all its rows, and its actor decides again. Responses are sent only after the commit.
 */
import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { makeBatcher, type SubmitToBatch } from "../../platform/postgres/driver/Batcher.ts"
import { retryTransaction } from "../../platform/postgres/driver/Transactions.ts"
import { isLockTimeout } from "../../platform/postgres/queries/Sql.ts"
import type { DeviceRecord } from "../model/LicenseRecords.ts"
import { groupMax, makeCommitQueue, makeGathering } from "./CommitQueue.ts"
import {
  type CommitResult,
  type LockedCommitResult,
  makeLockedRetry,
  makeLockWait,
  makeWhileLogBusy
} from "./CommitResult.ts"
import { type Epoch, makeEpoch } from "./Epoch.ts"
import { makeGroupCommits, makeMeasure } from "./GroupCommits.ts"
import { makeGroupIds, makeRetire } from "./GroupOutcome.ts"
import { makeGroupWrites } from "./GroupWrites.ts"
import * as Statements from "./JournalStatements.ts"
import { makeLockedCommit } from "./LockedCommit.ts"
import { type ManyCommits, makeManyCommits } from "./ManyCommits.ts"
import type { PendingChanges } from "./PendingChanges.ts"

const seenBatches = { name: "journal.record_seen", concurrency: 1, batchMax: groupMax }

export class Journal extends Context.Service<
  Journal,
  {
    /** Commits one license's pending changes in a group. A license has one commit at a time. */
    readonly commit: SubmitToBatch<PendingChanges, CommitResult>
    /**
     * Commits a license that other nodes keep changing: locks it, runs `decide` within the transaction, and writes the
     * returned changes. `decide` runs again if the transaction is retried.
     */
    locked(licenseId: string, decide: Effect.Effect<PendingChanges | undefined>): Effect.Effect<LockedCommitResult>
    /** Commits changes of many licenses, all or none, each in one transaction with other statements. */
    readonly many: ManyCommits
    /** Records that devices were seen, without other changes and without a fence. */
    readonly recordSeen: SubmitToBatch<ReadonlyArray<DeviceRecord>, void>
    /** Whether a lock of another transaction currently delays a license's commit. */
    waitsForLock(): boolean
    readonly epoch: Epoch
    /** Ends the epoch of any node: when this returns, its commits can be read, and it has no further commits. */
    retire(epoch: string): Effect.Effect<void>
  }
>()("licensing/licensing/engine/Journal") {
  static readonly layer = Layer.effect(
    Journal,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const epoch = yield* makeEpoch
      const gathering = yield* makeGathering
      const needs = {
        writes: yield* makeGroupWrites(epoch, gathering),
        ids: yield* makeGroupIds(epoch),
        whileLogBusy: yield* makeWhileLogBusy,
        measure: yield* makeMeasure
      }
      const lockWait = yield* makeLockWait
      const { commitAll, commitAlone } = yield* makeGroupCommits(needs)
      const commit = yield* makeCommitQueue(commitAll, yield* makeLockedRetry(commitAlone, lockWait), gathering)
      const locked = yield* makeLockedCommit(needs, lockWait)

      const recordAllSeen = Effect.fnUntraced(function* (lists: ReadonlyArray<ReadonlyArray<DeviceRecord>>) {
        const devices = lists.flat()
        yield* Effect.catchIf(retryTransaction(Statements.recordSeenDevices(sql, devices)), isLockTimeout, () =>
          retryTransaction(Statements.recordFreeSeenDevices(sql, devices))
        )
        return lists.map(() => undefined)
      }, Effect.orDie)
      const { submit: recordSeen } = yield* makeBatcher({ ...seenBatches, run: recordAllSeen })
      return Journal.of({
        commit,
        locked,
        many: yield* makeManyCommits(needs),
        recordSeen,
        epoch,
        retire: yield* makeRetire,
        waitsForLock: lockWait.isRecent
      })
    })
  )
}
