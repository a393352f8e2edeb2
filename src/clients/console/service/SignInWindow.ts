/**
 * A sign-in in a window of its own, so that the tab with what was typed stays. The window tells the tab what the provider said; only
 * that tab has the verifier without which it is worth nothing.
 */
import type { Begun, Returned } from "./Address.ts"
import { later } from "./Service.ts"
import { onTabs, tellTabs } from "./Tabs.ts"

interface Waiting {
  readonly begun: Begun
  readonly take: (returned: Returned) => void
}

let waiting: Waiting | undefined

/** Awaits what the window tells. A later sign-in takes the place of this one. */
export const awaitWindow = (begun: Begun, take: Waiting["take"]): void => {
  waiting = { begun, take }
}

onTabs((message) => {
  if (message.kind !== "returned" || waiting === undefined) return
  const { begun, take } = waiting
  const parameters = new URLSearchParams(message.parameters)
  if (parameters.get("state") !== begun.state) return
  waiting = undefined
  tellTabs({ kind: "taken", state: begun.state })
  take({ parameters, begun })
})

/** Tabs of this browser answer at once. */
const patience = "2 seconds"

/** Tells the other tabs what the provider said; whether one of them has begun this sign-in. */
export const isTaken = (parameters: URLSearchParams): Promise<boolean> =>
  new Promise((resolve) => {
    const state = parameters.get("state")
    onTabs((message) => message.kind === "taken" && message.state === state && resolve(true))
    later(patience, () => resolve(false))
    tellTabs({ kind: "returned", parameters: parameters.toString() })
  })
