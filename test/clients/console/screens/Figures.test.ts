/** The figures behind the console's charts, its feeds and its operations screen. */
import { readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as fc from "fast-check"
import {
  type Feed,
  type Read,
  readNewer,
  readSome,
  withEarlier,
  withNewer
} from "../../../../src/clients/console/feeds/Feed.ts"
import { ratesOf, samplesOf, stateOf } from "../../../../src/clients/console/operations/Metrics.ts"
import { namesOf } from "../../../../src/clients/console/parts/FeatureNames.ts"
import { cappedOf, daysOf } from "../../../../src/clients/console/parts/Format.ts"
import { labelledOf, ticksOf } from "../../../../src/clients/console/reports/Scale.ts"
import { largestOf, lastOf, peakOf, sumOf, tallyOf } from "../../../../src/clients/console/reports/Totals.ts"

it("tells terms of whole years in years", () => {
  assert.deepStrictEqual([0, 1, 30, 364, 365, 366, 730].map(daysOf), [
    "0 days",
    "1 day",
    "30 days",
    "364 days",
    "1 year",
    "366 days",
    "2 years"
  ])
})

it("says of a total that it was counted up to a limit", () => {
  assert.strictEqual(cappedOf({ total: 10_000, total_is_capped: false }), "10,000")
  assert.strictEqual(cappedOf({ total: 10_000, total_is_capped: true }), "10,000+")
})

describe("A chart", () => {
  it("has whole, evenly spaced ticks from zero to the largest value or above, and not too many", () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER }), (largest) => {
        const ticks = ticksOf(largest)
        assert.strictEqual(ticks[0], 0)
        assert.isAtLeast(ticks.at(-1)!, largest)
        assert.isAtLeast(ticks.length, 2)
        assert.isAtMost(ticks.length, 6)
        assert.isTrue(ticks.every((tick, index) => Number.isInteger(tick) && tick === index * ticks[1]!))
      })
    )
  })

  it("labels the first place, and no more places than have room", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 400 }), fc.integer({ min: 1, max: 30 }), (places, room) => {
        const labelled = labelledOf(places, room)
        assert.strictEqual(labelled[0], 0)
        assert.isAtMost(labelled.length, room)
        assert.isTrue(labelled.every((place) => place < places))
      })
    )
  })

  it("shows the largest parts, and loses nothing of the others", () => {
    const part = fc.tuple(fc.constantFrom(..."abcdefghi"), fc.integer({ min: 0, max: 1_000 }))
    fc.assert(
      fc.property(fc.array(fc.array(part, { maxLength: 9 }), { minLength: 1, maxLength: 9 }), (groups) => {
        const parts = largestOf(groups.map(tallyOf))
        assert.isAtMost(parts.length, 6)
        groups.forEach((group, index) => {
          assert.strictEqual(sumOf(parts.map(({ values }) => values[index]!)), sumOf(group.map(([, count]) => count)))
        })
      })
    )
  })

  it("leaves out what was not counted, from the peak and from the last state", () => {
    assert.strictEqual(peakOf([undefined, 3, 7, undefined]), 7)
    assert.strictEqual(lastOf([undefined, 3, 7, undefined]), 7)
    assert.strictEqual(peakOf([undefined]), undefined)
    assert.strictEqual(lastOf([0, undefined]), 0)
  })
})

interface Numbered {
  readonly sequence: number
}

/** Reads a feed of numbers in pages of rows, of which some match. */
const readOf =
  (
    last: () => number,
    size: number,
    matches: (sequence: number) => boolean,
    asked: Array<unknown> = []
  ): Read<Numbered> =>
  (cursor = last() + 1) => {
    asked.push(cursor)
    const floor = Math.max(1, cursor - size)
    const scanned = Array.from({ length: cursor - floor }, (_, index) => cursor - 1 - index)
    const items = scanned.filter(matches).map((sequence) => ({ sequence }))
    return Promise.resolve(floor === 1 ? { items } : { items, next: floor })
  }

const sequencesOf = (feed: Feed<Numbered>) => feed.items.map(({ sequence }) => sequence)

