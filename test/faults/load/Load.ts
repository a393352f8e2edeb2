/** All clients of a round, and a reader of the feed, until the place says that they may not continue. */
import { Effect } from "effect"
import type { RandomSource } from "../../simulation/requests/RandomSource.ts"
import type { Catalog, SoldLicense } from "./Catalog.ts"
import { type Place, runClient } from "./Client.ts"
import { type FeedPlace, readFeed } from "./FeedReader.ts"

interface Clients {
  readonly clients: number
  readonly round: string
  readonly sold: ReadonlyArray<SoldLicense>
  readonly catalog: Catalog
}

export const runLoad = (place: Place & FeedPlace, { catalog, clients, round, sold }: Clients, random: RandomSource) =>
  Effect.all(
    [
      readFeed(place, random.fork()),
      ...Array.from({ length: clients }, (_, client) => {
        const known = { activated: new Set<string>(), leases: new Map(), consumptions: [] }
        return runClient(place, { ...known, client, round, licenses: sold, catalog, sent: 0 }, random.fork())
      })
    ],
    { concurrency: "unbounded", discard: true }
  )
