import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { ConcurrencyLimits } from "../../../src/ledger/webhooks/ConcurrencyLimits.ts"

const capacityOf = (limits: ConcurrencyLimits, id: string) => limits.capacity.known.get(id) ?? limits.capacity.initial

/** Fills an endpoint's capacity, then ends all its requests. */
const fillAndEnd = (limits: ConcurrencyLimits, id: string, succeeded: boolean) => {
  const count = capacityOf(limits, id)
  limits.begin(new Map([[id, count]]), limits.capacity)
  for (let ended = 0; ended < count; ended++) limits.end(id, succeeded)
  return count
}

describe("ConcurrencyLimits", () => {
  it("raise an endpoint's limit with success to a maximum, and lower it to one with failure", () => {
    const limits = new ConcurrencyLimits()
    assert.strictEqual(capacityOf(limits, "a"), 8)
    // One request stays in flight, so that the endpoint is not forgotten.
    limits.begin(new Map([["a", 1]]), limits.capacity)
    for (let repetition = 0; repetition < 10; repetition++) fillAndEnd(limits, "a", true)
    assert.strictEqual(capacityOf(limits, "a"), 31)
    for (let repetition = 0; repetition < 10; repetition++) fillAndEnd(limits, "a", false)
    assert.strictEqual(capacityOf(limits, "a"), 0)
    limits.end("a", false)
    assert.strictEqual(capacityOf(limits, "a"), 1)
    assert.strictEqual(fillAndEnd(limits, "a", true), 1)
    assert.strictEqual(capacityOf(limits, "a"), 2)
  })

  it("count each endpoint separately", () => {
    const limits = new ConcurrencyLimits()
    limits.begin(new Map([["hangs", 8]]), limits.capacity)
    assert.deepStrictEqual([capacityOf(limits, "hangs"), capacityOf(limits, "other")], [0, 8])
  })

  it("ask for more deliveries when the last ones filled the limit and a quarter of it is free, and not otherwise", () => {
    const limits = new ConcurrencyLimits()
    limits.begin(
      new Map([
        ["a", 8],
        ["b", 7]
      ]),
      limits.capacity
    )
    const ends = (id: string, count: number) => Array.from({ length: count }, () => limits.end(id, true))
    assert.deepStrictEqual(ends("a", 3), [false, true, true])
    assert.deepStrictEqual(ends("b", 7), [false, false, false, false, false, false, false])
    // Read again and found nothing.
    limits.begin(new Map(), limits.capacity)
    assert.deepStrictEqual(ends("a", 5), [false, false, false, false, false])
  })

  it("are one for each endpoint when very many requests are in flight in total", () => {
    const limits = new ConcurrencyLimits()
    for (let index = 0; index < 128; index++) limits.begin(new Map([[`e${index}`, 8]]), limits.capacity)
    assert.deepStrictEqual([capacityOf(limits, "e0"), capacityOf(limits, "new")], [0, 1])
  })

  it("are never exceeded, and forget an endpoint without requests in flight", () => {
    const ids = ["a", "b", "c"]
    const step = fc.record({ id: fc.constantFrom(...ids), begins: fc.boolean(), succeeded: fc.boolean() })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
        const limits = new ConcurrencyLimits()
        const inFlight = new Map(ids.map((id) => [id, 0]))
        for (const { begins: starts, id, succeeded } of steps) {
          const capacity = capacityOf(limits, id)
          assert.isAtLeast(capacity, 0)
          if (starts && capacity > 0) {
            limits.begin(new Map([[id, capacity]]), limits.capacity)
            inFlight.set(id, inFlight.get(id)! + capacity)
          } else if (inFlight.get(id)! > 0) {
            limits.end(id, succeeded)
            inFlight.set(id, inFlight.get(id)! - 1)
          }
          assert.isAtMost(inFlight.get(id)!, 32)
        }
        for (const [id, count] of inFlight) for (let ended = 0; ended < count; ended++) limits.end(id, true)
        // After any history, an endpoint that succeeds again soon has the limit of a new one.
        for (const id of ids) for (let repetition = 0; repetition < 8; repetition++) fillAndEnd(limits, id, true)
        assert.strictEqual(limits.capacity.known.size, 0)
      })
    )
  })
})