describe("A feed", () => {
  it.effect("shows each matching entry once, in order, whatever came between two reads", () =>
    Effect.promise(() =>
      fc.assert(
        fc.asyncProperty(
          fc.integer({ min: 1, max: 7 }),
          fc.integer({ min: 1, max: 40 }),
          fc.array(fc.oneof(fc.integer({ min: 0, max: 9 }), fc.integer({ min: 10, max: 200 })), {
            minLength: 1,
            maxLength: 6
          }),
          async (size, every, growth) => {
            let last = 20
            const matches = (sequence: number) => sequence % every === 0
            const read = readOf(() => last, size, matches)
            const first = await readSome(read, undefined)
            let feed: Feed<Numbered> = { ...first!, arrived: 0 }
            for (const more of growth) {
              last += more
              feed = withNewer(feed, (await readNewer(read, feed))!)
            }
            while (feed.next !== undefined) feed = withEarlier(feed, (await readSome(read, feed.next))!)
            const all = Array.from({ length: last }, (_, index) => last - index).filter(matches)
            assert.deepStrictEqual(sequencesOf(feed), all)
          }
        )
      )
    )
  )

  it.effect("asks once if nothing is new, although no entry matches", () =>
    Effect.promise(async () => {
      const asked: Array<unknown> = []
      const read = readOf(
        () => 1_000,
        50,
        () => false,
        asked
      )
      const first = await readSome(read, undefined)
      const feed: Feed<Numbered> = { ...first!, arrived: 0 }
      asked.length = 0
      await readNewer(read, feed)
      assert.deepStrictEqual(asked, [1_001])
    })
  )

  it.effect("says when so much came at once that nothing of it matched, and keeps the way to what was shown", () =>
    Effect.promise(async () => {
      let last = 20
      const read = readOf(
        () => last,
        5,
        (sequence) => sequence === 18 || sequence === 60
      )
      const first = await readSome(read, undefined)
      last = 500
      const before: Feed<Numbered> = { ...first!, arrived: 0 }
      let feed = withNewer(before, (await readNewer(read, before))!)
      assert.deepStrictEqual([feed.items.length, feed.isCut], [0, true])
      while (feed.next !== undefined) feed = withEarlier(feed, (await readSome(read, feed.next))!)
      assert.deepStrictEqual([sequencesOf(feed), feed.isCut], [[60, 18], false])
    })
  )

  it.effect("drops what is below rather than have a gap, if too much came at once", () =>
    Effect.promise(async () => {
      let last = 20
      const read = readOf(
        () => last,
        5,
        () => true
      )
      const first = await readSome(read, undefined)
      last = 500
      const feed = withNewer({ ...first!, arrived: 0 }, (await readNewer(read, { ...first!, arrived: 0 }))!)
      assert.deepStrictEqual(
        sequencesOf(feed),
        Array.from({ length: 50 }, (_, index) => 500 - index)
      )
      assert.strictEqual(feed.next, 451)
    })
  )
})

describe("A feature in a report", () => {
  it("has its name, with the code where two have the same, and the code alone where products differ in its name", () => {
    const { nameOf } = namesOf([
      { code: "renders", name: "Renders" },
      { code: "renders", name: "Renders" },
      { code: "pdf", name: "Export" },
      { code: "csv", name: "Export" },
      { code: "seats", name: "Seats" },
      { code: "seats", name: "Places" }
    ])
    assert.deepStrictEqual(["renders", "pdf", "csv", "seats", "gone"].map(nameOf), [
      "Renders",
      "Export (pdf)",
      "Export (csv)",
      "seats",
      "gone"
    ])
  })
})

describe("The metrics of a node", () => {
  const text = (requests: number, failed: number) => `# HELP licensing_http_requests_total Requests.
licensing_http_requests_total{method="GET",route="/api/v1/licenses/{id}",status="200"} ${requests}
licensing_http_requests_total{method="POST",route="a \\"quoted\\" path",status="503"} ${failed}
licensing_database_up 1
licensing_database_connections{pool="commits",state="in_use"} 2
licensing_database_connections{pool="lists",state="in_use"} 1
licensing_process_memory_bytes{kind="rss"} 1.5e+08
`
  const at = (requests: number, failed: number) => stateOf(samplesOf(text(requests, failed)))

  it("give rates by the second, and none after a restart or from another node", () => {
    assert.deepStrictEqual(ratesOf(at(10, 1), at(60, 2), 10), { all: 5.1, refused: 0, failed: 0.1 })
    assert.strictEqual(ratesOf(at(60, 2), at(10, 1), 10), undefined)
  })

  it("are read with their labels", () => {
    const state = at(1, 0)
    assert.isTrue(state.databaseUp)
    assert.strictEqual(state.connections.inUse, 3)
    assert.strictEqual(state.memoryBytes, 150_000_000)
    assert.strictEqual(state.peers, undefined)
  })
})

describe("The colours of series", () => {
  const look = (name: string) =>
    readFileSync(
      fileURLToPath(new URL(`../../../../src/clients/console/look/styles/${name}.css`, import.meta.url)),
      "utf8"
    )
  const colours = [...look("charts").matchAll(/\.series-\d \{\s+color: light-dark\((#\w{6}), (#\w{6})\)/g)]
  const papers = /--paper: light-dark\((#\w+), (#\w+)\)/.exec(look("tokens"))!

  const luminanceOf = (hex: string) => {
    const digits = hex.length === 4 ? [...hex.slice(1)].map((digit) => digit + digit).join("") : hex.slice(1)
    const [red, green, blue] = [0, 2, 4].map((start) => {
      const part = Number.parseInt(digits.slice(start, start + 2), 16) / 255
      return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4
    })
    return 0.2126 * red! + 0.7152 * green! + 0.0722 * blue!
  }
  const contrast = (one: string, other: string) => {
    const [low, high] = [luminanceOf(one), luminanceOf(other)].sort((left, right) => left - right)
    return (high! + 0.05) / (low! + 0.05)
  }

  it("stand out from the paper, light and dark, at least 3 to 1", () => {
    assert.lengthOf(colours, 6)
    for (const theme of [1, 2])
      for (const colour of colours) assert.isAtLeast(contrast(colour[theme]!, papers[theme]!), 3, colour[theme]!)
  })
})
