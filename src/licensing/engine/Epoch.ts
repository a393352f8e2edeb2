/**
 * The epoch of this node: the name under which its journals commit. Another node can retire an epoch in the database;
 * from then on no group of that epoch can commit, whenever it arrives. The node notices that at its next group and
 * takes a new epoch. What must stay true: whatever was decided in a retired epoch is never committed in a later one.
 */
import { Effect, Random } from "effect"
import { SqlError } from "effect/sql"
import { concurrentChange, isConcurrentChange } from "../../platform/postgres/queries/Sql.ts"
import type { GroupId } from "./Fence.ts"
import type { PendingChanges } from "./PendingChanges.ts"

/** The journals of a node, by the end of their names. Each numbers its own groups. */
export const journalKinds = ["", ".locked", ".alone"] as const
export type JournalKind = (typeof journalKinds)[number]

export interface Epoch {
  readonly current: string
  /** Takes a new epoch if this one is still the current one. */
  renew(retired: string): void
  /** Is called with the retired epoch, after the new one has begun. */
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

/** Whether the changes may be committed by a group of this epoch. Changes without an epoch may in any. */
export const isOfEpoch =
  ({ epoch }: GroupId) =>
  (pending: PendingChanges): boolean =>
    pending.epoch === undefined || pending.epoch === epoch

/** What a group with changes of an earlier epoch fails with. */
export const changesOfEarlierEpoch = new SqlError.SqlError({
  reason: new SqlError.UnknownError({
    cause: { code: concurrentChange },
    message: "The changes are of an earlier epoch."
  })
})

/**
 * Takes a new epoch if the database refuses the number of a group. A write that leaves outdated licenses out fails for
 * that only.
 */
export const renewingEpoch =
  (epoch: Epoch) =>
  <A>(write: (groupId: GroupId) => Effect.Effect<A, SqlError.SqlError>) =>
  (groupId: GroupId): Effect.Effect<A, SqlError.SqlError> =>
    Effect.tapError(write(groupId), (error) =>
      Effect.sync(() => {
        if (isConcurrentChange(error)) epoch.renew(groupId.epoch)
      })
    )
