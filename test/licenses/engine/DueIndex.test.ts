/** Thousands of leases and devices must cost a round nothing: what is not due is not looked at. */
import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { DueIndex } from "../../../src/licenses/engine/DueIndex.ts"
import { LeaseChanges, LiveLeases } from "../../../src/licenses/engine/LiveLeases.ts"
import { deviceOf, hardware, leaseOf, minute, noon } from "../../support/Licenses.ts"

interface Thing {
  readonly key: string
  readonly at: number
}

/** All things, refusing to be looked at unless that is expected. */
const guarded = (things: ReadonlyMap<string, Thing>, mayLook: boolean): Iterable<readonly [string, Thing]> => ({
  [Symbol.iterator]: () => {
    assert.isTrue(mayLook, "all things were looked at")
    return things.entries()
  }
})

describe("what is due", () => {
  it("is found without a look at anything before the earliest instant, and again without one after it was found", () => {
    const things = new Map(
      Array.from({ length: 5000 }, (_, index) => [`${index}`, { key: `${index}`, at: 100 + index }])
    )
    const due = new DueIndex<Thing>(({ at }) => at)
    for (const [key, thing] of things) due.put(key, thing)
    assert.isEmpty(due.at(99, guarded(things, false)))
    assert.lengthOf(due.at(101, guarded(things, true)), 2)
    assert.lengthOf(due.at(101, guarded(things, false)), 2)
    due.put("5000", { key: "5000", at: 9000 })
    due.drop("0")
    assert.lengthOf(due.at(101, guarded(things, false)), 1)
  })

  it("is what a look at everything finds, whatever was put, moved and dropped, and however time goes", () => {
    const key = fc.constantFrom("a", "b", "c", "d")
    const step = fc.oneof(
      fc.record({ key, at: fc.oneof(fc.nat(50), fc.constant(Number.POSITIVE_INFINITY)) }),
      fc.record({ drop: key }),
      fc.record({ now: fc.nat(60) })
    )
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const things = new Map<string, Thing>()
        const due = new DueIndex<Thing>(({ at }) => at)
        for (const taken of steps) {
          if ("drop" in taken) {
            things.delete(taken.drop)
            due.drop(taken.drop)
          } else if ("at" in taken) {
            things.set(taken.key, taken)
            due.put(taken.key, taken)
          } else {
            const all = Array.from(things.values()).filter(({ at }) => at <= taken.now)
            assert.sameDeepMembers(Array.from(due.at(taken.now, things)), all)
          }
        }
      }),
      { numRuns: 500 }
    )
  })
})

describe("thousands of live leases", () => {
  const holders = Array.from({ length: 5000 }, (_, index) => deviceOf(hardware(`machine ${index}`)))
  const base = new LiveLeases(
    holders.map((device) => leaseOf(device)),
    true
  )
  const newcomer = leaseOf(deviceOf(hardware("newcomer")))

  it("are neither copied nor looked at when one is added, moved or ended", () => {
    const changes = new LeaseChanges(base)
    base.values = () => assert.fail("all leases were looked at")
    const [first, second] = holders as [(typeof holders)[0], (typeof holders)[0]]
    changes.put(newcomer)
    changes.put(leaseOf(first, { expires_at: noon + 50 * minute }))
    changes.put(leaseOf(second, { status: "checked_in", ended_at: noon }))
    assert.strictEqual(changes.count, 5000)
    assert.strictEqual(changes.changed.size, 3)
    assert.isUndefined(changes.ofDevice(second.id))
    assert.isEmpty(changes.lapsed(noon))
    for (const lease of changes.changed.values()) base.put(lease)
    assert.strictEqual(base.count, 5000)
    assert.lengthOf(base.lapsed(noon + 20 * minute), 4999)
  })
})
