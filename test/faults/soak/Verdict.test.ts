/** The verdict of a soak: equal thirds pass, and growth of any measure does not. */
import { assert, describe, it } from "@effect/vitest"
import type { Sample } from "./Sample.ts"
import { judge } from "./Verdict.ts"

const steady: Omit<Sample, "minutes" | "events" | "licenses" | "walMegabytes" | "databaseMegabytes"> = {
  ...{ requestsPerSecond: 500, p50Millis: 2, p99Millis: 20, loopDelayMillis: 12 },
  ...{ rssMegabytes: 300, heapMegabytes: 90, handles: 60, actors: 2_000, connections: 25, leases: 150, waiting: 30 },
  ...{ flatMegabytes: 4, flatDeadRows: 500, logMegabytes: 400 }
}

/** A run of an hour in which a member is multiplied over time; the stored sizes grow with the events. */
const run = (changed: Partial<Record<keyof Sample, (at: number) => number>> = {}): ReadonlyArray<Sample> =>
  Array.from({ length: 60 }, (_, at) => {
    const grown = { minutes: at, events: 1_000 * at, licenses: 30 * at, walMegabytes: 3 * at, databaseMegabytes: at }
    const sample: Record<string, number> = { ...steady, ...grown }
    for (const [name, factor] of Object.entries(changed)) sample[name] = sample[name]! * factor(at)
    return sample as unknown as Sample
  })

const broken = (samples: ReadonlyArray<Sample>) =>
  judge(samples)
    .filter(({ holds }) => !holds)
    .map(({ name }) => name)

describe("The verdict of a soak", () => {
  it("accepts a run whose sizes grow with the events, and whose first minutes differ", () => {
    assert.deepStrictEqual(broken(run()), [])
    assert.deepStrictEqual(
      broken(run({ rssMegabytes: (at) => (at < 5 ? 0.5 : 1), p99Millis: (at) => (at < 5 ? 9 : 1) })),
      []
    )
  })

  it("refuses growth of each measure", () => {
    const twentyfold = (at: number) => 1 + at / 3
    for (const [name, measure] of Object.entries({
      rssMegabytes: "memory of the node, MB",
      heapMegabytes: "its heap after a collection, MB",
      handles: "its open handles",
      actors: "its license actors",
      loopDelayMillis: "delay of its event loop, p99, ms",
      connections: "connections to PostgreSQL",
      leases: "live leases",
      waiting: "entries and deliveries that wait",
      flatMegabytes: "tables of work in progress, MB",
      flatDeadRows: "dead rows in them",
      logMegabytes: "files of the write-ahead log, MB",
      walMegabytes: "write-ahead log, kB per event",
      databaseMegabytes: "database, kB per event",
      p50Millis: "answers, p50, ms",
      p99Millis: "answers, p99, ms"
    })) {
      // Fifty times more waits, and dead rows.
      const factor = name === "waiting" || name === "flatDeadRows" ? (at: number) => 1 + at : twentyfold
      assert.deepStrictEqual(broken(run({ [name]: factor })), [measure])
    }
  })

  it("has none on a run that is too short", () => {
    assert.deepStrictEqual(judge(run().slice(0, 6)), [])
    assert.isNotEmpty(judge(run().slice(0, 7)))
  })

  it("refuses a run that lacks a figure", () => {
    assert.deepStrictEqual(broken(run({ heapMegabytes: () => Number.NaN })), ["its heap after a collection, MB"])
  })
})
