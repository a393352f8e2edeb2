/** What a dialog of many changes has to do, and what is left of it afterwards. */
import type { Effect } from "effect"
import type { Client } from "../../client/Client.ts"
import type { License } from "../../licenses/model/License.ts"
import type { Attempt, Progress } from "./BulkRun.ts"
import type { LicenseChange, Renewal } from "./LicenseChanges.ts"

export interface Item {
  readonly license: License
  /** The license as it was before a change that is taken back. */
  readonly earlier?: License
}

export type Done = Progress<Item, License>

export interface Work {
  /** What the licenses are once it is done. */
  readonly done: string
  readonly attempts: ReadonlyArray<Attempt<Item>>
  readonly send: (item: Item) => Effect.Effect<License, unknown, Client>
  /** What earlier attempts of the same work have done. */
  readonly already: Done["succeeded"]
  /** Absent for work that takes something back. */
  readonly takeBack?: LicenseChange["takeBack"]
}

export const workOf = (change: LicenseChange, licenses: ReadonlyArray<License>, values: Renewal): Work => ({
  done: change.done,
  attempts: licenses.map((license) => ({ item: { license } })),
  send: ({ license }) => change.send(license, values),
  already: [],
  takeBack: change.takeBack
})

/** All that the work has done so far. */
export const succeededOf = (work: Work, { succeeded }: Done): Done["succeeded"] => [...work.already, ...succeeded]

/** What was not sent, because the reader stopped the run. */
export const unsentOf = ({ attempts }: Work, { failed, succeeded }: Done): Work["attempts"] => {
  const sent = new Set([...succeeded.map(({ before }) => before), ...failed.map(({ item }) => item)])
  return attempts.filter(({ item }) => !sent.has(item))
}

/** The same work, for some of its licenses. */
export const again = (work: Work, done: Done, attempts: Work["attempts"]): Work => ({
  ...work,
  attempts,
  already: succeededOf(work, done)
})

/** Work that takes back what was done. */
export const backOf = (work: Work, done: Done, takeBack: NonNullable<Work["takeBack"]>): Work => ({
  done: "as before",
  attempts: succeededOf(work, done).map(({ after, before }) => ({ item: { license: after, earlier: before.license } })),
  send: ({ earlier, license }) => takeBack(earlier ?? license, license),
  already: []
})
