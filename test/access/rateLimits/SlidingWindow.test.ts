import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { makeRecencyCache } from "../../../src/access/rateLimits/RecencyCache.ts"
import { makeSlidingWindow } from "../../../src/access/rateLimits/SlidingWindow.ts"

const noon = Date.UTC(2030, 0, 1, 12)

/** Times in ascending order, given by the pauses between them. */
const times = fc
  .array(fc.integer({ min: 0, max: 9_000 }), { minLength: 1, maxLength: 200 })
  .map((pauses) => pauses.map((_, index) => noon + pauses.slice(0, index + 1).reduce((sum, pause) => sum + pause, 0)))

describe("A sliding window", () => {
  it("admits the limit within a minute, and each request again after one minute", () => {
    const { take } = makeSlidingWindow(3)
    const admitted = (seconds: number) => take("a", noon + seconds * 1_000).admitted
    assert.deepStrictEqual([0, 20, 40, 41, 59.9].map(admitted), [true, true, true, false, false])
    assert.deepStrictEqual([60, 61, 79.9].map(admitted), [true, false, false])
    assert.deepStrictEqual([80, 80.1, 100, 100.1].map(admitted), [true, false, true, false])
  })

  it("reports the remaining requests, and after how many seconds more are available", () => {
    const { take } = makeSlidingWindow(2)
    assert.deepStrictEqual(take("a", noon), { admitted: true, remaining: 1, resetSeconds: 60 })
    assert.deepStrictEqual(take("a", noon + 10_000), { admitted: true, remaining: 0, resetSeconds: 50 })
    assert.deepStrictEqual(take("a", noon + 10_500), { admitted: false, remaining: 0, resetSeconds: 50 })
    assert.deepStrictEqual(take("a", noon + 60_000), { admitted: true, remaining: 0, resetSeconds: 10 })
  })

  it("counts each key separately", () => {
    const { take } = makeSlidingWindow(1)
    for (const key of ["a", "b", "c"]) assert.isTrue(take(key, noon).admitted)
    for (const key of ["a", "b", "c"]) assert.isFalse(take(key, noon).admitted)
  })

  it("never admits more than the limit within 59 seconds, and always admits a caller that waited for the stated time", () => {
    fc.assert(
      fc.property(times, fc.integer({ min: 1, max: 20 }), (at, limit) => {
        const { take } = makeSlidingWindow(limit)
        const admitted: Array<number> = []
        for (const now of at) {
          const state = take("a", now)
          if (state.admitted) admitted.push(now)
          else {
            const again = makeSlidingWindow(limit)
            for (const earlier of admitted) again.take("a", earlier)
            assert.isTrue(again.take("a", now + state.resetSeconds * 1_000).admitted)
          }
        }
        for (const [index, first] of admitted.entries()) {
          const within = admitted.slice(index).filter((time) => time - first < 59_000)
          assert.isAtMost(within.length, limit)
        }
      })
    )
  })

  it("admits any caller that was quiet for a minute, after any history", () => {
    fc.assert(
      fc.property(times, fc.integer({ min: 1, max: 20 }), (at, limit) => {
        const { take } = makeSlidingWindow(limit)
        for (const now of at) take("a", now)
        const later = at.at(-1)! + 60_000
        for (let count = 0; count < limit; count++) assert.isTrue(take("a", later).admitted)
        assert.isFalse(take("a", later).admitted)
      })
    )
  })

  it("restarts the count of a key whose clock was set back", () => {
    const { take } = makeSlidingWindow(1)
    take("a", noon)
    assert.deepStrictEqual(take("a", noon - 3_600_000), { admitted: true, remaining: 0, resetSeconds: 60 })
    assert.isFalse(take("a", noon - 3_600_000).admitted)
  })

  it("stores a bounded number of keys, the most recent ones, and drops the quiet ones", () => {
    const window = makeSlidingWindow(1, 1_000)
    for (let index = 0; index < 100_000; index++) {
      window.take(`key-${index}`, noon)
      assert.isAtMost(window.size(), 1_000)
    }
    assert.isFalse(window.take("key-99999", noon).admitted)
    assert.isTrue(window.take("key-0", noon).admitted)
    window.take("a", noon + 60_000)
    window.take("a", noon + 120_000)
    assert.strictEqual(window.size(), 1)
  })

  it("keeps a busy key while many other keys appear", () => {
    const { take } = makeSlidingWindow(100, 1_000)
    for (let index = 0; index < 100; index++) {
      assert.isTrue(take("busy", noon).admitted)
      for (let other = 0; other < 400; other++) take(`${index}-${other}`, noon)
    }
    assert.isFalse(take("busy", noon).admitted)
  })
})

describe("RecencyCache", () => {
  it("returns a stored value until it is deleted or as many other keys as its capacity were used after it", () => {
    const map = makeRecencyCache<number>(4)
    map.set("a", 1)
    map.set("b", 2)
    map.set("c", 3)
    assert.strictEqual(map.get("a"), 1)
    map.set("d", 4)
    map.set("e", 5)
    assert.strictEqual(map.get("b"), undefined)
    assert.strictEqual(map.get("a"), 1)
    map.delete("a")
    assert.strictEqual(map.get("a"), undefined)
    assert.isAtMost(map.size(), 4)
  })
})
