/**
 * Writes a group: its licenses with the fence, and all rows of the written licenses. A write succeeds if its group is
 * committed, and fails if it never will be, also after a lost connection.
 */
import { Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { insertResponses } from "../../access/idempotency/StoredResponses.ts"
import type { Entry } from "../../ledger/events/Entry.ts"
import { EventLog } from "../../ledger/events/EventLog.ts"
import { insertMails } from "../../ledger/mail/MailRows.ts"
import { Postgres } from "../../platform/postgres/driver/Postgres.ts"
import { retryTransaction } from "../../platform/postgres/driver/Transactions.ts"
import { restate, restatedTogether, withoutStateTrigger } from "../rows/StateRows.ts"
import type { Gathering } from "./CommitQueue.ts"
import { changesOfEarlierEpoch, type Epoch, isOfEpoch, renewingEpoch } from "./Epoch.ts"
import * as Fence from "./Fence.ts"
import { makeKnownOutcomes } from "./GroupOutcome.ts"
import * as Statements from "./JournalStatements.ts"
import type { PendingChanges } from "./PendingChanges.ts"

type WriteEffect = Effect.Effect<unknown, SqlError.SqlError>

export type GroupWrites = Effect.Success<ReturnType<typeof makeGroupWrites>>

export const makeGroupWrites = Effect.fnUntraced(function* (epoch: Epoch, gathering: Gathering) {
  const sql = yield* SqlClient.SqlClient
  const { inOneWrite, pipelined } = yield* Postgres
  const { appendAtOnce, appendInCommit } = yield* EventLog
  const ofEpoch = renewingEpoch(epoch)
  const withKnownOutcome = yield* makeKnownOutcomes

  /** All rows of the changes, written after the fence. Events come last, because their counter is locked last. */
  const rowsOf = (
    group: ReadonlyArray<PendingChanges>,
    append: (entries: ReadonlyArray<Entry>) => WriteEffect,
    restated: ReadonlyArray<PendingChanges> = []
  ): ReadonlyArray<WriteEffect> => {
    const entries = group.flatMap((pending) => pending.entries)
    const stored = group.flatMap((pending) => pending.stored)
    const responses = stored.flatMap(({ response }) => response ?? [])
    const mails = stored.flatMap(({ mails = [] }) => mails)
    return [
      ...Statements.rowsOf(sql, group),
      ...(restated.length === 0 ? [] : [restate(sql, restated)]),
      ...(responses.length === 0 ? [] : [insertResponses(sql, responses)]),
      ...(mails.length === 0 ? [] : [insertMails(sql, mails)]),
      ...(entries.length === 0 ? [] : [append(entries)])
    ]
  }

  const sendAll = Effect.fnUntraced(function* (
    group: ReadonlyArray<PendingChanges>,
    groupId: Fence.GroupId,
    others: ReadonlyArray<WriteEffect>
  ) {
    if (!group.every(isOfEpoch(groupId))) return yield* Effect.fail(changesOfEarlierEpoch)
    let wake: (() => void) | undefined
    for (const pending of group) pending.revision = groupId.revision
    const append = (entries: ReadonlyArray<Entry>) =>
      Effect.map(appendAtOnce(entries), (appended) => {
        wake = appended.wake
        gathering.waited(appended.waitedMillis)
      })
    const restated = restatedTogether(group)
    const before = restated.length === 0 ? others : [...others, withoutStateTrigger(sql)]
    const fenced = [...Fence.lockTargets(sql, group), Fence.fenceAll(sql, groupId, group)]
    yield* inOneWrite([...before, ...fenced, ...rowsOf(group, append, restated)])
    wake?.()
  })

  /** Writes the whole group in one round trip, after other statements. `next` numbers the group. */
  const writeAll = (
    group: ReadonlyArray<PendingChanges>,
    next: () => Fence.GroupId,
    others: ReadonlyArray<WriteEffect> = []
  ) => retryTransaction(withKnownOutcome((groupId) => sendAll(group, groupId, others), next))

  /** Runs a write of several steps in a transaction. Each attempt is a new group, numbered by `next`. */
  const inTransaction = (write: (groupId: Fence.GroupId) => WriteEffect, next: () => Fence.GroupId) =>
    retryTransaction(
      withKnownOutcome(
        ofEpoch((groupId) => pipelined(write(groupId))),
        next
      )
    )

  /** Writes the current changes within a transaction, and returns the ids of their licenses. */
  const writeFenced = Effect.fnUntraced(function* (all: ReadonlyArray<PendingChanges>, groupId: Fence.GroupId) {
    const group = all.filter(isOfEpoch(groupId))
    if (group.length === 0) return noLicenses
    for (const pending of group) pending.revision = groupId.revision
    yield* Effect.all(Fence.lockTargets(sql, group), { discard: true })
    const writtenIds = yield* Fence.fence(sql, groupId, group)
    const rows = rowsOf(
      group.filter((pending) => writtenIds.has(pending.base.license.id)),
      appendInCommit
    )
    yield* Effect.all(rows, { concurrency: "unbounded", discard: true })
    return writtenIds
  })

  return { writeAll, inTransaction, writeFenced }
})

const noLicenses: ReadonlySet<string> = new Set()
