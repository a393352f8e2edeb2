import { assert, describe, it } from "@effect/vitest"
import { Cause, Effect, Exit, Schema } from "effect"
import { Metadata } from "../../../../src/contract/api/Metadata.ts"
import { Timestamp } from "../../../../src/contract/api/Timestamp.ts"
import { decodeRows } from "../../../../src/platform/postgres/queries/Sql.ts"

const decode = decodeRows(
  Schema.Struct({
    id: Schema.String,
    metadata: Metadata,
    created_at: Timestamp,
    ended_at: Schema.optionalKey(Timestamp)
  })
)

const row = { id: "a", metadata: { a: [1, null] }, created_at: 0, ended_at: 5 }

describe("decodeRows", () => {
  it.effect("reads instants as numbers, omits NULL columns, and passes JSON through unchanged", () =>
    Effect.gen(function* () {
      const [complete, withNull] = yield* decode(Effect.succeed([row, { ...row, ended_at: null, other: 1 }]))
      assert.deepStrictEqual(complete, row)
      assert.strictEqual(complete?.metadata, row.metadata)
      const { ended_at: _, ...withoutEnd } = row
      assert.deepStrictEqual(withNull, withoutEnd)
    })
  )

  it.effect("dies when a row does not match the schema, and fails when the statement fails", () =>
    Effect.gen(function* () {
      for (const invalid of [
        { ...row, id: null },
        { ...row, created_at: "2030-01-31T12:00:00Z" },
        { ...row, metadata: "text" }
      ]) {
        const exit = yield* Effect.exit(decode(Effect.succeed([row, invalid])))
        assert.isTrue(Exit.isFailure(exit) && Cause.hasDies(exit.cause))
      }
      assert.strictEqual(yield* Effect.flip(decode(Effect.fail("the statement"))), "the statement")
    })
  )
})
