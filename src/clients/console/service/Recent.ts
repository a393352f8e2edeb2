/** The records that were opened last. They are kept for the session only, in memory: names are personal data. */
import { Atom } from "effect/reactivity"
import { currentSession } from "./Session.ts"

export interface Recent {
  /** The path of its screen. */
  readonly path: string
  readonly title: string
}

const keptMax = 6

export const recent = Atom.keepAlive(Atom.make<ReadonlyArray<Recent>>([]))

const isRecord = /^\/(?:licenses|customers|products|policies|orders|subscriptions|webhooks)\/\w+_\w+$/

export const rememberRecord = (opened: Recent): void => {
  if (!isRecord.test(opened.path)) return
  currentSession().registry.update(recent, (before) =>
    [opened, ...before.filter(({ path }) => path !== opened.path)].slice(0, keptMax)
  )
}
