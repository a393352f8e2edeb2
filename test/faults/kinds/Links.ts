/** Links between a node and the database, or between nodes, that are cut, delayed, stalled or flap. */
import { Effect } from "effect"
import { pauseFor } from "../../../src/platform/postgres/driver/Transactions.ts"
import type { RandomSource } from "../../simulation/requests/RandomSource.ts"
import type { Direction, Link } from "../installation/Link.ts"
import { type Fault, nothingWrong } from "./Fault.ts"

interface Broken {
  readonly name: string
  readonly lasts: Fault["lasts"]
  readonly begin: (link: Link, random: RandomSource) => Effect.Effect<void>
  readonly end: (link: Link) => Effect.Effect<void>
}

const reset = (link: Link) => link.reset
const open = (link: Link) => link.open

const stalled = (what: string, directions: ReadonlyArray<Direction>, end: Broken["end"]): Broken => ({
  name: what,
  lasts: [500, 6_000],
  begin: (link) => link.stall(...directions),
  end
})

const broken: ReadonlyArray<Broken> = [
  { name: "is cut", lasts: [300, 4_000], begin: (link) => link.cut, end: reset },
  { name: "is slow", lasts: [1_000, 3_000], begin: (link, random) => link.delay(random.between(5, 250)), end: open },
  stalled("is silent, then delivers", ["requests", "responses"], open),
  stalled("is silent, then breaks", ["requests", "responses"], reset),
  stalled("loses responses", ["responses"], reset),
  stalled("loses requests", ["requests"], reset),
  {
    name: "flaps",
    lasts: [0, 0],
    begin: (link, random) =>
      Effect.asVoid(
        Effect.replicateEffect(
          Effect.gen(function* () {
            yield* link.cut
            yield* pauseFor(random.between(20, 300))
            yield* link.reset
            yield* pauseFor(random.between(20, 600))
          }),
          5
        )
      ),
    end: reset
  }
]

const faultsOf = (place: "database" | "peers", name: string, nodesMin: number): ReadonlyArray<Fault> =>
  broken.map((one) => ({
    name: `${name} ${one.name}`,
    nodesMin,
    lasts: one.lasts,
    begin: ({ installation: { nodes }, random }) => {
      const link = random.pick(nodes)[place]
      return Effect.as(one.begin(link, random), Effect.as(one.end(link), nothingWrong))
    }
  }))

/** All nodes lose the database at once. */
const isolatedDatabase: Fault = {
  name: "all links to the database are cut",
  nodesMin: 2,
  lasts: [300, 3_000],
  begin: ({ installation: { nodes } }) =>
    Effect.as(
      Effect.forEach(nodes, ({ database }) => database.cut),
      Effect.as(
        Effect.forEach(nodes, ({ database }) => database.reset),
        nothingWrong
      )
    )
}

export const linkFaults: ReadonlyArray<Fault> = [
  ...faultsOf("database", "the link to the database", 1),
  ...faultsOf("peers", "the link between nodes", 2),
  isolatedDatabase
]
