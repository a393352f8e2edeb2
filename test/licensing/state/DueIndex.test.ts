/** With thousands of leases and devices, a batch must not examine those that are not due. */
import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { DueIndex } from "../../../src/licensing/state/DueIndex.ts"
import { LeaseChanges, LiveLeases } from "../../../src/licensing/state/LiveLeases.ts"
import { deviceOf, hardware, leaseOf, minute, noon } from "../../support/rules/Licenses.ts"

interface Entry {
  readonly key: string
  readonly at: number
}

/** All entries; reading one fails unless the test expects it. */
const guardedEntries = (entries: ReadonlyMap<string, Entry>, mayRead: boolean): Iterable<readonly [string, Entry]> => ({
  [Symbol.iterator]: () => {
    assert.isTrue(mayRead, "all things were looked at")
    return entries.entries()
  }
})

describe("the index of due entries", () => {
  it("reads no entry before the earliest instant, and none again after a due entry was found", () => {
    const entries = new Map(
      Array.from({ length: 5000 }, (_, index) => [`${index}`, { key: `${index}`, at: 100 + index }])
    )
    const due = new DueIndex<Entry>(({ at }) => at)
    for (const [key, thing] of entries) due.put(key, thing)
    assert.isEmpty(due.at(99, guardedEntries(entries, false)))
    assert.lengthOf(due.at(101, guardedEntries(entries, true)), 2)
    assert.lengthOf(due.at(101, guardedEntries(entries, false)), 2)
    due.put("5000", { key: "5000", at: 9000 })
    due.drop("0")
    assert.lengthOf(due.at(101, guardedEntries(entries, false)), 1)
  })

  it("finds the same entries as a full scan, for all insertions, moves, removals and times", () => {
    const key = fc.constantFrom("a", "b", "c", "d")
    const step = fc.oneof(
      fc.record({ key, at: fc.oneof(fc.nat(50), fc.constant(Number.POSITIVE_INFINITY)) }),
      fc.record({ drop: key }),
      fc.record({ now: fc.nat(60) })
    )
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const entries = new Map<string, Entry>()
        const due = new DueIndex<Entry>(({ at }) => at)
        for (const taken of steps) {
          if ("drop" in taken) {
            entries.delete(taken.drop)
            due.drop(taken.drop)
          } else if ("at" in taken) {
            entries.set(taken.key, taken)
            due.put(taken.key, taken)
          } else {
            const all = Array.from(entries.values()).filter(({ at }) => at <= taken.now)
            assert.sameDeepMembers(Array.from(due.at(taken.now, entries)), all)
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

  it("are neither copied nor read when one is added, moved or ended", () => {
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
