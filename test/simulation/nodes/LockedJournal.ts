/** The journal of a node with checkpoints where it decides with a license locked. It counts the outcomes of those. */
import { Context, Effect, Exit, Layer } from "effect"
import type { SqlError } from "effect/sql"
import { Journal } from "../../../src/licensing/engine/Journal.ts"
import { unknownLicense } from "../requests/InitialData.ts"
import type { TransactionPoint } from "./Faults.ts"
import type { Scheduler } from "./Scheduler.ts"

/** Whether the transaction decides with its license locked. */
export const Locking = Context.Reference<boolean>("licensing/test/Locking", { defaultValue: () => false })

/** Passes a checkpoint within the current transaction. */
export const Passing = Context.Reference<(point: TransactionPoint) => Effect.Effect<void, SqlError.SqlError>>(
  "licensing/test/Passing",
  { defaultValue: () => () => Effect.void }
)

/** Fails as the adjacent statement of the transaction would; the decision does not know of it. */
const pass = (point: TransactionPoint) => Effect.flatMap(Passing, (pass) => pass(point)) as Effect.Effect<void>

export const lockedOutcomes = {
  overtaken: "decision overtaken by another",
  committed: "license locked: committed",
  stale: "license locked: overtaken by an edit of its policy or catalog",
  unchanged: "license locked: nothing changed",
  missing: "license locked: there is none",
  dies: "license locked by a node that dies",
  livesOn: "license locked by a node taken for dead that lives on",
  leaps: "license locked while time leaps"
}

export const layer = (scheduler: Scheduler) =>
  Layer.effect(
    Journal,
    Effect.map(Journal, (journal) =>
      Journal.of({
        ...journal,
        commit: (draft, settle) =>
          journal.commit(draft, (exit) => {
            if (Exit.isSuccess(exit) && exit.value === "stale") scheduler.count(lockedOutcomes.overtaken)
            settle(exit)
          }),
        locked: Effect.fnUntraced(function* (licenseId, decide) {
          let isChanged = false
          const decided = Effect.gen(function* () {
            yield* pass("locked")
            const draft = yield* decide
            isChanged = draft !== undefined
            if (isChanged) yield* pass("decided")
            return draft
          })
          const result = yield* Effect.provideService(journal.locked(licenseId, decided), Locking, true)
          const left = licenseId === unknownLicense ? lockedOutcomes.missing : lockedOutcomes.unchanged
          scheduler.count(isChanged && result !== "locked" && result !== "busy" ? lockedOutcomes[result] : left)
          return result
        })
      })
    )
  ).pipe(Layer.provide(Journal.layer))
