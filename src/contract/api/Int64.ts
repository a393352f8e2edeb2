/**
 * The contract's int64 values. JSON numbers beyond 2^53 - 1 lose digits when parsed, so they are refused instead of
 * rounded. PostgreSQL's bigint columns are decoded into the same safe integers.
 */
import { Schema } from "effect"

/** An integer between bounds. Both checks have the same message: a number beyond 2^53 - 1 fails the first, too. */
export const integer = (minimum: number, maximum: number) => {
  const expected = `an integer from ${minimum} to ${maximum}`
  return Schema.Number.check(Schema.isInt({ expected }), Schema.isBetween({ minimum, maximum }, { expected }))
}

/** An integer from 0 to 2^53 - 1. */
export const Count = integer(0, Number.MAX_SAFE_INTEGER).annotate({ format: "int64" })

/** An integer from 1 to 2^53 - 1. */
export const PositiveCount = integer(1, Number.MAX_SAFE_INTEGER).annotate({ format: "int64" })

/** A 32-bit integer within bounds, as used in policies. */
export const Int32 = (minimum: number, maximum = 2_147_483_647) =>
  integer(minimum, maximum).annotate({ format: "int32" })
