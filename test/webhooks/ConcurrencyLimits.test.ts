import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { ConcurrencyLimits } from "../../src/webhooks/ConcurrencyLimits.ts"

const roomOf = (places: ConcurrencyLimits, id: string) => places.capacity.known.get(id) ?? places.capacity.initial

/** Fills an endpoint's places, then ends them all. */
const turn = (places: ConcurrencyLimits, id: string, succeeded: boolean) => {
  const count = roomOf(places, id)
  places.begin(new Map([[id, count]]), places.capacity)
  for (let ended = 0; ended < count; ended++) places.end(id, succeeded)
  return count
}

describe("Places", () => {
  it("grow with success to a bound, and fall to one with failure", () => {
    const places = new ConcurrencyLimits()
    assert.strictEqual(roomOf(places, "a"), 8)
    // One goes on, so that the endpoint stays known.
    places.begin(new Map([["a", 1]]), places.capacity)
    for (let turns = 0; turns < 10; turns++) turn(places, "a", true)
    assert.strictEqual(roomOf(places, "a"), 31)
    for (let turns = 0; turns < 10; turns++) turn(places, "a", false)
    assert.strictEqual(roomOf(places, "a"), 0)
    places.end("a", false)
    assert.strictEqual(roomOf(places, "a"), 1)
    assert.strictEqual(turn(places, "a", true), 1)
    assert.strictEqual(roomOf(places, "a"), 2)
  })

  it("of one endpoint are not another's", () => {
    const places = new ConcurrencyLimits()
    places.begin(new Map([["hangs", 8]]), places.capacity)
    assert.deepStrictEqual([roomOf(places, "hangs"), roomOf(places, "other")], [0, 8])
  })

  it("ask for more when what was found filled them and a quarter is free, and not when there was less", () => {
    const places = new ConcurrencyLimits()
    places.begin(
      new Map([
        ["a", 8],
        ["b", 7]
      ]),
      places.capacity
    )
    const ends = (id: string, count: number) => Array.from({ length: count }, () => places.end(id, true))
    assert.deepStrictEqual(ends("a", 3), [false, true, true])
    assert.deepStrictEqual(ends("b", 7), [false, false, false, false, false, false, false])
    // Looked again, and nothing was there.
    places.begin(new Map(), places.capacity)
    assert.deepStrictEqual(ends("a", 5), [false, false, false, false, false])
  })

  it("are one for each endpoint when very much is under way in all", () => {
    const places = new ConcurrencyLimits()
    for (let index = 0; index < 128; index++) places.begin(new Map([[`e${index}`, 8]]), places.capacity)
    assert.deepStrictEqual([roomOf(places, "e0"), roomOf(places, "new")], [0, 1])
  })

  it("are never overdrawn, and forgotten when nothing is under way", () => {
    const ids = ["a", "b", "c"]
    const step = fc.record({ id: fc.constantFrom(...ids), begins: fc.boolean(), succeeded: fc.boolean() })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
        const places = new ConcurrencyLimits()
        const underway = new Map(ids.map((id) => [id, 0]))
        for (const { begins, id, succeeded } of steps) {
          const room = roomOf(places, id)
          assert.isAtLeast(room, 0)
          if (begins && room > 0) {
            places.begin(new Map([[id, room]]), places.capacity)
            underway.set(id, underway.get(id)! + room)
          } else if (underway.get(id)! > 0) {
            places.end(id, succeeded)
            underway.set(id, underway.get(id)! - 1)
          }
          assert.isAtMost(underway.get(id)!, 32)
        }
        for (const [id, count] of underway) for (let ended = 0; ended < count; ended++) places.end(id, true)
        // Whatever happened before, an endpoint that does well again is soon like a new one.
        for (const id of ids) for (let turns = 0; turns < 8; turns++) turn(places, id, true)
        assert.strictEqual(places.capacity.known.size, 0)
      })
    )
  })
})
