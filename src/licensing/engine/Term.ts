/**
 * The term of this node: the name under which its journals commit. Another node can retire a term in the database; from then on no
 * group of that term can commit, whenever it arrives. The node notices that at its next group and takes a new term. What must stay
 * true: whatever was decided in a retired term is never committed in a later one.
 */
import { Effect, Random } from "effect"
import { SqlError } from "effect/sql"
import { concurrentChange, isConcurrentChange } from "../../platform/postgres/queries/Sql.ts"
import type { GroupId } from "./Fence.ts"
import type { PendingChanges } from "./PendingChanges.ts"

/** The journals of a node, by the end of their names. Each numbers its own groups. */
export const journalKinds = ["", ".locked", ".alone"] as const
export type JournalKind = (typeof journalKinds)[number]

export interface Term {
  readonly current: string
  /** Takes a new term if this one is still the current one. */
  renew(retired: string): void
  /** Is called with the retired term, after the new one has begun. */
  readonly onRenewed: Set<(retired: string) => void>
}

export const makeTerm = Effect.gen(function* () {
  const random = yield* Random.Random
  const draw = () => `${random.nextIntUnsafe()}.${random.nextIntUnsafe()}`
  let current = draw()
  const onRenewed: Term["onRenewed"] = new Set()
  const term: Term = {
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
  return term
})

/** Whether the changes may be committed by a group of this term. Changes without a term may in any. */
export const isOfTerm =
  ({ term }: GroupId) =>
  (pending: PendingChanges): boolean =>
    pending.term === undefined || pending.term === term

/** What a group with changes of an earlier term fails with. */
export const changesOfEarlierTerm = new SqlError.SqlError({
  reason: new SqlError.UnknownError({
    cause: { code: concurrentChange },
    message: "The changes are of an earlier term."
  })
})

/** Takes a new term if the database refuses the number of a group. A write that leaves outdated licenses out fails for that only. */
export const renewingTerm =
  (term: Term) =>
  <A>(write: (groupId: GroupId) => Effect.Effect<A, SqlError.SqlError>) =>
  (groupId: GroupId): Effect.Effect<A, SqlError.SqlError> =>
    Effect.tapError(write(groupId), (error) =>
      Effect.sync(() => {
        if (isConcurrentChange(error)) term.renew(groupId.term)
      })
    )
