/**
 * Bodies that are costly to read, and what each costs the service's main thread: the time on the processor that the system
 * counts for the thread, for each 256 KiB of the body or part of it. What the same request costs with a small body is subtracted:
 * its sockets, token and transaction are no cost of the body.
 */
import { readFileSync } from "node:fs"
import { Pool } from "undici"
import type { Management, Seat } from "../load/Licenses.ts"
import { quantile, rounded } from "../load/Turns.ts"

const piece = 262_144
const batchBytes = 4_194_304
/** What the main thread may take for each piece. */
const pieceMillisMax = 5

/** A flood repeats its body, so the code that reads it is compiled soon. */
const warmups = 40
const repetitions = 40

interface Shape {
  readonly name: string
  readonly path: string
  readonly authorization: string | undefined
  readonly body: string
  readonly headers?: Record<string, string>
}

/** Units between a head and a tail, as many as fit into the bytes. */
const filled = (head: string, unit: (index: number) => string, tail: string, bytes = piece, unitsMax = 1e9): string => {
  const units: Array<string> = []
  let length = Buffer.byteLength(head) + Buffer.byteLength(tail)
  for (let index = 0; index < unitsMax; index++) {
    const next = unit(index)
    length += Buffer.byteLength(next) + 1
    if (length > bytes) break
    units.push(next)
  }
  return `${head}${units.join(",")}${tail}`
}

const one = () => "1"
const member = (index: number) => `"k${index}":1`
const names = (count: number, prefix = "k") => Array.from({ length: count }, (_, n) => `"${prefix}${n}":1`).join(",")
const text = (unit: string, bytes = piece - 64) => unit.repeat(Math.floor(bytes / Buffer.byteLength(unit)))

/** Bodies for an operation with `name` and `metadata`. */
const anyBodies = (): Record<string, string> => ({
  names: filled("{", member, "}"),
  "names in lists": filled('{"a":[', (n) => `{${names(120, `k${n}_`)}}`, "]}"),
  "objects of one name": filled('{"a":[', (n) => `{"k${n}":1}`, "]}", piece, 3_300),
  "new names": filled('{"a":[', (n) => `{${names(32, `~${n}_`)}}`, "]}", piece, 290),
  "repeated names": filled("{", () => '"name":1', "}"),
  "long names": filled("{", (n) => `"${"x".repeat(500)}${n}":1`, "}", piece, 500),
  "escaped names": filled("{", (n) => `"${"\\u0061".repeat(80)}${n}":1`, "}", piece, 500),
  "prototype names": filled('{"a":[', () => '{"\\u005f\\u005fproto_":1}', "]}", piece, 3_300),
  "a list": filled('{"name":[', one, "]}"),
  "a list of 9,900": filled('{"name":[', one, "]}", piece, 9_900),
  "lists of lists": filled('{"name":[', () => "[[1]]", "]}", piece, 3_300),
  depth: `{"a":${"[".repeat(piece - 64)}`,
  "a long text": `{"name":"${text("x")}"}`,
  "a long text of emoji": `{"name":"${text("😀")}"}`,
  escapes: `{"name":"${text("\\n")}"}`,
  "escapes of units": `{"name":"${text("\\u00e9")}"}`,
  backslashes: `{"name":"${text("\\\\")}"}`,
  "texts with escapes": filled('{"metadata":{"a":[', () => '"\\u00e9\\n\\n\\u0041\\n\\n"', "]}}", piece, 9_900),
  "a long number": `{"name":${text("9")}}`,
  "long numbers": filled('{"metadata":{"a":[', () => `-0.${"9".repeat(300)}e-7`, "]}}"),
  "numbers that are too large": filled('{"metadata":{"a":[', () => "1e999", "]}}", piece, 9_900),
  "white space": `{"name":${text(" ")}1}`,
  "a fault at the end": `${filled("{", (n) => `"k${n}":"${"x".repeat(500)}"`, "", piece - 8)}x`,
  "a fault after lines": `{${text("\n")}x`,
  "no object": filled("[", one, "]", piece, 9_900),
  "metadata: names": filled('{"name":"N","code":"c","metadata":{', member, "}}"),
  "metadata: objects": filled('{"metadata":{"a":[', () => '{"a":{}}', "]}}", piece, 3_000),
  "metadata: a list": filled('{"metadata":{"a":[', one, "]}}", piece, 9_900),
  "metadata: texts": filled('{"metadata":{', (n) => `"k${n}":"${"😀".repeat(1_000)}"`, "}}", piece, 64)
})

