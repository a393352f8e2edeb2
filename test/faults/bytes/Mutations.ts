/** Bytes that resemble a request: valid ones, and what a seed makes of them. */
import type { RandomSource } from "../../simulation/requests/RandomSource.ts"
import type { Template } from "./Templates.ts"

const latin = (text: string) => Buffer.from(text, "latin1")

/** A head and a body that may contradict each other. */
interface Draft {
  method: string
  target: string
  version: string
  headers: Array<readonly [name: string, value: string]>
  body: Buffer
}

const draftOf = ({ body, headers, method, target }: Template): Draft => ({
  ...{ method, target, version: "HTTP/1.1", headers: [...headers] },
  body: Buffer.from(body ?? "")
})

const bytesOf = ({ body, headers, method, target, version }: Draft): Buffer =>
  Buffer.concat([
    latin(`${method} ${target} ${version}\r\n${headers.map(([name, value]) => `${name}: ${value}\r\n`).join("")}\r\n`),
    body
  ])

const withLength = (draft: Draft): Draft =>
  draft.body.length > 0 ? withHeader(draft, "Content-Length", String(draft.body.length)) : draft

const withHeader = (draft: Draft, name: string, value: string): Draft => ({
  ...draft,
  headers: [...draft.headers, [name, value]]
})

/** A request that the service may accept. */
export const valid = (template: Template): Buffer => bytesOf(withLength(draftOf(template)))

type Mutation = (template: Template, random: RandomSource) => Buffer

const someBytes = (random: RandomSource, longest: number) =>
  Buffer.from(Array.from({ length: random.between(1, longest) }, () => random.between(0, 255)))

const place = (bytes: Buffer, random: RandomSource) => random.between(0, Math.max(0, bytes.length - 1))

/** Of the whole message. */
const onBytes =
  (change: (bytes: Buffer, random: RandomSource) => Buffer): Mutation =>
  (template, random) =>
    change(valid(template), random)

/** Of the body, with a right length. */
const onBody =
  (change: (body: Buffer, random: RandomSource) => Buffer): Mutation =>
  (template, random) => {
    const draft = draftOf(template)
    const { headers } = draft
    const typed = headers.some(([name]) => name === "Content-Type")
      ? draft
      : withHeader(draft, "Content-Type", "application/json")
    return bytesOf(withLength({ ...typed, body: change(draft.body, random) }))
  }

const flipBits = (given: Buffer, random: RandomSource) => {
  const bytes = Buffer.from(given)
  for (let flips = random.between(1, 8); flips > 0 && bytes.length > 0; flips--) {
    const at = place(bytes, random)
    bytes[at] = bytes[at]! ^ (1 << random.between(0, 7))
  }
  return bytes
}

const insert = (bytes: Buffer, at: number, more: Buffer) =>
  Buffer.concat([bytes.subarray(0, at), more, bytes.subarray(at)])

const duplicateSlice = (bytes: Buffer, random: RandomSource) => {
  const from = place(bytes, random)
  const slice = bytes.subarray(from, from + random.between(1, 400))
  return insert(bytes, place(bytes, random), Buffer.concat(Array.from({ length: random.between(1, 20) }, () => slice)))
}

const removeSlice = (bytes: Buffer, random: RandomSource) => {
  const from = place(bytes, random)
  return Buffer.concat([bytes.subarray(0, from), bytes.subarray(from + random.between(1, 40))])
}

const wrongLengths: ReadonlyArray<(length: number, random: RandomSource) => string> = [
  (length, random) => String(Math.max(0, length + random.between(-10, 10))),
  () => "-1",
  () => "99999999999999999999999",
  () => "2147483648",
  () => "0x10",
  (length) => `+${length}`,
  (length) => `${length}, ${length}`,
  (length) => `${length}, ${length + 1}`,
  (length) => `0${length}`,
  () => "",
  () => "1e3",
  (length) => `${length}\u0000`
]

const wrongLength: Mutation = (template, random) => {
  const draft = draftOf(template)
  const length = random.pick(wrongLengths)(draft.body.length, random)
  const one = withHeader(draft, random.pick(["Content-Length", "content-length", "Content-Length "]), length)
  return bytesOf(random.chance(0.2) ? withHeader(one, "Content-Length", String(draft.body.length)) : one)
}

