/**
 * The epoch of this node: the name under which its journals commit. Another node can retire an epoch in the database;
 * no group of that epoch can commit afterwards. The node detects this at its next group and takes a new epoch. What
 * must stay true: decisions of a retired epoch are never committed in a later one.
 */
import { Effect, Random } from "effect"
import { SqlError } from "effect/sql"
import { concurrentChange, isGroupGivenUp } from "../../platform/postgres/queries/Sql.ts"
import type { GroupId } from "./Fence.ts"
import type { PendingChanges } from "./PendingChanges.ts"

/** The journals of a node, by the end of their names. Each numbers its own groups. */
export const journalKinds = ["", ".locked", ".alone", ".many"] as const
export type JournalKind = (typeof journalKinds)[number]

export interface Epoch {
  readonly current: string
  /** Takes a new epoch if this one is still the current one. */
  renew(retired: string): void
  /** Called with the retired epoch, after the new one has begun. */
  readonly onRenewed: Set<(retired: string) => void>
}

export const makeEpoch = Effect.gen(function* () {
  const random = yield* Random.Random
  const draw = () => `${random.nextIntUnsafe()}.${random.nextIntUnsafe()}`
  let current = draw()
  const onRenewed: Epoch["onRenewed"] = new Set()
  const epoch: Epoch = {
    get current() {
      return current
    },
    renew: (retired) => {
      if (retired !== current) return
      current = draw()
      for (const listener of onRenewed) listener(retired)
    },
    onRenewed
  }
  return epoch
})

/** Whether a group may commit the changes: those of its epoch, or without an epoch. */
export const isOfEpoch =
  ({ epoch }: GroupId) =>
  (pending: PendingChanges): boolean =>
    pending.epoch === undefined || pending.epoch === epoch

export const changesOfEarlierEpoch = new SqlError.SqlError({
  reason: new SqlError.UnknownError({
    cause: { code: concurrentChange },
    message: "The changes belong to an earlier epoch."
  })
})

/** Takes a new epoch if the database refuses a group's number. */
export const renewingEpoch =
  (epoch: Epoch) =>
  <A>(write: (groupId: GroupId) => Effect.Effect<A, SqlError.SqlError>) =>
  (groupId: GroupId): Effect.Effect<A, SqlError.SqlError> =>
    Effect.tapError(write(groupId), (error) =>
      Effect.sync(() => {
        if (isGroupGivenUp(error)) epoch.renew(groupId.epoch)
      })
    )
