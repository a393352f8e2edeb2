/** The records that were opened last. They are kept for the session only, in memory: names are personal data. */
import { Atom } from "effect/reactivity"
import { currentSession } from "./Session.ts"

export interface Recent {
  /** The path of its screen. */
  readonly path: string
  readonly title: string
}

/** The product that the reader chose last: what is about one product begins with it. */
const lastProduct = Atom.keepAlive(Atom.make<string | undefined>(undefined))

export const rememberProduct = (id: string | undefined): void => currentSession().registry.set(lastProduct, id)

/** The product that was chosen last, or the only one. With several, no choice is better than a guess. */
export const likelyProduct = <A extends { readonly id: string }>(products: ReadonlyArray<A>): A | undefined =>
  products.find(({ id }) => id === currentSession().registry.get(lastProduct)) ??
  (products.length === 1 ? products[0] : undefined)

const keptMax = 6

export const recent = Atom.keepAlive(Atom.make<ReadonlyArray<Recent>>([]))

const isRecord = /^\/(?:licenses|customers|products|policies|orders|subscriptions|webhooks)\/\w+_\w+$/

export const rememberRecord = (opened: Recent): void => {
  if (!isRecord.test(opened.path)) return
  currentSession().registry.update(recent, (before) =>
    [opened, ...before.filter(({ path }) => path !== opened.path)].slice(0, keptMax)
  )
}