const chunkFaults: ReadonlyArray<(body: string, size: string) => string> = [
  (body, size) => `${size}\r\n${body}\r\n0\r\n\r\n`,
  (body, size) => `${size}\r\n${body}\r\n0\r\nX-Trailer: a\r\n\r\n`,
  (body) => `ffffffffffffffff\r\n${body}\r\n0\r\n\r\n`,
  (body) => `-1\r\n${body}\r\n0\r\n\r\n`,
  (body) => `zz\r\n${body}\r\n0\r\n\r\n`,
  (body, size) => `${size}\n${body}\n0\n\n`,
  (body, size) => `${size}\r\n${body}0\r\n\r\n`,
  (body, size) => `${size};${"a=b;".repeat(5_000)}\r\n${body}\r\n0\r\n\r\n`,
  (body, size) => `${size}\r\n${body}\r\n`,
  (body) => `1\r\n${body}\r\n0\r\n\r\n`,
  (body, size) => `000000000000${size}\r\n${body}\r\n000\r\n\r\n`,
  (body) => `${Array.from(body, (one) => `1\r\n${one}\r\n`).join("")}0\r\n\r\n`
]

const chunked: Mutation = (template, random) => {
  const draft = draftOf(template)
  const body = draft.body.toString("latin1")
  const coding = random.pick([
    "chunked",
    "chunked",
    "chunked",
    "Chunked",
    "gzip, chunked",
    "chunked, chunked",
    "identity",
    "\tchunked"
  ])
  const one = withHeader(draft, "Transfer-Encoding", coding)
  const both = random.chance(0.2) ? withHeader(one, "Content-Length", String(body.length)) : one
  return bytesOf({ ...both, body: latin(random.pick(chunkFaults)(body, body.length.toString(16))) })
}

const headerFlood: Mutation = (template, random) => {
  const draft = withLength(draftOf(template))
  const more: ReadonlyArray<readonly [string, string]> = random.chance(0.5)
    ? Array.from({ length: random.between(50, 3_000) }, (_, index) => [`X-${index}`, "a"] as const)
    : [[random.pick(["X-Long", "Authorization", "Cookie", "Accept"]), "a".repeat(random.between(1_000, 100_000))]]
  return bytesOf({ ...draft, headers: [...more, ...draft.headers] })
}

const oddHeaders: ReadonlyArray<string> = [
  "Expect: 100-continue\r\n",
  "Expect: something\r\n",
  "Connection: close\r\n",
  "Connection: Upgrade\r\nUpgrade: h2c\r\n",
  "Host: other\r\n",
  "X-Forwarded-For: 999.1.1.1, ::1\r\n",
  "Content-Encoding: gzip\r\n",
  "Content-Type: text/plain\r\n",
  "Content-Type: application/json; charset=utf-16\r\n",
  "Accept-Encoding: gzip;q=, br\r\n",
  'If-None-Match: "\r\n',
  "If-Match: *, *\r\n",
  "Range: bytes=9-1\r\n",
  "X-Request-Id: \u0001\r\n",
  "X-Request-Id: \u00ff\u00fe\r\n",
  "Idempotency-Key: \r\n",
  "Traceparent: 00-zz-zz-zz\r\n",
  "A: b\r\n c\r\n",
  "A : b\r\n",
  ": b\r\n",
  "A: b\rc\r\n",
  "A: b\n",
  "A: \u0000\r\n",
  "Authorization: Basic Og==\r\n",
  "Authorization: Bearer\r\n"
]

const oddHeader = onBytes((bytes, random) => insert(bytes, bytes.indexOf("\r\n") + 2, latin(random.pick(oddHeaders))))

