/** What a dialog of many changes has to do, and what is left of it afterwards. */
import { Effect } from "effect"
import type { License } from "../../../licensing/model/License.ts"
import type { Client } from "../../client/Client.ts"
import type { Attempt, Progress } from "./BatchRun.ts"
import { type LicenseChange, type Renewal, readLicense } from "./LicenseChanges.ts"

export interface Item {
  readonly license: License
  /** The license as it was before a change that is taken back. */
  readonly earlier?: License
}

/** A license right before it was changed, and after that. */
interface Outcome {
  readonly license: License
  readonly after: License
  /** Whether it was as wanted before. */
  readonly isMoved: boolean
}

export type Done = Progress<Item, Outcome>

export interface BatchJob {
  /** What the licenses are once it is done. */
  readonly done: string
  readonly attempts: ReadonlyArray<Attempt<Item>>
  readonly send: (item: Item) => Effect.Effect<Outcome, unknown, Client>
  /** What earlier attempts of the same job have done. */
  readonly already: Done["succeeded"]
  /** Absent for a job that takes something back. */
  readonly takeBack?: LicenseChange["takeBack"]
}

export const jobOf = (change: LicenseChange, licenses: ReadonlyArray<License>, values: Renewal): BatchJob => {
  // After a lost response the license would be read as this run has changed it.
  const known = new Map<string, License>()
  const read = Effect.fnUntraced(function* (id: string) {
    const license = known.get(id) ?? (yield* readLicense(id))
    known.set(id, license)
    return license
  })
  return {
    done: change.done,
    attempts: licenses.map((license) => ({ item: { license } })),
    send: Effect.fnUntraced(function* ({ license: { id } }) {
      const license = yield* read(id)
      return { license, after: yield* change.send(license, values), isMoved: change.moves(license) }
    }),
    already: [],
    takeBack: change.takeBack
  }
}

/** All that the job has done so far. */
export const succeededOf = (job: BatchJob, { succeeded }: Done): Done["succeeded"] => [...job.already, ...succeeded]

/** What was not sent, because the reader stopped the run. */
export const unsentOf = ({ attempts }: BatchJob, { failed, succeeded }: Done): BatchJob["attempts"] => {
  const sent = new Set([...succeeded.map(({ before }) => before), ...failed.map(({ item }) => item)])
  return attempts.filter(({ item }) => !sent.has(item))
}

/** The same job, for some of its licenses. */
export const again = (job: BatchJob, done: Done, attempts: BatchJob["attempts"]): BatchJob => ({
  ...job,
  attempts,
  already: succeededOf(job, done)
})

/** What the job itself has changed: what somebody else had done before is not taken back. */
export const movedOf = (job: BatchJob, done: Done) => succeededOf(job, done).filter(({ after }) => after.isMoved)

/** A job that takes back what was done. */
export const undoOf = (job: BatchJob, done: Done, takeBack: NonNullable<BatchJob["takeBack"]>): BatchJob => ({
  done: "as before",
  attempts: movedOf(job, done).map(({ after: { after, license } }) => ({
    item: { license: after, earlier: license }
  })),
  send: ({ earlier, license }) =>
    Effect.map(takeBack(earlier ?? license, license), (after) => ({ license, after, isMoved: true })),
  already: []
})