/** Lists of the operations that take one, each with valid and with invalid items. */
const listBodies = (): ReadonlyArray<readonly [path: string, name: string, body: string]> =>
  (
    [
      ["api-keys", "scopes", '"admin"', '"none"'],
      ["api-keys", "allowed_cidrs", '"2001:db8::/32"', '"10.0.0.1/8"'],
      ["api-keys", "product_ids", '"prod_x"', '""'],
      ["webhooks", "event_types", '"license.*"', '"none"'],
      ["custom-fields", "enum_options", '"o"', '""']
    ] as const
  ).flatMap(([path, name, valid, invalid]) =>
    [valid, invalid, "{}"].map(
      (item) => [path, `${name} ${item}`, filled(`{"name":"N","${name}":[`, () => item, "]}", piece, 9_900)] as const
    )
  )

const license = (index: number) => `"product_id":"p${index}","policy_id":"q${index}"`
const batch = (unit: (index: number) => string, unitsMax = 1_000) =>
  filled('{"licenses":[', (index) => `{${unit(index)}}`, "]}", batchBytes, unitsMax)

const date = '"2030-01-31T12:00:00Z"'
const dates = `"starts_at":${date},"expires_at":${date},"maintenance_expires_at":${date}`
const feature = `{"feature_id":"f","enabled":true,"expires_at":${date}}`

const batches = (): Record<string, string> => ({
  "batch: unknown names": batch((n) => `${license(n)},${names(120)}`),
  "batch: 280,000 unknown names": batch(() => names(280)),
  "batch: wrong types": batch(() => '"product_id":1,"policy_id":{},"metadata":[],"features":1,"starts_at":1'),
  "batch: values that are not allowed": batch(
    () => '"product_id":"","policy_id":"","customer_email":"x","starts_at":"x"'
  ),
  "batch: long texts": batch((n) => `${license(n)},"customer_name":"${"😀".repeat(1_000)}"`),
  "batch: metadata": batch((n) => `${license(n)},"metadata":{${names(64)}}`),
  "batch: new names in metadata": batch((n) => `${license(n)},"metadata":{${names(64, `~${n}_`)}}`),
  "batch: the last one is wrong": batch((n) => (n < 999 ? `${license(n)},"customer_name":"${"x".repeat(200)}"` : "")),
  "batch: all fields": batch((n) => `${license(n)},${dates},"customer_email":"a@b.example","metadata":{}`),
  "batch: features": batch((n) => `${license(n)},"features":[${Array(26).fill(feature).join(",")}]`),
  "batch: 20,000 licenses": batch(license, 20_000),
  "batch: one long text": `{"licenses":"${text("\\n", batchBytes - 64)}"}`
})

const shapesOf = (token: string, seat: Seat): ReadonlyArray<Shape> => {
  const management = `Bearer ${token}`
  const bodies = Object.entries(anyBodies())
  const of = (path: string, authorization: string | undefined, prefix: string, headers = {}) =>
    bodies.map(([name, body]): Shape => ({ name: `${prefix}: ${name}`, path, authorization, body, headers }))
  return [
    ...of("/api/v1/products", management, "product"),
    ...of("/api/v1/license/consume", seat.authorization, "consume"),
    ...of("/api/v1/license/trial", undefined, "trial").map((shape) => ({ ...shape, body: shape.body.slice(0, 8_192) })),
    ...of("/api/v1/license/trial", undefined, "trial, too large").slice(0, 1),
    ...of("/api/v1/reports/exports", management, "export, with a key", { "idempotency-key": "flood-" }),
    ...listBodies().map(([path, name, body]) => ({ name, path: `/api/v1/${path}`, authorization: management, body })),
    ...["group_by", "product_id", "from"].map((filter) => ({
      name: `export: ${filter}`,
      path: "/api/v1/reports/exports",
      authorization: management,
      body: `{"report_kind":"usage-summary","filters":{"${filter}":"${text(",", piece - 96)}"}}`
    })),
    ...Object.entries(batches()).map(([name, body]) => ({
      name,
      path: "/api/v1/licenses/batch",
      authorization: management,
      body
    }))
  ]
}

