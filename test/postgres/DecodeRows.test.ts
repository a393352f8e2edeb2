import { assert, describe, it } from "@effect/vitest"
import { Cause, Effect, Exit, Schema } from "effect"
import { Metadata } from "../../src/api/Metadata.ts"
import { Timestamp } from "../../src/api/Timestamp.ts"
import { decodeRows } from "../../src/postgres/Sql.ts"

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
  it.effect("takes instants as numbers, leaves NULL columns out, and passes JSON on as it is", () =>
    Effect.gen(function* () {
      const [whole, open] = yield* decode(Effect.succeed([row, { ...row, ended_at: null, other: 1 }]))
      assert.deepStrictEqual(whole, row)
      assert.strictEqual(whole?.metadata, row.metadata)
      const { ended_at: _, ...rest } = row
      assert.deepStrictEqual(open, rest)
    })
  )

  it.effect("dies of a row that is not of the schema, and fails as the statement fails", () =>
    Effect.gen(function* () {
      for (const bad of [
        { ...row, id: null },
        { ...row, created_at: "2030-01-31T12:00:00Z" },
        { ...row, metadata: "text" }
      ]) {
        const exit = yield* Effect.exit(decode(Effect.succeed([row, bad])))
        assert.isTrue(Exit.isFailure(exit) && Cause.hasDies(exit.cause))
      }
      assert.strictEqual(yield* Effect.flip(decode(Effect.fail("the statement"))), "the statement")
    })
  )
})
