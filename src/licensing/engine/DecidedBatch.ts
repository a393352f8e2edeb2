/** Decides a batch on its license's cached state: from memory, with look-ups, or under the license's lock. */
import { Clock, Effect, Exit } from "effect"
import { LicenseLookups, type Lookups } from "../lookups/LicenseLookups.ts"
import { LicenseStore } from "../lookups/LicenseStore.ts"
import { hasEventId, missingPrefetch, nothingPrefetched, prefetch } from "../lookups/Prefetch.ts"
import { refuseUnknownLicense } from "../model/UnknownLicense.ts"
import type { CommittedState } from "../state/CommittedState.ts"
import { Journal } from "./Journal.ts"
import { PendingChanges } from "./PendingChanges.ts"
import {
  type CommandResult,
  decide,
  isRefused,
  type PendingCommand,
  resultOf,
  storeResponses
} from "./PendingCommand.ts"

/** A license and its cached state; undefined if it has to be loaded. */
export interface CachedLicense {
  readonly licenseId: string
  state: CommittedState | undefined
  /** The revision of the last outdated state, until the license is loaded again. */
  outdatedRevision: number | undefined
  /** When a change by anyone except this actor was last detected. */
  changedElsewhereAt: number
  /** Whether the running batch has decided changes. Then only the journal can abandon it. */
  decided: boolean
}

/** Drops the cached state. The license may be unchanged: edits of its policy or catalog also outdate the state. */
export const dropOutdated = (license: CachedLicense): void => {
  license.outdatedRevision ??= license.state?.license.revision
  license.state = undefined
}

/** A decided batch, not yet committed or confirmed. */
export interface DecidedBatch {
  readonly license: CachedLicense
  readonly commands: ReadonlyArray<PendingCommand>
  readonly state: CommittedState
  readonly pending: PendingChanges
  readonly results: ReadonlyArray<CommandResult>
  /** Commands whose responses are stored in the same transaction as the change. */
  readonly stored: ReadonlyArray<PendingCommand>
  /** Whether the revisions were read as current after the commands arrived. */
  readonly confirmed: boolean
}

/** `stale`: decide again on a newer state. `eventIdsNeeded`: decide again with event ids looked up. */
export type BatchResult = ReadonlyArray<CommandResult> | "stale" | "eventIdsNeeded"

/** The result of a submitted batch, which needs no event ids. */
export type SubmittedResult = Exclude<BatchResult, "eventIdsNeeded">

export const isDecided = (batch: DecidedBatch | BatchResult): batch is DecidedBatch =>
  typeof batch === "object" && "pending" in batch

const noCommands: ReadonlyArray<PendingCommand> = []

export const makeBatchDecisions = Effect.gen(function* () {
  const store = yield* LicenseStore
  const lookups = yield* LicenseLookups
  const { epoch } = yield* Journal
  const clock = yield* Clock.Clock

  /** Returns undefined, and has no effect, if the batch needs look-ups or stores responses. */
  const decideFromMemory = (
    license: CachedLicense,
    commands: ReadonlyArray<PendingCommand>
  ): DecidedBatch | undefined => {
    const state = license.state
    const now = clock.currentTimeMillisUnsafe()
    if (state === undefined || commands.some(({ storeResponse }) => storeResponse !== undefined)) return undefined
    if (missingPrefetch(lookups, state, commands, now, false) !== undefined) return undefined
    const pending = new PendingChanges(state, nothingPrefetched)
    pending.epoch = epoch.current
    const decisions = decide(pending, commands, now)
    if (commands.some((command, index) => isRefused(decisions[index]!) && hasEventId(command))) return undefined
    const results = commands.map((command, index) => resultOf(command, decisions[index]!))
    return { license, commands, state, pending, results, stored: noCommands, confirmed: false }
  }

  const withoutLock = { load: store.load, lookups: lookups as Lookups }
  // A transaction with a lock must not wait for a second connection: transactions that wait for its lock may hold them
  // all.
  const withLock = { load: store.loadInTransaction, lookups: lookups.inTransaction }

  /** Decides the commands on the cached state, which it loads if missing. */
  const decideBatch = Effect.fnUntraced(function* (
    license: CachedLicense,
    commands: ReadonlyArray<PendingCommand>,
    checkEventIds: boolean,
    { load, lookups }: { readonly load: typeof store.load; readonly lookups: Lookups } = withoutLock
  ): Effect.fn.Return<DecidedBatch | BatchResult> {
    const isNewlyLoaded = license.state === undefined
    license.state ??= yield* load(license.licenseId)
    const state = license.state
    if (state === undefined)
      return commands.map((): CommandResult => Exit.fail(refuseUnknownLicense(license.licenseId)))
    if (license.outdatedRevision !== undefined) {
      if (license.outdatedRevision !== state.license.revision)
        license.changedElsewhereAt = clock.currentTimeMillisUnsafe()
      license.outdatedRevision = undefined
    }
    const prefetched = yield* prefetch(lookups, state, commands, clock.currentTimeMillisUnsafe(), checkEventIds)
    if (prefetched.isCurrent === false) return "stale"
    const pending = new PendingChanges(state, prefetched)
    const now = clock.currentTimeMillisUnsafe()
    if (!state.isReadyAt(now)) return "stale"
    license.decided = true
    pending.epoch = epoch.current
    const decisions = decide(pending, commands, now)
    if (!checkEventIds && commands.some((command, index) => isRefused(decisions[index]!) && hasEventId(command)))
      return "eventIdsNeeded"
    const results = yield* storeResponses(pending, commands, decisions)
    // Refusals are not stored, even if an earlier attempt had accepted the command.
    const stored = pending.changed ? commands.filter((_, index) => !isRefused(decisions[index]!)) : []
    return {
      license,
      commands,
      state,
      pending,
      results,
      stored,
      confirmed: prefetched.isCurrent ?? (isNewlyLoaded && prefetched === nothingPrefetched)
    }
  })

  /** Decides within the transaction that has locked the license. Its policy and catalog are not locked. */
  const decideLocked = Effect.fnUntraced(function* (
    license: CachedLicense,
    commands: ReadonlyArray<PendingCommand>
  ): Effect.fn.Return<DecidedBatch | BatchResult> {
    license.state = undefined
    const decided = yield* decideBatch(license, commands, true, withLock)
    if (!isDecided(decided) || decided.pending.changed) return decided
    const current = yield* store.revisionsInTransaction(license.licenseId)
    return current !== undefined && decided.state.hasRevisions(current) ? { ...decided, confirmed: true } : "stale"
  })

  return { decideFromMemory, decideBatch, decideLocked }
})