/** A ~ in a body is another text in each request: of names that were read before, the parser keeps what it learnt. */
let rounds = 0

let keys = 0
/** An Idempotency-Key of its own for each request. */
const keyOf = (headers: Shape["headers"]) =>
  headers?.["idempotency-key"] === undefined ? {} : { "idempotency-key": `flood-${++keys}` }

/** Nanoseconds that the main thread of a process has been on a processor. */
const mainThreadNanos = (pid: number): number =>
  Number(readFileSync(`/proc/${pid}/task/${pid}/schedstat`, "utf8").split(" ")[0])

/** Bodies that are read in no time, and get as far as the large ones. */
const smallBodies: { readonly [path: string]: string } = { "/api/v1/licenses/batch": batch(license, 1) }

interface Subject {
  readonly base: string
  readonly pid: number
  readonly token: string
  readonly seat: Seat
  readonly management: Management
  /** Measures only the bodies whose names contain it. */
  readonly part: string
}

/** Sends each shape again and again; the median is what counts, for a collection of garbage falls on any of them. */
export const bodyCosts = async ({ base, management, part, pid, seat, token }: Subject) => {
  const { id } = await management.call<{ id: string }>("/products", { name: "Flood", code: `flood-${pid}` })
  const limited = await management.call<{ token: string }>("/api-keys", {
    name: "Flood",
    scopes: ["license:write"],
    product_ids: [id]
  })
  const guarded = Object.entries(batches()).map(([name, body]) => ({
    name: `a product's token, ${name}`,
    path: "/api/v1/licenses/batch",
    authorization: `Bearer ${limited.token}`,
    body
  }))
  const pool = new Pool(base, { connections: 1 })
  const costsOf = async ({ authorization, body, headers, path }: Shape) => {
    let bytes = Buffer.from(body)
    const costs: Array<number> = []
    let status = 0
    for (let round = -warmups; round < repetitions; round++) {
      if (body.includes("~")) bytes = Buffer.from(body.replaceAll("~", `r${++rounds}_`))
      const before = mainThreadNanos(pid)
      const response = await pool.request({
        method: "POST",
        path,
        headers: { "content-type": "application/json", ...(authorization && { authorization }), ...keyOf(headers) },
        body: bytes
      })
      await response.body.dump()
      status = response.statusCode
      if (round >= 0) costs.push((mainThreadNanos(pid) - before) / 1e6)
    }
    return { status, bytes: bytes.length, least: Math.min(...costs), median: quantile(costs, 0.5) }
  }
  const rows = []
  const shapes: ReadonlyArray<Shape> = [...shapesOf(token, seat), ...guarded].filter(({ name }) => name.includes(part))
  for (const shape of shapes) {
    const small = await costsOf({ ...shape, body: smallBodies[shape.path] ?? "{}" })
    const { bytes, least, median, status } = await costsOf(shape)
    const perPiece = (millis: number) => (millis - small.median) / Math.ceil(bytes / piece)
    rows.push({
      body: shape.name,
      status,
      kilobytes: Math.round(bytes / 1_024),
      request_ms: rounded(small.median),
      least_ms: rounded(perPiece(least)),
      main_thread_ms_per_256_kib: rounded(perPiece(median)),
      holds: perPiece(median) <= pieceMillisMax
    })
  }
  await pool.destroy()
  return rows
}
