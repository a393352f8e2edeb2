/** Whether the last third of a run, after its warm-up, is like the first third. */
import type { Sample } from "./Sample.ts"

interface Measure {
  readonly name: string
  readonly of: (third: ReadonlyArray<Sample>) => number
  /** The last third may have at most the first third's value times this, */
  readonly ratioMax: number
  /** and so much more, in the measure's unit, because small values vary. */
  readonly more: number
}

export interface Judged {
  readonly name: string
  readonly first: number
  readonly last: number
  readonly most: number
  readonly holds: boolean
}

const median = (pick: (sample: Sample) => number) => (third: ReadonlyArray<Sample>) =>
  third.map(pick).toSorted((a, b) => a - b)[Math.floor(third.length / 2)] ?? Number.NaN

/** After a collection of garbage; others vary with the moment. */
const least = (pick: (sample: Sample) => number) => (third: ReadonlyArray<Sample>) => Math.min(...third.map(pick))

const kilobytesPerEvent = (pick: (sample: Sample) => number) => (third: ReadonlyArray<Sample>) => {
  const [from, to] = [third[0]!, third.at(-1)!]
  return (1e3 * (pick(to) - pick(from))) / (to.events - from.events)
}

/** All limits. */
const measures: ReadonlyArray<Measure> = [
  { name: "memory of the node, MB", of: median(({ rssMegabytes }) => rssMegabytes), ratioMax: 1.1, more: 10 },
  { name: "its heap after a collection, MB", of: least(({ heapMegabytes }) => heapMegabytes), ratioMax: 1.1, more: 10 },
  { name: "its open handles", of: median(({ handles }) => handles), ratioMax: 1.1, more: 5 },
  { name: "its license actors", of: median(({ actors }) => actors), ratioMax: 1.2, more: 100 },
  { name: "delay of its event loop, p99, ms", of: median((one) => one.loopDelayMillis), ratioMax: 1.5, more: 5 },
  { name: "connections to PostgreSQL", of: median(({ connections }) => connections), ratioMax: 1, more: 3 },
  { name: "live leases", of: median(({ leases }) => leases), ratioMax: 1.2, more: 100 },
  { name: "entries and deliveries that wait", of: median(({ waiting }) => waiting), ratioMax: 1.5, more: 500 },
  { name: "tables of work in progress, MB", of: median(({ flatMegabytes }) => flatMegabytes), ratioMax: 1.2, more: 2 },
  { name: "dead rows in them", of: median(({ flatDeadRows }) => flatDeadRows), ratioMax: 1.5, more: 5_000 },
  {
    name: "files of the write-ahead log, MB",
    of: median(({ logMegabytes }) => logMegabytes),
    ratioMax: 1.1,
    more: 300
  },
  { name: "write-ahead log, kB per event", of: kilobytesPerEvent((one) => one.walMegabytes), ratioMax: 1.3, more: 0.5 },
  { name: "database, kB per event", of: kilobytesPerEvent((one) => one.databaseMegabytes), ratioMax: 1.3, more: 0.3 },
  { name: "answers, p50, ms", of: median(({ p50Millis }) => p50Millis), ratioMax: 1.3, more: 1 },
  { name: "answers, p99, ms", of: median(({ p99Millis }) => p99Millis), ratioMax: 1.5, more: 10 }
]

/** The first tenth warms up. */
const warmUpShare = 0.1
/** Of a third: growth is the difference of two. */
const samplesMin = 2

/** Nothing if the run is too short. */
export const judge = (samples: ReadonlyArray<Sample>): ReadonlyArray<Judged> => {
  const warm = samples.slice(Math.max(1, Math.floor(samples.length * warmUpShare)))
  const third = Math.floor(warm.length / 3)
  if (third < samplesMin) return []
  return measures.map(({ more, name, of, ratioMax }) => {
    const [first, last] = [of(warm.slice(0, third)), of(warm.slice(-third))]
    const most = first * ratioMax + more
    // Also false if a value is missing.
    return { name, first, last, most, holds: last <= most }
  })
}
