import { assert, layer } from "@effect/vitest"
import { Effect, Result } from "effect"
import { SqlClient } from "effect/sql"
import { bytes, columns, instant, int8, json, text } from "../../../../src/platform/postgres/driver/Parameters.ts"
import { Database } from "../../../support/database/Database.ts"

const safeMax = Number.MAX_SAFE_INTEGER
const yearEnd9999 = 253_402_300_799_999

layer(Database.layer)("values sent to PostgreSQL and read back", (it) => {
  it.effect("keeps integers as numbers up to 2^53 - 1", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const [row] = yield* sql`SELECT ${int8(safeMax)} AS most, ${int8(-safeMax)} AS least, ${int8(null)} AS none,
        ${safeMax} AS raw, ${7} AS small, count(*) AS counted FROM (VALUES (1), (2)) AS two`
      assert.deepStrictEqual(row, { most: safeMax, least: -safeMax, none: null, raw: safeMax, small: 7, counted: 2 })
    })
  )

  it.effect("refuses values that a number cannot represent, in both directions", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const read = yield* Effect.result(sql`SELECT 9007199254740992::int8 AS big`)
      const readInArray = yield* Effect.result(sql`SELECT ARRAY[1, -9007199254740992]::int8[] AS big`)
      const written = yield* Effect.result(sql`SELECT ${int8(safeMax + 1)} AS big`)
      const fraction = yield* Effect.result(sql`SELECT ${columns.int8([1.5])} AS fraction`)
      const endless = yield* Effect.result(sql`SELECT 'infinity'::timestamptz AS endless`)
      assert.isTrue([read, readInArray, written, fraction, endless].every(Result.isFailure))
      assert.deepStrictEqual(yield* sql`SELECT 1 AS one`, [{ one: 1 }])
    })
  )

  it.effect("keeps instants as epoch milliseconds, exact to the millisecond for distant years", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const instants = [0, 1, -1, 946_684_800_000, 1_795_159_432_119, yearEnd9999, -62_135_596_800_000]
      const [row] = yield* sql`SELECT ${columns.timestamptz([...instants, null])} AS instants, ${instant(null)} AS none,
        ${instant(yearEnd9999)} AS last, ${instant(yearEnd9999)}::text AS shown`
      assert.deepStrictEqual(row, {
        instants: [...instants, null],
        none: null,
        last: yearEnd9999,
        shown: "9999-12-31 23:59:59.999+00"
      })
    })
  )

  it.effect("converts columns into rows", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const rows = yield* sql`SELECT * FROM unnest(
        ${columns.text(["a", "ü'\"{}\\", null])}, ${columns.int8([1, null, safeMax])}, ${columns.int4([null, -2, 3])},
        ${columns.bool([true, false, null])}, ${columns.timestamptz([0, null, 5])},
        ${columns.bytea([new Uint8Array([0, 255]), null, new Uint8Array()])}, ${columns.jsonb([{ a: [1] }, null, "text"])}
      ) AS t (a, b, c, d, e, f, g)`
      assert.deepStrictEqual(rows, [
        { a: "a", b: 1, c: null, d: true, e: 0, f: new Uint8Array([0, 255]), g: { a: [1] } },
        { a: "ü'\"{}\\", b: null, c: -2, d: false, e: null, f: null, g: null },
        { a: null, b: safeMax, c: 3, d: null, e: 5, f: new Uint8Array(), g: "text" }
      ])
      assert.deepStrictEqual(yield* sql`SELECT * FROM unnest(${columns.text([])})`, [])
    })
  )

  it.effect("accepts strings for any column type, and null, booleans, bytes and fractions unchanged", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      yield* sql`CREATE TABLE any_type (i int8, t timestamptz, j jsonb, b bytea, o bool, f float8, s text)`
      yield* sql`INSERT INTO any_type VALUES (${"12"}, ${"2026-01-01T00:00:00Z"}, ${'{"a":1}'}, ${new Uint8Array([7])}, ${true}, ${1.5}, ${null})`
      assert.deepStrictEqual(yield* sql`SELECT * FROM any_type`, [
        { i: 12, t: 1_767_225_600_000, j: { a: 1 }, b: new Uint8Array([7]), o: true, f: 1.5, s: null }
      ])
    })
  )

  it.effect("binds parameters whose type the statement does not declare", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const [row] = yield* sql`SELECT jsonb_build_object('t', ${text("x")}, 'i', ${int8(1)}) AS built,
        ${json({ deep: { list: [1, null, "ä"] } })} AS json, ${bytes(new Uint8Array([1, 2]))} AS bytes`
      assert.deepStrictEqual(row, {
        built: { t: "x", i: 1 },
        json: { deep: { list: [1, null, "ä"] } },
        bytes: new Uint8Array([1, 2])
      })
    })
  )

  it.effect("returns a copy of bytes, not a view of the socket's buffer", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const [row] = yield* sql<{ hash: Uint8Array }>`SELECT sha256('x') AS hash`
      assert.strictEqual(row?.hash.buffer.byteLength, 32)
    })
  )
})
