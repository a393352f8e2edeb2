/**
 * Decodes OTLP in protobuf: the fields that tests read, by the numbers of opentelemetry-proto 1. The published packages only encode.
 * Fields that are not listed are skipped, as protobuf wants it.
 */

export type Json = Record<string, unknown>

type Kind = "bytes" | "boolean" | "double" | "fixed64" | "integer" | "text"

/** A field's name, and its kind, its message, or the message of its items. */
type Field = readonly [name: string, of: Kind | (() => Message) | readonly [items: () => Message]]
type Message = Readonly<Record<number, Field>>

const anyValue: Message = {
  1: ["stringValue", "text"],
  2: ["boolValue", "boolean"],
  3: ["intValue", "integer"],
  4: ["doubleValue", "double"],
  5: ["arrayValue", () => ({ 1: ["values", [() => anyValue]] })]
}
const keyValue: Message = { 1: ["key", "text"], 2: ["value", () => anyValue] }
const attributes: Field = ["attributes", [() => keyValue]]

const event: Message = { 1: ["timeUnixNano", "fixed64"], 2: ["name", "text"], 3: attributes }
const link: Message = { 1: ["traceId", "bytes"], 2: ["spanId", "bytes"], 4: attributes }
const status: Message = { 2: ["message", "text"], 3: ["code", "integer"] }
const span: Message = {
  1: ["traceId", "bytes"],
  2: ["spanId", "bytes"],
  4: ["parentSpanId", "bytes"],
  5: ["name", "text"],
  6: ["kind", "integer"],
  9: attributes,
  11: ["events", [() => event]],
  13: ["links", [() => link]],
  15: ["status", () => status]
}

const logRecord: Message = {
  3: ["severityText", "text"],
  5: ["body", () => anyValue],
  6: attributes,
  9: ["traceId", "bytes"],
  10: ["spanId", "bytes"]
}

const numberPoint: Message = { 4: ["asDouble", "double"], 6: ["asInt", "fixed64"], 7: attributes }
const histogramPoint: Message = { 4: ["count", "fixed64"], 5: ["sum", "double"], 9: attributes }
const pointsOf = (point: Message) => (): Message => ({ 1: ["dataPoints", [() => point]] })
const metric: Message = {
  1: ["name", "text"],
  3: ["unit", "text"],
  5: ["gauge", pointsOf(numberPoint)],
  7: ["sum", pointsOf(numberPoint)],
  9: ["histogram", pointsOf(histogramPoint)]
}

/** An export: resources with scopes with items. */
const exportOf = (resources: string, scopes: string, items: string, item: Message): Message => ({
  1: [
    resources,
    [
      () => ({
        1: ["resource", () => ({ 1: attributes })],
        2: [scopes, [() => ({ 2: [items, [() => item]] })]]
      })
    ]
  ]
})

export const traces = exportOf("resourceSpans", "scopeSpans", "spans", span)
export const logs = exportOf("resourceLogs", "scopeLogs", "logRecords", logRecord)
export const metrics = exportOf("resourceMetrics", "scopeMetrics", "metrics", metric)

/** A varint, and where the next byte is. */
const varint = (bytes: Buffer, start: number): readonly [value: bigint, next: number] => {
  let value = 0n
  for (let at = start; ; at++) {
    const byte = bytes.readUInt8(at)
    value |= BigInt(byte & 0x7f) << BigInt(7 * (at - start))
    if (byte < 0x80) return [value, at + 1]
  }
}

interface Value {
  /** Of a varint. */
  readonly number: bigint
  /** Of everything else. */
  readonly bytes: Buffer
}

/** A field's value, and where the next field is. */
const valueAt = (bytes: Buffer, start: number, wire: number): readonly [value: Value, next: number] => {
  if (wire === 0) {
    const [number, next] = varint(bytes, start)
    return [{ number, bytes: Buffer.alloc(0) }, next]
  }
  const [length, from] = wire === 2 ? varint(bytes, start) : [wire === 1 ? 8 : 4, start]
  const next = from + Number(length)
  if (![1, 2, 5].includes(wire) || next > bytes.length) throw new Error(`No protobuf at byte ${start}.`)
  return [{ number: 0n, bytes: bytes.subarray(from, next) }, next]
}

const readers: Readonly<Record<Kind, (value: Value) => unknown>> = {
  bytes: ({ bytes }) => bytes,
  boolean: ({ number }) => number !== 0n,
  double: ({ bytes }) => bytes.readDoubleLE(),
  fixed64: ({ bytes }) => Number(bytes.readBigInt64LE()),
  integer: ({ number }) => Number(BigInt.asIntN(64, number)),
  text: ({ bytes }) => bytes.toString("utf8")
}

export const decode = (message: Message, bytes: Buffer): Json => {
  const decoded: Json = {}
  for (let at = 0; at < bytes.length; ) {
    const [tag, start] = varint(bytes, at)
    const [value, next] = valueAt(bytes, start, Number(tag & 7n))
    at = next
    const [name, of] = message[Number(tag >> 3n)] ?? []
    if (name === undefined || of === undefined) continue
    if (typeof of === "string") decoded[name] = readers[of](value)
    else if (typeof of === "function") decoded[name] = decode(of(), value.bytes)
    else decoded[name] = [...((decoded[name] ?? []) as Array<Json>), decode(of[0](), value.bytes)]
  }
  return decoded
}
