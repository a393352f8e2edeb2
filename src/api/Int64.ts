/**
 * The contract's int64 values. JSON numbers beyond 2^53 - 1 lose digits when parsed, so they are refused instead of
 * rounded. PostgreSQL's bigint columns are decoded into the same safe integers.
 */
import { Schema } from "effect"

/** An integer from 0 to 2^53 - 1. */
export const Count = Schema.Number.check(
  Schema.isInt(),
  Schema.isBetween({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })
).annotate({ format: "int64" })

/** An integer from 1 to 2^53 - 1. */
export const PositiveCount = Schema.Number.check(
  Schema.isInt(),
  Schema.isBetween({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER })
).annotate({ format: "int64" })

/** A 32-bit integer within bounds, as used in policies. */
export const Int32 = (minimum: number, maximum = 2_147_483_647) =>
  Schema.Number.check(Schema.isInt(), Schema.isBetween({ minimum, maximum })).annotate({ format: "int32" })
