/** A round: each license is used by all its machines at the same time while one fault begins and ends. */
import { Console, Effect, Fiber } from "effect"
import { pauseFor } from "../../../src/platform/postgres/driver/Transactions.ts"
import { RandomSource } from "../../simulation/requests/RandomSource.ts"
import type { Installation } from "../installation/Installation.ts"
import { strike } from "../kinds/Fault.ts"
import { linkFaults } from "../kinds/Links.ts"
import { operatorFaults } from "../kinds/Operators.ts"
import { processFaults } from "../kinds/Processes.ts"
import { runClient } from "./Client.ts"
import { begin, type Catalog, machines } from "./Licenses.ts"
import type { Line } from "./Line.ts"

/** A period ends at one instant for all nodes, so their clocks do not step. */
const faults = [...processFaults, ...linkFaults, ...operatorFaults].filter(({ name }) => !name.includes("clock"))

/** Of each machine. */
const calls = 30
const faultBeginsAfterMillis = [500, 3_000] as const

export const recordRound = Effect.fnUntraced(function* (
  installation: Installation,
  catalog: Catalog,
  seed: number,
  licenses: number
) {
  const { nodes, token } = installation
  const random = new RandomSource(seed)
  const fault = random.pick(faults)
  const lines: Array<Line> = []
  const sold = yield* Effect.forEach(
    Array.from({ length: licenses }, (_, index) => `begin-${seed}-${index}`),
    (key) => begin(installation, catalog, key, lines, random)
  )
  const place = { nodes, token, catalog, lines }
  const clients = sold.flatMap((license) =>
    Array.from({ length: machines }, (_, machine) => runClient(place, license, machine, calls, random.fork()))
  )
  const load = yield* Effect.forkChild(Effect.all(clients, { concurrency: "unbounded", discard: true }))
  yield* pauseFor(random.between(...faultBeginsAfterMillis))
  const { featureId, policies, productId } = catalog
  const sellable = { productId, featureId, policyId: policies[0]!.id }
  // These faults leave nothing wrong by themselves.
  yield* strike(fault, random, { installation, catalog: sellable, licenses: sold, round: `s${seed}` })
  for (const { untilReady } of nodes) yield* untilReady
  yield* Fiber.join(load)
  const unknown = lines.filter(({ outcome }) => outcome === "unknown").length
  yield* Console.error(`seed ${seed}: ${fault.name}: ${lines.length} calls, ${unknown} without an answer`)
  return lines
})
