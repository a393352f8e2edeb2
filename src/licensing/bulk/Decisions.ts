/**
 * Decides one command for many licenses without their actors: each license on its own state, all of them read in one
 * snapshot. The caller commits the changes with the fence, so an actor's later change makes the decision outdated.
 */
import { Clock, Effect, identity } from "effect"
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
import type { CommittedState } from "../state/CommittedState.ts"

/** A command for many licenses, with the command for each of them. */
export interface SharedCommand {
  readonly rule: Rule<unknown, unknown, Code>
  readonly commandOf: (license: LicenseRecord) => unknown
  readonly origin: Origin
  /** Whether the license may be reached; otherwise it counts as unknown. */
  readonly reaches: (license: LicenseRecord) => boolean
  /** Whether the decisions need no features, devices and leases, and are not committed. */
  readonly isBare: boolean
}

/** The changes of a license, if there are any, or why it is refused. */
export interface LicenseDecision {
  readonly licenseId: string
  readonly changes?: PendingChanges
  readonly refusal?: Refusal
}

export const makeManyDecisions = Effect.gen(function* () {
  const store = yield* LicenseStore
  const { inTransaction } = yield* LicenseLookups
  const { pipelined } = yield* Postgres

  const decideOne = Effect.fnUntraced(function* (
    lookups: Lookups,
    licenseId: string,
    state: CommittedState | undefined,
    { commandOf, origin, reaches, rule }: SharedCommand
  ): Effect.fn.Return<LicenseDecision> {
    if (state === undefined || !reaches(state.license)) return { licenseId, refusal: refuseUnknownLicense(licenseId) }
    const command = pendingCommand({
      rule,
      command: commandOf(state.license),
      origin,
      begin: identity,
      resume: () => {},
      span: undefined
    })
    const now = yield* Clock.currentTimeMillis
    const changes = new PendingChanges(state, yield* prefetch(lookups, state, [command], now, true))
    const [decision] = decide(changes, [command], now)
    if (isRefused(decision!)) return { licenseId, refusal: decision.refusal }
    return changes.changed ? { licenseId, changes } : { licenseId }
  })

  /** Reads and decides within the running transaction. */
  const decideAll = Effect.fnUntraced(function* (ids: ReadonlyArray<string>, command: SharedCommand) {
    const states = yield* command.isBare ? store.loadBareInTransaction(ids) : store.loadManyInTransaction(ids)
    const lookups = besideStates(inTransaction)
    const decisions: Array<LicenseDecision> = []
    for (const [index, id] of ids.entries()) decisions.push(yield* decideOne(lookups, id, states[index], command))
    return decisions
  })

  return {
    /** In a snapshot of its own. */
    decide: (ids: ReadonlyArray<string>, command: SharedCommand) =>
      Effect.orDie(inOneSnapshot(pipelined(decideAll(ids, command)))),
    /** Within the running transaction, which has locked the licenses. */
    decideLocked: decideAll
  }
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
