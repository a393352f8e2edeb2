/**
 * Decides one command for many licenses without their actors: each license on its own state, all of them read in one
 * snapshot. The caller commits the changes with the fence, so an actor's later change makes the decision outdated.
 */
import { Clock, Context, Effect, identity } from "effect"
import { SqlClient } from "effect/sql"
import type { Code } from "../../contract/api/ErrorCode.ts"
import type { Refusal } from "../../contract/api/Failure.ts"
import { Postgres } from "../../platform/postgres/driver/Postgres.ts"
import { PendingChanges } from "../engine/PendingChanges.ts"
import { decide, isRefused, pendingCommand } from "../engine/PendingCommand.ts"
import { LicenseLookups, type Lookups } from "../lookups/LicenseLookups.ts"
import { inOneSnapshot, LicenseStore } from "../lookups/LicenseStore.ts"
import { prefetch } from "../lookups/Prefetch.ts"
import type { LicenseRecord, TargetPolicy } from "../model/LicenseRecords.ts"
import { refuseUnknownLicense } from "../model/UnknownLicense.ts"
import type { Origin, Rule } from "../rules/LicenseCommand.ts"
import { settle } from "../rules/Lifecycle.ts"
import type { CommittedState } from "../state/CommittedState.ts"

/** A command for many licenses, with the command for each of them. */
export interface SharedCommand {
  readonly rule: Rule<unknown, unknown, Code>
  readonly commandOf: (license: LicenseRecord) => unknown
  readonly origin: Origin
  /** Whether the license may be reached; otherwise it counts as unknown. */
  readonly reaches: (license: LicenseRecord) => boolean
  /** Whether the decisions are only counted, and not committed. */
  readonly isDryRun: boolean
  /** Whether a dry run needs no features, devices and leases. */
  readonly isBare: boolean
}

/** Whether a license changes, or why it is refused. */
export interface LicenseDecision {
  readonly licenseId: string
  readonly isChanged: boolean
  /** Absent in a dry run, because a thousand of them would outlive V8's young generation. */
  readonly changes?: PendingChanges
  readonly refusal?: Refusal
}

/** After so many licenses requests have their turn. Without it they wait for all decisions of a step. */
const turnSize = 5

export const makeManyDecisions = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const store = yield* LicenseStore
  const { inTransaction } = yield* LicenseLookups
  const { pipelined } = yield* Postgres

  const decideOne = Effect.fnUntraced(function* (
    lookups: Lookups,
    state: CommittedState,
    { commandOf, isDryRun, origin, reaches, rule }: SharedCommand,
    now: number
  ): Effect.fn.Return<LicenseDecision> {
    const { license } = state
    const licenseId = license.id
    if (!reaches(license)) return unknown(licenseId)
    const command = commandFor(license, { commandOf, origin, rule })
    const changes = new PendingChanges(state, yield* prefetch(lookups, state, [command], now, true))
    const [decision] = decide(changes, [command], now)
    if (isRefused(decision!)) return { licenseId, isChanged: false, refusal: decision.refusal }
    const isChanged = changes.changed
    return isChanged && !isDryRun ? { licenseId, isChanged, changes } : { licenseId, isChanged }
  })

  /** Reads and decides within the running transaction. */
  const decideAll = Effect.fnUntraced(function* (ids: ReadonlyArray<string>, command: SharedCommand) {
    const states = yield* command.isBare ? store.loadBareInTransaction(ids) : store.loadManyInTransaction(ids)
    const lookups = besideStates(inTransaction)
    const now = yield* Clock.currentTimeMillis
    const decisions: Array<LicenseDecision> = []
    for (const [index, id] of ids.entries()) {
      if (index % turnSize === turnSize - 1) yield* Effect.yieldNow
      const state = states[index]
      decisions.push(state === undefined ? unknown(id) : yield* decideOne(lookups, state, command, now))
    }
    return decisions
  })

  /** What the clock changes is part of both states. */
  const previewOne = Effect.fnUntraced(function* (id: string, shared: SharedCommand) {
    const [state] = yield* store.loadManyInTransaction([id])
    if (state === undefined || !shared.reaches(state.license)) return undefined
    const now = yield* Clock.currentTimeMillis
    const command = commandFor(state.license, shared)
    const prefetched = yield* prefetch(besideStates(inTransaction), state, [command], now, true)
    const [before, after] = [new PendingChanges(state, prefetched), new PendingChanges(state, prefetched)]
    before.settle(settle(before, now), now)
    const [decision] = decide(after, [command], now)
    return { before, after, now, refusal: isRefused(decision!) ? decision.refusal : undefined }
  })

  return {
    /** In a snapshot of its own. */
    decide: (ids: ReadonlyArray<string>, command: SharedCommand) =>
      Effect.orDie(inOneSnapshot(pipelined(decideAll(ids, command)))),
    /** One license before and after the command, in a snapshot of its own; undefined if it is unknown. */
    preview: (id: string, command: SharedCommand) =>
      Effect.orDie(inOneSnapshot(pipelined(previewOne(id, command)))).pipe(
        // The transaction of an Idempotency-Key has no such snapshot.
        Effect.updateContext((context: Context.Context<never>) => Context.omit(sql.transactionService)(context))
      ),
    /** Within the running transaction, which has locked the licenses. */
    decideLocked: decideAll
  }
})

const commandFor = (
  license: LicenseRecord,
  { commandOf, origin, rule }: Pick<SharedCommand, "commandOf" | "origin" | "rule">
) =>
  pendingCommand({
    rule,
    command: commandOf(license),
    origin,
    begin: identity,
    resume: () => {},
    span: undefined
  })

const unknown = (licenseId: string): LicenseDecision => ({
  licenseId,
  isChanged: false,
  refusal: refuseUnknownLicense(licenseId)
})

/** Look-ups beside states that were read in the same snapshot or under their locks. Each policy is read once. */
const besideStates = (lookups: Lookups): Lookups => {
  const policies = new Map<string, TargetPolicy | undefined>()
  return {
    ...lookups,
    inOneSnapshot: (_, reads) => Effect.as(Effect.all(reads, { discard: true }), undefined),
    targetPolicy: (id) =>
      policies.has(id)
        ? Effect.succeed(policies.get(id))
        : Effect.tap(lookups.targetPolicy(id), (policy) => Effect.sync(() => policies.set(id, policy)))
  }
}
