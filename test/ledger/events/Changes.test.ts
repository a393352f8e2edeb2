import { assert, describe, it } from "@effect/vitest"
import { changesOf } from "../../../src/ledger/events/Changes.ts"

interface Example {
  readonly name?: string
  readonly expires_at?: number
  readonly grace_days?: number
  readonly tags?: ReadonlyArray<string>
  readonly metadata?: object
}

const fields = ["name", "expires_at", "grace_days", "tags", "metadata"] as const
const changes = (before: Example, after: Example) => changesOf(before, after, fields)

describe("Changes", () => {
  it("contain the fields that differ, with old and new values, an absent one as null", () => {
    assert.deepStrictEqual(changes({ name: "a", grace_days: 3 }, { name: "b", grace_days: 3, tags: ["x"] }), {
      name: { old: "a", new: "b" },
      tags: { old: null, new: ["x"] }
    })
  })

  it("contain instants as ISO 8601 text, and counts as numbers", () => {
    assert.deepStrictEqual(changes({ expires_at: 0, grace_days: 1 }, { grace_days: 0 }), {
      expires_at: { old: "1970-01-01T00:00:00.000Z", new: null },
      grace_days: { old: 1, new: 0 }
    })
  })

  it("ignore the order of members at any depth, but not the order of a list", () => {
    const before = { metadata: { beta: 1, a: { y: [1, 2], x: 1 } }, tags: ["a", "b"] }
    assert.deepStrictEqual(changes(before, { metadata: { a: { x: 1, y: [1, 2] }, beta: 1 }, tags: ["a", "b"] }), {})
    assert.hasAllKeys(changes(before, { metadata: { beta: 1, a: { y: [2, 1], x: 1 } }, tags: ["b", "a"] }), [
      "metadata",
      "tags"
    ])
  })
})
