// Converts values to and from PostgreSQL. bigint and timestamptz are plain numbers in both directions; an instant is its epoch
// milliseconds. Whole columns are bound as one array each. A number that a double cannot represent exactly is an error.
import * as PgTypes from "@effect/sql-pg/PgTypes"
import { Result } from "effect"

const { OID } = PgTypes

/** A value with the type as which it is bound. Used in a statement like a plain value. */
export type Parameter = PgTypes.Parameter

/**
 * Scalars that need a helper. Bound without one: a string (untyped: PostgreSQL infers the type from the statement), an integer
 * (int4, beyond 2^31 int8), any other number (float8), boolean, bigint (int8), Uint8Array (bytea), null and undefined (untyped
 * NULL). A helper is needed for instants (a plain number is an integer to PostgreSQL), objects, and a value whose type
 * PostgreSQL cannot infer, as in `jsonb_build_object('a', ${x})`.
 *
 * Types of results: every integer and float type → number; numeric → string, so `sum(bigint)` needs `::bigint`; timestamptz →
 * epoch milliseconds; date → "YYYY-MM-DD"; jsonb → the parsed value; bytea → Uint8Array; NULL → null; interval → the driver's
 * object; other types → string.
 * A timestamp without time zone is a Date; no table has one.
 */
export const instant: (epochMillis: number | null) => Parameter = PgTypes.timestamptz
export const json: (value: unknown) => Parameter = PgTypes.jsonb
export const bytes: (value: Uint8Array | null) => Parameter = PgTypes.bytea
export const text: (value: string | null) => Parameter = PgTypes.text
export const int8 = (value: number | null): Parameter => ({ ...PgTypes.int8(null), value })

const column =
  <A>(elementOid: number) =>
  (values: ReadonlyArray<A | null>): Parameter =>
    Result.getOrThrow(PgTypes.array(values, elementOid))

/** Whole columns as one array parameter each, for `unnest(${columns.text(ids)}, ${columns.int8(amounts)}) AS t (id, amount)`. */
export const columns = {
  text: column<string>(OID.text),
  bool: column<boolean>(OID.bool),
  int4: column<number>(OID.int4),
  int8: column<number>(OID.int8),
  /** Epoch milliseconds. */
  timestamptz: column<number>(OID.timestamptz),
  bytea: column<Uint8Array>(OID.bytea),
  /** A null element is SQL NULL, not JSON null. */
  jsonb: column<unknown>(OID.jsonb)
}

const codecError = (message: string) => Result.fail(new PgTypes.CodecError({ message }))

const viewOf = (raw: Uint8Array): DataView => new DataView(raw.buffer, raw.byteOffset, raw.byteLength)

/** A codec between the int64 on the wire and a number: the driver decodes int8 to a bigint and timestamptz to a Date. */
const codec64 = (
  toWire: (value: number) => Result.Result<bigint, PgTypes.CodecError>,
  fromWire: (raw: Uint8Array, offset: number) => Result.Result<number, PgTypes.CodecError>
): PgTypes.Codec<number> => ({
  encode: (value) =>
    Result.map(toWire(value), (wire) => {
      const raw = new Uint8Array(8)
      viewOf(raw).setBigInt64(0, wire)
      return raw
    }),
  write: (sink, value) => Result.map(toWire(value), (wire) => sink.bigInt64(wire)),
  decode: (raw) => fromWire(raw, 0),
  read: fromWire
})

/** An int64 as the nearest number: exact if that is a safe integer. A DataView and a BigInt take five times as long. */
const nearestNumber = (raw: Uint8Array, at: number): number =>
  ((raw[at]! << 24) | (raw[at + 1]! << 16) | (raw[at + 2]! << 8) | raw[at + 3]!) * 4_294_967_296 +
  (((raw[at + 4]! << 24) | (raw[at + 5]! << 16) | (raw[at + 6]! << 8) | raw[at + 7]!) >>> 0)

// The driver passes integers beyond int4 as bigint, so both types are accepted.
const toInt8 = (value: number | bigint) =>
  Number.isSafeInteger(Number(value))
    ? Result.succeed(BigInt(value))
    : codecError(`${value} is not an integer up to 2^53 - 1`)

const fromInt8 = (raw: Uint8Array, offset: number) => {
  const value = nearestNumber(raw, offset)
  return Number.isSafeInteger(value)
    ? Result.succeed(value)
    : codecError(`The int8 ${viewOf(raw).getBigInt64(offset)} is beyond 2^53 - 1`)
}

// PostgreSQL counts microseconds from 2000-01-01. BigInt keeps milliseconds exact after the year 2285.
const wireEpochMillis = 946_684_800_000

const toTimestamp = (epochMillis: number) =>
  Number.isSafeInteger(epochMillis)
    ? Result.succeed(BigInt(epochMillis - wireEpochMillis) * 1000n)
    : codecError(`${epochMillis} is not a whole number of milliseconds`)

const infinities = [2n ** 63n - 1n, -(2n ** 63n)]

const fromTimestamp = (raw: Uint8Array, offset: number) => {
  const micros = nearestNumber(raw, offset)
  if (Number.isSafeInteger(micros)) return Result.succeed(Math.trunc(micros / 1000) + wireEpochMillis)
  const wire = viewOf(raw).getBigInt64(offset)
  return infinities.includes(wire)
    ? codecError("An infinite timestamp")
    : Result.succeed(Number(wire / 1000n) + wireEpochMillis)
}

/** The codecs of this service's connections. */
export const types: PgTypes.Registry = PgTypes.makeRegistry()
types.register(OID.int8, codec64(toInt8, fromInt8), { arrayOid: OID.int8Array })
types.register(OID.timestamptz, codec64(toTimestamp, fromTimestamp), { arrayOid: OID.timestamptzArray })
// The driver decodes bytea as a view into the socket's buffer: a stored hash would retain 64 KiB.
types.register<Uint8Array>(
  OID.bytea,
  { encode: Result.succeed, decode: (raw) => Result.succeed(new Uint8Array(raw)) },
  { arrayOid: OID.byteaArray }
)
