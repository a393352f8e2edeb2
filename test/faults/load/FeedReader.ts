/** A reader of the event feed: after a number, no lower one appears, and no number is missing. */
import { Clock, Effect } from "effect"
import { pauseFor } from "../../../src/platform/postgres/driver/Transactions.ts"
import type { RandomSource } from "../../simulation/requests/RandomSource.ts"
import { isWithin, type Loss } from "../checks/Losses.ts"
import type { ServiceNode } from "../installation/ServiceNode.ts"
import { request } from "./Caller.ts"

const pauseMillis = 150
const pageLength = 200

export interface FeedPlace {
  readonly nodes: ReadonlyArray<ServiceNode>
  readonly token: string
  readonly violations: Array<string>
  readonly losses: ReadonlyArray<Loss>
  readonly mayContinue: () => boolean
}

export const readFeed = Effect.fnUntraced(function* (
  { losses, mayContinue, nodes, token, violations }: FeedPlace,
  random: RandomSource
) {
  let newest = 0
  while (mayContinue()) {
    const node = random.pick(nodes)
    const message = { method: "GET", path: `/events?limit=${pageLength}`, authorization: `Bearer ${token}` } as const
    const sentAt = yield* Clock.currentTimeMillis
    const { json, status } = yield* request(node, message)
    // Numbers of lost events are given to others.
    if (status === 200 && !isWithin(losses)(sentAt, yield* Clock.currentTimeMillis)) {
      const page = (json["data"] as ReadonlyArray<{ readonly sequence: number }>).map(({ sequence }) => sequence)
      violations.push(...faultsOfPage(page, newest).map((what) => `feed of ${node.name}: ${what}`))
      newest = Math.max(newest, page[0] ?? 0)
    }
    yield* pauseFor(pauseMillis)
  }
})

/** What is wrong with a page, newest first, for a reader that has seen the number. */
export const faultsOfPage = (page: ReadonlyArray<number>, seen: number): ReadonlyArray<string> => {
  const gap = page.find((sequence, index) => index > 0 && sequence !== (page[index - 1] ?? 0) - 1)
  return [
    ...(gap === undefined ? [] : [`event ${gap} does not follow the one before it`]),
    ...((page[0] ?? 0) < seen ? [`the newest event is ${page[0]}, ${seen} was seen before`] : [])
  ]
}