const methods = ["", "get", "OPTIONS", "TRACE", "CONNECT", "PUT", "DELETE", "QUERY", "PRI", "A".repeat(300), "G\u0000T"]
const targets: ReadonlyArray<(target: string) => string> = [
  (target) => `http://other${target}`,
  (target) => `//other${target}`,
  () => "*",
  () => "",
  (target) => target.slice(1),
  (target) => `${target}${target.includes("?") ? "&" : "?"}${"a=b&".repeat(2_000)}`,
  (target) => `${target}%`,
  (target) => `${target}%00%ff%c0%af`,
  (target) => `${target}/../../../etc/passwd`,
  (target) => `${target}#fragment`,
  (target) => `${target} `,
  (target) => target.replaceAll("/", "//"),
  (target) => `${target}/${"x".repeat(20_000)}`,
  (target) => `${target}\u00e4\u0080`
]
const versions = ["HTTP/1.0", "HTTP/0.9", "HTTP/2.0", "HTTP/1.1 ", "HTTP/1.9", "http/1.1", ""]

const requestLine: Mutation = (template, random) => {
  const draft = withLength(draftOf(template))
  const part = random.between(0, 2)
  if (part === 0) return bytesOf({ ...draft, method: random.pick(methods) })
  return bytesOf(
    part === 1 ? { ...draft, target: random.pick(targets)(draft.target) } : { ...draft, version: random.pick(versions) }
  )
}

const bodies: ReadonlyArray<(random: RandomSource) => Buffer> = [
  (random) => Buffer.from("[".repeat(random.between(10, 100_000))),
  (random) => {
    const depth = random.between(10, 20_000)
    return Buffer.from(`${'{"a":'.repeat(depth)}1${"}".repeat(depth)}`)
  },
  (random) => Buffer.from(`{"name":${"[".repeat(random.between(1, 5_000))}`),
  () => Buffer.from('{"name":"\\ud800","code":"\\udfff\\ud800"}'),
  () => Buffer.from('{"name":"a","name":"b","__proto__":{"a":1},"constructor":null}'),
  (random) => Buffer.from(`{"amount":${"9".repeat(random.between(1, 5_000))}}`),
  () => Buffer.from('{"amount":1e999,"limit":-0,"a":1E-400}'),
  () => Buffer.from("\ufeff{}"),
  () => Buffer.from("{}", "utf16le"),
  (random) => Buffer.from(`{"name":"${"x".repeat(random.between(1_000, 300_000))}"}`),
  (random) =>
    Buffer.from(`{${Array.from({ length: random.between(1, 5_000) }, (_, index) => `"f${index}":1`).join(",")}}`),
  (random) => someBytes(random, 2_000),
  () => Buffer.from("null")
]

/** Bytes that are not UTF-8, within the body's texts. */
const badUtf8 = [[0xff], [0xc0, 0xaf], [0xed, 0xa0, 0x80], [0xf8, 0x88, 0x80, 0x80, 0x80], [0xe2, 0x82]]

const mutations = {
  nothing: valid,
  "cut off": onBytes((bytes, random) => bytes.subarray(0, place(bytes, random))),
  "flipped bits": onBytes(flipBits),
  "inserted bytes": onBytes((bytes, random) => insert(bytes, place(bytes, random), someBytes(random, 30))),
  "duplicated slice": onBytes(duplicateSlice),
  "removed slice": onBytes(removeSlice),
  "wrong length": wrongLength,
  "chunk fault": chunked,
  "header flood": headerFlood,
  "odd header": oddHeader,
  "request line": requestLine,
  "other body": onBody((_, random) => random.pick(bodies)(random)),
  "flipped bits in the body": onBody(flipBits),
  "cut body": onBody((body, random) => body.subarray(0, place(body, random))),
  "duplicated slice in the body": onBody(duplicateSlice),
  "bad UTF-8": onBody((body, random) => insert(body, place(body, random), Buffer.from(random.pick(badUtf8)))),
  "only bytes": (_, random) => someBytes(random, 3_000)
} satisfies Record<string, Mutation>

export type MutationName = keyof typeof mutations

const weights = {
  ...(Object.fromEntries(Object.keys(mutations).map((name) => [name, 4])) as Record<MutationName, number>),
  nothing: 8,
  "header flood": 1,
  "other body": 8
}

export const mutated = (
  template: Template,
  random: RandomSource
): { readonly name: MutationName; readonly bytes: Buffer } => {
  const name = random.weighted(weights)
  return { name, bytes: mutations[name](template, random) }
}
